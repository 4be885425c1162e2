"""Tables in a terminal that is narrower than they are: long names are cut in the middle, then columns are left out.

Only a terminal has a width; whatever goes into a pipe or a file is whole.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence

from keptlog.log.words.shortened import shortened

_NAMES = ("topic-partition", "topic")
"""Columns of names, of which none is copied in parts; an id is either whole or useless."""
_NAME_WIDTH = 28
"""Names are cut no shorter than this."""
GAP = "  "
"""Between columns."""


def room() -> int | None:
    """How wide the terminal is that standard output goes to; null if it goes elsewhere, or nobody knows."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (AttributeError, OSError, ValueError):
        return None


def fitted(table: Sequence[Sequence[str]], width: int, expendable: Sequence[str]) -> tuple[list[list[str]], str | None]:
    """The table, heads first, as far as it fits, and what is to be said below it; null if it is whole.

    ``expendable`` are the heads of columns that may be left out, the first one first. What is too wide even then stays
    too wide: nothing else goes.
    """
    columns = [list(column) for column in zip(*table, strict=True)]
    missing = []
    for column in columns:
        too_wide = _width(columns) - width
        if too_wide > 0 and column[0] in _NAMES:
            cut = _cut(column[1:], max(_width([column]) - too_wide, _NAME_WIDTH))
            if cut != column[1:]:
                missing.append("whole names")
                column[1:] = cut
    for head in expendable:
        if _width(columns) <= width:
            break
        left = [column for column in columns if column[0] != head]
        missing += [head] * (len(columns) - len(left))
        columns = left
    note = f"this window is too narrow for {', '.join(dict.fromkeys(missing))}: --json and a pipe show all"
    return [list(line) for line in zip(*columns, strict=True)], textwrap.fill(note, width) if missing else None


def lines(words: Sequence[str]) -> str:
    """What is told one behind the other: in one line, or in lines that a terminal does not break inside of a word."""
    width = room()
    told = [""]
    for number, word in enumerate(words, start=1):
        word = word if number == len(words) else f"{word},"
        if told[-1] and width and len(told[-1]) + 1 + len(word) > width:
            told.append("")
        told[-1] = f"{told[-1]} {word}".lstrip()
    return "\n".join(told)


def _cut(names: list[str], width: int) -> list[str]:
    """The names in so many characters, or a few more: two that differ must not look alike."""
    while len({shortened(name, width) for name in names}) < len(set(names)):
        width += 1
    return [shortened(name, width) for name in names]


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + len(GAP) * (len(columns) - 1)
