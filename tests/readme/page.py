"""The commands that people copy from README and the docs, as they stand there.

A command is a line of a block between three backticks, or what stands between single ones, that begins with ``keptlog``
or ``make``. In a block, ``#`` begins what is said about it.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```[^`\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)


def lines(page: str, section: str, program: str = "keptlog") -> list[str]:
    """The lines of a section's blocks that call a program, as they are pasted."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names = _HEADING.findall(text)
    body = _HEADING.split(text)[2 * (names.index(section) + 1)]
    blocks = "\n".join(_BLOCK.findall(body))
    return [line for line in blocks.splitlines() if line.startswith(f"{program} ")]


def commands(page: str, program: str) -> list[list[str]]:
    """The words after the program's name, of every command on a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
    found = [*blocks, *_INLINE.findall(_BLOCK.sub("", text))]
    return [words_of(line)[1:] for line in found if line.startswith(f"{program} ")]


def words_of(line: str) -> list[str]:
    """A line as a shell takes it apart."""
    return shlex.split(line, comments=True)
