"""A clean that ended where its offset map was full: what is told of it, and of a log that is late because of it.

    first dirty        end                     planned end
        |  was cleaned  |  still to be cleaned     |        another pass goes on from the end (``offset_map``)

Such a clean succeeds, and its numbers may be those of the pass before. Unless somebody is told, it looks like a clean
that does nothing, and a log with more keys than one pass a deadline takes is late for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keptlog.log.assessment import Assessment
from keptlog.log.broker import BrokerConfig
from keptlog.log.offset_map import MapOverflow, keys_in
from keptlog.log.sections import Sections
from keptlog.log.steps import CleanStep, Compact
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.iso_time import iso_time

_MORE_KEYS = (
    "let a pass take more keys (raise log.cleaner.dedupe.buffer.size, or set keptlog.offset.map.overflow=shuffle)"
)
NextStep = tuple[str, str, str | None]
"""The cause of what is wrong, what to do next, and the command that does it."""


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """Where a clean ended, and where it would have if its map had taken all keys. Offsets are exclusive."""

    end_offset: int
    planned_end_offset: int

    def __str__(self) -> str:
        return (
            f"its offset map was full at offset {self.end_offset}, and {self.planned_end_offset} was to be reached: "
            f"clean again for the rest, or {_MORE_KEYS}"
        )


def early_ends(carried_out: Iterable[CleanStep], planned: Iterable[CleanStep]) -> dict[TopicPartition, EarlyEnd]:
    """The logs whose cleans ended early."""
    ends = {step.topic_partition: step.end_offset for step in planned}
    return {
        step.topic_partition: EarlyEnd(step.end_offset, ends[step.topic_partition])
        for step in carried_out
        if isinstance(step, Compact) and step.ends_early and step.topic_partition in ends
    }


def end_within_segment(sections: Sections, log_start_offset: int) -> str | None:
    """What is told of a clean section that ends inside of a segment; null if it does not, or no clean ended there."""
    offset, clean, dirty = sections.first_dirty_offset, sections.clean, sections.dirty
    if not (clean and dirty) or clean[-1] != dirty[0] or sections.checkpoint_reset or offset == log_start_offset:
        return None
    return (
        f"the clean section ends at offset {offset}, where the offset map of a clean was full; the segment that it "
        "lies in counts as clean and as dirty"
    )


@dataclass(frozen=True, slots=True)
class LateThoughCleaned:
    """A log that is past its deadline, and was cleaned since."""

    ended_ms: int
    is_map_full: bool

    @property
    def next_step(self) -> NextStep:
        if self.is_map_full:
            cause = "a clean has come since it was due, and ended where its offset map was full"
            return cause, f"clean it again until it is done, or {_MORE_KEYS}", "keptlog clean {subject}"
        cause = "a clean has come since it was due, and did not take these records"
        todo = (
            "clean it now: they came in later, or could not be cleaned yet; keptlog explain says which rule it goes by"
        )
        return cause, todo, "keptlog clean {subject}"

    def __str__(self) -> str:
        return f"its last clean ended at {iso_time(self.ended_ms)}"


def late_though_cleaned(
    assessments: Iterable[Assessment], last_passes: Mapping[TopicPartition, LastPass], broker: BrokerConfig
) -> dict[str, LateThoughCleaned]:
    """By topic-partition those logs that are late, and not because no clean has come."""
    found: dict[str, LateThoughCleaned] = {}
    stops = broker.keptlog_offset_map_overflow == MapOverflow.STOP
    for each in assessments:
        last, deadline_ms = last_passes.get(each.log.topic_partition), each.deadline_ms
        if last and not last.is_expiry and deadline_ms is not None and deadline_ms < min(last.ended_ms, each.now_ms):
            max_keys = keys_in(last.map_slots, broker.log_cleaner_io_buffer_load_factor)
            is_full = stops and last.map_keys >= max_keys
            found[str(each.log.topic_partition)] = LateThoughCleaned(last.ended_ms, is_full)
    return found
