"""The commands that people copy from README and the docs, as they stand there.

A command is a line of a block between three backticks, or what stands between single ones, that begins with ``keptlog``
or ``make``. In a block, ``#`` begins what is said about it.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

PROMPT = "$ "
ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```[^`\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^```\w+ (\S+\.\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)


def lines(page: str, section: str, program: str = "keptlog") -> list[str]:
    """The lines of a section's blocks that call a program, as they are pasted."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names = _HEADING.findall(text)
    body = _HEADING.split(text)[2 * (names.index(section) + 1)]
    blocks = "\n".join(_BLOCK.findall(body))
    return [line for line in blocks.splitlines() if line.startswith(f"{program} ")]


def block_lines(page: str) -> list[str]:
    """The lines of all blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [line for block in _BLOCK.findall(text) for line in block.splitlines()]


def files_of(page: str) -> dict[str, str]:
    """The files that a page shows: blocks whose first line says language and name."""
    return dict(_FILE.findall((ROOT / page).read_text(encoding="utf-8")))


def commands(page: str, program: str) -> list[list[str]]:
    """The words after the program's name, of every command on a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
    found = [*blocks, *_INLINE.findall(_BLOCK.sub("", text))]
    return [words_of(line)[1:] for line in found if line.startswith(f"{program} ")]


def words_of(line: str) -> list[str]:
    """A line as a shell takes it apart."""
    return shlex.split(line, comments=True)


def own_words(line: str) -> tuple[list[str], str | None]:
    """A line's words up to where its output goes, to another program or to a file; and that file."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((index for index, word in enumerate(words) if word in {"|", ">"}), len(words))
    return words[:end], words[end + 1] if words[end : end + 1] == [">"] else None
