"""A plot of text: a bar for each name, the longest one as long as the page allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_CHARACTERS = 40


def bars(amounts: Mapping[str, float], unit: str) -> Iterable[str]:
    longest, width = max(amounts.values(), default=0), max(map(len, amounts), default=0)
    for name, amount in amounts.items():
        bar = "#" * max(1, round(_CHARACTERS * amount / longest)) if longest else ""
        yield f"{name:{width}} {bar} {amount:.2f} {unit}"
