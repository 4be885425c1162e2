"""Why an ingest left a topic-partition alone that it had begun to read: a note beside the log (ADR 79).

That something was lost, or can't be kept, may be known only from what was read: whoever merely compares positions sees
records to be read, and nothing wrong. So the ingest leaves its reason here. It counts while the log stands where the
ingest left it, and there is still something to be read; any move of the log ends it:

    here    [ 0 ... 120 )   note at 120: stopped        [ 0 ........ 160 )   note at 120: of the past
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keptlog.log.source import IngestPlan, SourceIdentity, StoredSource


@dataclass(frozen=True, slots=True)
class StoppedIngest:
    """The note of one topic-partition; stored with it, under these names."""

    position: int | None
    """The next offset to be read; null if none ever was."""
    truncations: int
    """How many the log here had had: it may come to the same position again."""
    source: SourceIdentity
    reason: str
    """One line: what is wrong, and the choice."""
    since_ms: int
    """When an ingest stopped there first."""

    def counts(self, partition: int, stored: StoredSource) -> bool:
        """Whether the log still stands where this was found, with the same source."""
        position = stored.positions[partition] if partition < len(stored.positions) else None
        is_there = position == self.position and stored.truncations.get(partition, 0) == self.truncations
        return is_there and (stored.source is None or stored.source.may_be(self.source))


def still_stopped(notes: Mapping[int, StoppedIngest], plan: IngestPlan, stored: StoredSource) -> dict[int, str]:
    """By partition, why an ingest stops at what there is to be read."""
    numbers = {each.partition for each in plan.ranges}
    return {number: note.reason for number, note in notes.items() if number in numbers and note.counts(number, stored)}
