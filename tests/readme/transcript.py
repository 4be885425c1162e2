"""Pages that show commands with what they print: run as they stand there, and compared.

A block that begins with three backticks and ``sh`` is run. A block of ``text`` right below it is what it prints on
standard output. Times, sizes, ids and paths differ from run to run, so they are not compared.

    python -m tests.readme.transcript README.md docs/tutorial.md    writes anew what differs; read it before a commit
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.readme.page import ROOT

_STEP = re.compile(r"^```sh\n(?P<commands>.*?)^```$(?:\n\n^```text\n(?P<shown>.*?)^```$)?", re.MULTILINE | re.DOTALL)
_READS_ON = re.compile(r"<<'?(\w+)'?$", re.MULTILINE)
_DIFFERS = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b1\d{12}\b"), "TIME"),
    (re.compile(r"\b[\d.,]+ (?:B|KiB|MiB|bytes)(?![a-z])"), "SIZE"),
    (re.compile(r"file:///\S*?/\.keptlog"), "HOME"),
    (re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Step:
    """A block of commands, and what the page shows below it; none if it shows nothing."""

    commands: str
    shown: str | None


def steps(page: str) -> list[Step]:
    """The blocks of a page that are run, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Step(found["commands"], found["shown"]) for found in _STEP.finditer(text)]


def lines_of(commands: str) -> list[str]:
    """The lines of a block, each with the text that it reads from the lines below it."""
    found: list[str] = []
    until = ""
    for line in commands.splitlines(keepends=True):
        if until:
            found[-1] += line
            until = "" if line.strip() == until else until
        else:
            found.append(line)
            begun = _READS_ON.search(line)
            until = begun[1] if begun else ""
    return found


def comparable(printed: str) -> list[str]:
    """What must be the same in every run."""
    for pattern, name in _DIFFERS:
        printed = pattern.sub(name, printed)
    return [line.strip() for line in printed.strip().splitlines()]


def shell(folder: Path) -> Callable[[str], str]:
    """Gives what a block prints that is pasted into bash in this folder, where ``keptlog`` is that of this Python."""
    own = {name: text for name, text in os.environ.items() if not name.startswith("KEPTLOG_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), own["PATH"]])
    environment = own | {"PATH": path, "PYTHONPATH": str(ROOT), "KEPTLOG_SPARK_MASTER": "local[2]"}

    def paste(commands: str) -> str:
        done = subprocess.run(
            ["bash", "-e"], input=commands, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    return paste


def write(page: str) -> None:
    """Run a page, and write anew what it shows where that differs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        paste = shell(Path(folder))
        for step in steps(page):
            printed = paste(step.commands).replace(folder, "/srv").rstrip() + "\n"
            if step.shown is not None and comparable(printed) != comparable(step.shown):
                block = f"```sh\n{step.commands}```\n\n```text\n"
                text = text.replace(f"{block}{step.shown}```", f"{block}{printed}```", 1)
    (ROOT / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for page in sys.argv[1:]:
        write(page)
