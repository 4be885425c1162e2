"""The code of ``docs/readers.md``, so that the tests run what people copy.

A block is opened by its language and a name: three backticks, then ``python duckdb``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "readers.md"
_BLOCK = re.compile(r"^```(\w+) ([\w-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANY_BLOCK = re.compile(r"^```.+$", re.MULTILINE)


def blocks() -> dict[tuple[str, str], str]:
    """Code by language and name.

    Raises:
        ValueError: a block has no name, or two have the same, so that one would not be run.
    """
    text = PAGE.read_text(encoding="utf-8")
    found = {(language, name): code for language, name, code in _BLOCK.findall(text)}
    if len(found) != len(_ANY_BLOCK.findall(text)):
        raise ValueError(f"{PAGE.name}: every block must have a language and a name of its own")
    return found


def python(*names: str) -> str:
    """The Python blocks of these names, one after the other, with the query that they use."""
    code = blocks()
    return "\n".join([f"LATEST = {code['sql', 'latest'].strip()!r}", *(code["python", name] for name in names)])


def run(*names: str) -> dict[str, Any]:
    """Run Python blocks in the working directory, and return what they have defined."""
    defined: dict[str, Any] = {}
    exec(compile(python(*names), f"{PAGE.name}: {', '.join(names)}", "exec"), defined)  # noqa: S102  # our own page
    return defined
