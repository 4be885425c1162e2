"""Numbers in sentences, and how many more there are than are told."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """``1 log``, ``2 logs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_lines(lines: Sequence[str], limit: int) -> list[str]:
    """The first lines, and in one more how many others there are: there may be thousands."""
    more = len(lines) - limit
    return [*lines[:limit], *([f"and {more} more"] if more > 0 else [])]


def some_of(names: Sequence[str], limit: int) -> str:
    """The first names, and how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
