"""A reason with the name of whom it is of, said once: most errors of a topic or a log begin with it themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping


def named(name: str, reason: object) -> str:
    """The reason with the name in front, where it neither begins with it nor quotes it."""
    text = str(reason)
    begins = re.match(rf"(topic )?{re.escape(name)}(?![\w.-])", text)
    return text if begins or repr(name) in text else f"{name}: {text}"


def unnamed(name: str, reason: object) -> str:
    """The reason in one line, for a sentence that has named it: without the name that it begins with."""
    text = " ".join(str(reason).split())
    return re.sub(rf"^(topic )?{re.escape(name)}: ", "", text)


def named_lines(reasons: Mapping[str, object]) -> list[str]:
    """One for each, in the order of the names."""
    return [named(name, reason) for name, reason in sorted(reasons.items())]
