"""Tasks that write what a source holds into segments.

A **part** is an offset range of one topic-partition; its source knows how to read it. What it reads are Arrow tables,
and they go straight to the segment writer: no value ever is a Spark row.

    part  --read--> tables --SegmentWriter--> staged segments

This is all that a worker of an ingest needs to load: no table, no catalog.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from keptlog.engine.attempt import Attempt
from keptlog.engine.jobs import described
from keptlog.errors import KeptlogError
from keptlog.log.topic_partition import TopicPartition
from keptlog.storage.segment_writer import SegmentWriter


class Skip(Protocol):
    """Takes one line about what was left out.

    Where it is whole, and only no table can hold it, its records come along: ``offset``, ``key`` and ``is_tombstone``.
    Without them it is broken, and nobody knows what is in there.
    """

    def __call__(self, line: str, whole: pa.Table | None = None, /) -> None: ...


@dataclass(slots=True)
class LeftOut:
    """What was left out of a part, for a task's result."""

    skipped: list[str] = field(default_factory=list)
    """A line for each."""
    unfit: list[str] = field(default_factory=list)
    """The lines of what is whole, and only no table can hold."""

    def __call__(self, line: str, whole: pa.Table | None = None, /) -> None:
        self.skipped.append(line)
        if whole is not None:
            self.unfit.append(line)


class Part(Protocol):
    """The offsets in [from, end) of one topic-partition, which one task is to read. Plain data that pickles."""

    @property
    def topic_partition(self) -> TopicPartition:
        """The one here."""
        ...

    @property
    def from_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def weight(self) -> int:
        """How much work it is, compared with other parts of its source: bytes, or offsets where those are unknown."""
        ...

    def read(self, skip: Skip) -> Iterator[pa.Table]:
        """Tables of ``SCHEMA`` with the partition here and rising offsets in [from, end).

        ``skip`` is told of what is left out.

        Raises:
            KeptlogError: it can't be read; names the topic-partition and the place. It stops this one alone; whatever
                else is raised is tried again, and then fails all that is ingested with it. What lies below its
                ``whole_before_offset`` was given before.
        """
        ...


@dataclass(frozen=True, slots=True)
class IngestTask:
    """Writes one part."""

    part: Part
    location: str
    """Where the topic's data lies."""
    segment_bytes: int

    def run(self, attempt: Attempt) -> dict[str, Any]:
        """Stage the part's segments; if only its beginning can be had, those, with why it is not more."""
        left_out = LeftOut()
        path_for = partial(attempt.segment, self.location, self.part.topic_partition)
        writer = SegmentWriter(attempt.files, path_for, self.segment_bytes)
        try:
            stopped = self._write(writer, left_out)
            segments = writer.finish()
        except BaseException:
            writer.abandon()
            raise
        staged = {"segments": [dataclasses.asdict(segment) for segment in segments]}
        return staged | dataclasses.asdict(left_out) | stopped

    def _write(self, writer: SegmentWriter, skip: Skip) -> dict[str, Any]:
        """Write what the part gives; tells where it ends, and why, if that is before its end."""
        try:
            for table in self.part.read(skip):
                writer.write(table)
        except KeptlogError as error:
            end_offset = error.whole_before_offset
            if end_offset is None or end_offset <= self.part.from_offset:
                raise
            return {"end_offset": end_offset, "stopped": described(error)}
        return {}
