"""The tables of ``docs/engine.md``, so that the tests clean what the page shows.

A block is opened by three backticks, ``text`` and a name. Its first line has the titles of the tables that stand
side by side, the second one the names of their columns, every other line a row of each; an empty place is no row:

    before       |  after
    offset  key  |  offset  key
    0       a    |
    1       a    |  1       a
"""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from textwrap import dedent

PAGE = Path(__file__).parents[2] / "docs" / "engine.md"
_BLOCK = re.compile(r"^( *)```text ([\w-]+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_ANY_BLOCK = re.compile(r"^ *```.+$", re.MULTILINE)

Row = dict[str, str]
"""Cells by the names of their columns; a cell that is empty at the end of a row is an empty string."""


def blocks() -> dict[str, dict[str, list[Row]]]:
    """By the name of a block its tables, by their titles.

    Raises:
        ValueError: two blocks have the same name, or one has none, so that it would not be run.
    """
    text = PAGE.read_text(encoding="utf-8")
    found = {name: _tables(dedent(block)) for _, name, block in _BLOCK.findall(text)}
    if len(found) != len(_ANY_BLOCK.findall(text)):
        raise ValueError(f"{PAGE.name}: every block of tables must have a name of its own")
    return found


def _tables(block: str) -> dict[str, list[Row]]:
    titles, columns, *rows = ([part.strip() for part in line.split("|")] for line in block.splitlines())
    names = [part.split() for part in columns]
    cells = [[row[number].split() for row in rows if row[number]] for number in range(len(titles))]
    return {
        title: [dict(zip_longest(names_of, each, fillvalue="")) for each in cells_of]
        for title, names_of, cells_of in zip(titles, names, cells, strict=True)
    }
