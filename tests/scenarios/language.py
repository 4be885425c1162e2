"""How a scenario file is written: commands with the output that each must give, and why in between.

    # The older record of a key goes, the newer one stays at its offset.

    topic segment.ms=1h
    ----

    append
    a: old
    a: new @-5m
    ----
    offsets 0..1

A block is comments, a command, its input lines, ``----``, and the expected output up to an empty line. What is written
in a record line: ``-`` for no key, ``tombstone`` for a null value, ``empty`` for a value of no bytes, ``@`` for the
timestamp if it is not the clock's.

Times count from the beginning of the scenario: ``1d12h`` is one and a half days later, ``-5m`` five minutes before.
Settings ending in ``.ms`` may be written that way too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from keptlog.log.record import NewRecord, Record

BEGINNING_MS = 1_700_000_000_000
_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_WORDS: dict[bytes | None, str] = {None: "tombstone", b"": "empty"}


@dataclass(frozen=True, slots=True)
class Block:
    """One command of a scenario file."""

    comments: tuple[str, ...]
    command: str
    arguments: tuple[str, ...]
    given: tuple[str, ...]
    expected: tuple[str, ...]
    line_number: int

    def with_output(self, output: Iterable[str]) -> Block:
        return replace(self, expected=tuple(output))

    def text(self) -> str:
        return "\n".join(
            [*self.comments, " ".join([self.command, *self.arguments]), *self.given, "----", *self.expected]
        )


def play(path: Path, run: Callable[[Block], list[str]], *, rewrite: bool) -> None:
    """Run a scenario file; the first command whose output differs fails, or the file is rewritten with all outputs."""
    blocks, rest = parse(path.read_text())
    played = []
    for block in blocks:
        output = run(block)
        played.append(block.with_output(output))
        assert rewrite or tuple(output) == block.expected, f"{path.name}:{block.line_number}: {block.command}"
    if rewrite:
        path.write_text(unparse(played, rest))


def parse(text: str) -> tuple[list[Block], str]:
    """The blocks of a scenario file, and the comment that stands behind the last one."""
    blocks: list[Block] = []
    comments: list[str] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if not line or line.startswith("#"):
            comments.append(line)
            continue
        command, *arguments = line.split()
        given = _until(lines, "----")
        blocks.append(Block(tuple(comments), command, tuple(arguments), given, _until(lines, ""), number))
        comments = []
    return blocks, "\n".join(comments)


def unparse(blocks: Iterable[Block], rest: str) -> str:
    """The text of a scenario file; ``unparse(*parse(text))`` gives the text again."""
    text = "\n\n".join(block.text() for block in blocks)
    return f"{text}\n" + (f"\n{rest}\n" if rest else "")


def _until(lines: Iterable[tuple[int, str]], end: str) -> tuple[str, ...]:
    found = []
    for _, line in lines:
        if line == end:
            break
        found.append(line)
    return tuple(found)


def parse_settings(arguments: Iterable[str]) -> dict[str, str]:
    """``name=value`` words as settings, times in ms."""
    pairs = (argument.split("=", 1) for argument in arguments)
    return {name: str(parse_time_ms(value)) if name.endswith(".ms") else value for name, value in pairs}


def parse_time_ms(text: str) -> int:
    """``1d12h`` in ms; a bare number is ms already."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if not re.fullmatch(r"-?(\d+(d|h|ms|m|s))+", text):
        raise ValueError(f"{text!r} is not a time: write 1d12h, 5m or 200ms")
    parts = re.findall(r"(\d+)(d|h|ms|m|s)", text)
    return (-1 if text.startswith("-") else 1) * sum(int(number) * _UNITS_MS[unit] for number, unit in parts)


def format_time(time_ms: int) -> str:
    """The inverse of ``parse_time_ms``."""
    parts, rest_ms = [], abs(time_ms)
    for unit, unit_ms in _UNITS_MS.items():
        number, rest_ms = divmod(rest_ms, unit_ms)
        if number:
            parts.append(f"{number}{unit}")
    return ("-" if time_ms < 0 else "") + ("".join(parts) or "0s")


def parse_record(line: str, now_ms: int) -> NewRecord:
    """A record line."""
    written, _, time = line.partition(" @")
    key, _, value = written.partition(": ")
    return NewRecord(
        key=None if key == "-" else key.encode(),
        value=next((found for found, word in _WORDS.items() if word == value), value.encode()),
        timestamp_ms=BEGINNING_MS + parse_time_ms(time) if time else now_ms,
    )


def format_record(record: Record) -> str:
    """A line that shows all that can change about a record."""
    key = "-" if record.key is None else record.key.decode()
    value = _WORDS.get(record.value) or (record.value or b"").decode()
    shown = f"{record.offset}  {key}: {value} @{format_time(record.timestamp_ms - BEGINNING_MS)}"
    if record.delete_horizon_ms is not None:
        shown += f"  until {format_time(record.delete_horizon_ms - BEGINNING_MS)}"
    return shown
