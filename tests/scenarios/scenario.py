"""Carries out the commands of a scenario file on one log, and says what came of each.

topic NAME=VALUE...    a new, empty log                     clock TIME | +TIME     sets or moves the clock
alter NAME=VALUE...    changes settings                     append                 the record lines, as one batch
clean                  cleans whatever may be cleaned       expire                 only removes tombstones that may go
read                   every record                         latest                 the last value of every key
sections               where the log is clean, cleanable, and neither
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from keptlog.log.reference import latest_values
from tests.logs import Twin
from tests.scenarios.language import (
    BEGINNING_MS,
    Block,
    format_record,
    format_time,
    parse_record,
    parse_settings,
    parse_time_ms,
)


@dataclass
class Scenario:
    """One log, and the clock of its story."""

    log: Twin
    now_ms: int = BEGINNING_MS

    def run(self, block: Block) -> list[str]:
        """The output lines of one command."""
        commands: dict[str, Callable[[Block], Iterable[str]]] = {
            "topic": self._topic,
            "alter": self._alter,
            "clock": self._clock,
            "append": self._append,
            "clean": lambda _: self._pass(self.log.clean),
            "expire": lambda _: self._pass(self.log.expire),
            "read": lambda _: map(format_record, self.log.records()),
            "latest": self._latest,
            "sections": self._sections,
        }
        return list(commands[block.command](block))

    def _topic(self, block: Block) -> Iterator[str]:
        self.log.create({"cleanup.policy": "compact"} | parse_settings(block.arguments))
        yield from ()

    def _alter(self, block: Block) -> Iterator[str]:
        self.log.alter(parse_settings(block.arguments))
        yield from ()

    def _clock(self, block: Block) -> Iterator[str]:
        (time,) = block.arguments
        start_ms = self.now_ms if time.startswith("+") else BEGINNING_MS
        self.now_ms = start_ms + parse_time_ms(time.removeprefix("+"))
        yield format_time(self.now_ms - BEGINNING_MS)

    def _append(self, block: Block) -> Iterator[str]:
        base_offset = self.log.positions(self.now_ms).log_end_offset
        self.log.append([parse_record(line, self.now_ms) for line in block.given], self.now_ms)
        yield f"offsets {base_offset}..{self.log.positions(self.now_ms).log_end_offset - 1}"

    def _pass(self, clean_or_expire: Callable[[int], None]) -> Iterator[str]:
        before, clean_before = self.log.records(), self.log.positions(self.now_ms).first_dirty_offset
        clean_or_expire(self.now_ms)
        after, clean_after = self.log.records(), self.log.positions(self.now_ms).first_dirty_offset
        if (after, clean_after) == (before, clean_before):
            yield "nothing to do"
        else:
            left = {record.offset for record in after}
            gone = " ".join(str(record.offset) for record in before if record.offset not in left)
            yield f"gone: {gone or 'none'}; clean: [0, {clean_after})"

    def _latest(self, _: Block) -> Iterator[str]:
        for key, value in sorted(latest_values(self.log.records()).items()):
            yield f"{key.decode()}: {value.decode() or 'empty'}"

    def _sections(self, _: Block) -> Iterator[str]:
        at = self.log.positions(self.now_ms)
        yield (
            f"clean [0, {at.first_dirty_offset}) cleanable [{at.first_dirty_offset}, {at.first_uncleanable_offset}) "
            f"waiting [{at.first_uncleanable_offset}, {at.log_end_offset})"
        )
