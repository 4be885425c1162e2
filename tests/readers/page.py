"""The code of ``docs/readers.md``, so that the tests run what people copy.

A block is opened by its language and a name: three backticks, then ``python duckdb``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

PAGE = Path(__file__).parents[2] / "docs" / "readers.md"
_AS_ARROW = {
    "arrow": ("users", "latest.to_arrow_table()"),
    "duckdb": ("users.to_arrow_table()", "latest.to_arrow_table()"),
    "polars": ("users.collect().to_arrow()", "latest.collect().to_arrow()"),
    "spark": ("users.toArrow()", "latest.toArrow()"),
}
"""How an engine's ``users`` and ``latest`` become tables of Arrow's."""
_STORING = """
import pyarrow
for name, found in (("users", {}), ("latest", {})):
    with pyarrow.OSFile(name + ".arrow", "wb") as sink, pyarrow.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
"""
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


def read_in(
    interpreter: Path,
    engine: str,
    *names: str,
    rewritten: Callable[[str], str] = str,
    environment: Mapping[str, str] | None = None,
) -> dict[str, pa.Table]:
    """Run Python blocks in a process of its own, in the working directory, and return ``users`` and ``latest``.

    ``rewritten`` puts what a test has into the place of what the page made up: hosts, and the secret of a store.
    """
    code = rewritten(python(*names)) + _STORING.format(*_AS_ARROW[engine])
    Path("read.py").write_text(code)
    subprocess.run([interpreter, "read.py"], check=True, env=environment)
    return {name: _stored(f"{name}.arrow") for name in ("users", "latest")}


def _stored(path: str) -> pa.Table:
    with pa.OSFile(path, "rb") as source:
        return pa.ipc.open_file(source).read_all()
