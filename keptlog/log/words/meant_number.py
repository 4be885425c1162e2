"""Which number is meant where a person wrote ``7d``, ``1 GiB`` or ``50%``, and Kafka takes digits alone."""

from __future__ import annotations

import re

_SPANS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_SIZES = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SIZES |= {f"{letter}{end}": size for letter, size in list(_SIZES.items())[1:] for end in ("b", "ib")}
_COUNTED_IN = {
    "ms": (_SPANS_MS, 1),
    "minutes": (_SPANS_MS, 60_000),
    "hours": (_SPANS_MS, 3_600_000),
    "bytes": (_SIZES, 1),
    "size": (_SIZES, 1),
}
"""By the last word of a setting's name."""
_WITH_UNIT = re.compile(r"([0-9]{1,15}) ?([A-Za-z]{1,3})")
_LONGEST = 40


def meant_whole_number(name: str, text: str) -> str | None:
    """The digits that a setting of this name takes for a text; null if nobody can tell."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,3}(_[0-9]{3})+", text) and len(text) <= _LONGEST:
        return text.replace("_", "")
    units, counted_in = _COUNTED_IN.get(name.rpartition(".")[2], ({}, 1))
    found = _WITH_UNIT.fullmatch(text)
    if not found or found[2].lower() not in units:
        return None
    if units is _SPANS_MS and found[2] == "M":
        return None  # a month wherever it is a capital: the number of a minute would let records go
    whole, rest = divmod(int(found[1]) * units[found[2].lower()], counted_in)
    return None if rest else str(whole)


def meant_fraction(text: str) -> str | None:
    """The same of a setting that takes a fraction: ``0.5`` for ``50%`` and for ``0,5``."""
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,3}%", text):
        return str(int(text[:-1]) / 100)
    return text.replace(",", ".") if re.fullmatch(r"[0-9],[0-9]{1,9}", text) else None
