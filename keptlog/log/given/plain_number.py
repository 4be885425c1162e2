"""Whole numbers as people write them: plain digits, one way to write each, and none that no offset could be."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"0|[1-9][0-9]{0,18}")
_MOST = 2**63 - 1
"""Kafka's offsets have 64 bits."""


def plain_number(text: str) -> int | None:
    """The number that a text is; null if it is none, is written otherwise (``07``), or is too large for an offset."""
    if not _DIGITS.fullmatch(text):
        return None
    number = int(text)
    return number if number <= _MOST else None
