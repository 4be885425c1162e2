"""Carries out the commands of a selection scenario: logs given by their segments, and what a pass would do with them.

log NAME SETTING=VALUE...        a log; one input line a segment: ``first..last  size bytes  @first..largest time``,
                                 and ``until TIME`` if a tombstone is stamped; ``-- checkpoint`` where clean ends
clock TIME                       sets the clock
plan                             what a pass would do, most urgent first, and why it leaves the others alone
due                              when the clock alone could change that
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from keptlog.log.assessment import Assessment, assess
from keptlog.log.config import TopicConfig
from keptlog.log.plan import describe_step, make_plan
from keptlog.log.segment import Log, Segment
from keptlog.log.topic_partition import TopicPartition
from tests.scenarios.language import BEGINNING_MS, Block, format_time, parse_settings, parse_time_ms

_SEGMENT = re.compile(
    r"(?P<base>\d+)\.\.(?P<last>\d+)\s+(?P<size>\d+) bytes\s+"
    r"@(?P<first>\S+)\.\.(?P<largest>\S+)(\s+until (?P<until>\S+))?"
)


@dataclass
class SelectionScenario:
    """The logs of a story, and its clock."""

    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    now_ms: int = BEGINNING_MS

    def run(self, block: Block) -> list[str]:
        """The output lines of one command."""
        commands: dict[str, Callable[[Block], Iterable[str]]] = {
            "log": self._log,
            "clock": self._clock,
            "plan": self._plan,
            "due": self._due,
        }
        return list(commands[block.command](block))

    def _log(self, block: Block) -> Iterator[str]:
        name, *settings = block.arguments
        segments: list[Segment] = []
        checkpoint = None
        for line in block.given:
            if line == "-- checkpoint":
                checkpoint = segments[-1].last_offset + 1 if segments else 0
            else:
                segments.append(_segment(line))
        topic_partition = TopicPartition.parse(name)
        self.logs[topic_partition] = Log(
            topic_partition=topic_partition,
            config=TopicConfig.of({"cleanup.policy": "compact"} | parse_settings(settings)),
            segments=tuple(segments),
            log_start_offset=0,
            log_end_offset=segments[-1].last_offset + 1,
            checkpoint=checkpoint,
        )
        yield from ()

    def _clock(self, block: Block) -> Iterator[str]:
        self.now_ms = BEGINNING_MS + parse_time_ms(block.arguments[0])
        yield format_time(self.now_ms - BEGINNING_MS)

    def _plan(self, _: Block) -> Iterator[str]:
        plan = make_plan(self._assessments(), self.now_ms)
        yield from map(describe_step, plan.steps)
        for name, reason in plan.left_alone.items():
            yield f"{name}: left alone, {reason}"

    def _due(self, _: Block) -> Iterator[str]:
        for each in self._assessments():
            when = "with new records" if each.due_ms is None else format_time(each.due_ms - BEGINNING_MS)
            yield f"{each.log.topic_partition}: {'now' if each.trigger else when}"

    def _assessments(self) -> list[Assessment]:
        return [assess(log, self.now_ms) for log in self.logs.values()]


def _segment(line: str) -> Segment:
    found = _SEGMENT.fullmatch(line)
    if not found:
        raise ValueError(f"{line!r} is not a segment: write 0..9  100 bytes  @0s..1h  until 2d")
    first, last = int(found["base"]), int(found["last"])
    until = found["until"]
    return Segment(
        path=f"{first}.parquet",
        base_offset=first,
        last_offset=last,
        first_timestamp_ms=BEGINNING_MS + parse_time_ms(found["first"]),
        largest_timestamp_ms=BEGINNING_MS + parse_time_ms(found["largest"]),
        record_count=last - first + 1,
        size_bytes=int(found["size"]),
        tombstone_count=1 if until else 0,
        stamped_count=1 if until else 0,
        earliest_delete_horizon_ms=BEGINNING_MS + parse_time_ms(until) if until else None,
    )
