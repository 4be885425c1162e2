"""One try of one task, and the paths that are its own.

Spark may run a task twice, one after the other or at once, so no two tries ever write the same path. What a task hands
on to the next job lies in the topic's staging folder, which is emptied when the engine is done with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.log.segment_path import partition_folder, watermarks_folder
from keptlog.log.topic_partition import TopicPartition

if TYPE_CHECKING:
    from keptlog.storage.files import Files


@dataclass(frozen=True, slots=True)
class Attempt:
    """What sets the paths of a try apart from those of every other; ``location`` is where a topic's data lies."""

    files: Files
    run_id: str
    task_id: int
    """The task's number in its job. Two jobs have the same numbers, but never the same attempt."""
    attempt_id: str
    """Differs from try to try, and from job to job, whoever makes them."""
    given: list[str] = field(default_factory=list, compare=False)
    """All paths that this try was given so far, in their order: it writes nowhere else."""

    def segment(self, location: str, topic_partition: TopicPartition, base_offset: int) -> str:
        """The path of a new segment."""
        folder = partition_folder(location, topic_partition.partition)
        return self._given(f"{folder}/{self._name(f'{base_offset:020d}')}.parquet")

    def watermarks(self, location: str, topic_partition: TopicPartition) -> str:
        """The path of a log's new watermarks."""
        return self._given(f"{watermarks_folder(location, topic_partition.partition)}/{self._name('marks')}.arrow")

    def staged(self, location: str, prefix: str) -> str:
        """A path for the next job to read from."""
        return self._given(f"{staging_folder(location, self.run_id)}/{self._name(prefix)}.arrow")

    def _given(self, path: str) -> str:
        self.given.append(path)
        return path

    def _name(self, prefix: str) -> str:
        return f"{prefix}-{self.run_id}-{self.task_id}-{self.attempt_id}"


def staging_folder(location: str, run_id: str) -> str:
    """Where a topic's maps and lists lie while an engine runs."""
    return f"{location}/staging/{run_id}"
