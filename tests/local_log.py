"""One log on local files, as the engine finds it: segments, and the records after a step over them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from keptlog.log.record import Record
from keptlog.log.result import RewriteResult
from keptlog.log.segment import Segment
from keptlog.storage.files import StoredFile
from keptlog.storage.schema import SCHEMA, from_arrow, to_arrow


@dataclass(frozen=True)
class LocalFiles:
    """Files on the local disk; refuses to create a file twice."""

    task_modules: ClassVar[Sequence[str]] = ()

    def within(self, paths: Iterable[str]) -> LocalFiles:  # noqa: ARG002  # as any Files
        return self

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:  # noqa: ARG002  # as any Files
        return pa.OSFile(path, "rb")

    @contextmanager
    def read_ahead(self, inputs: Sequence[tuple[str, int]]) -> Iterator[LocalFiles]:  # noqa: ARG002  # as above
        yield self

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch(exist_ok=False)
        with pa.OSFile(path, "wb") as sink:
            yield sink

    @contextmanager
    def durable_at_end(self) -> Iterator[LocalFiles]:
        yield self

    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def list(self, folder: str) -> Iterator[StoredFile]:
        for path in Path(folder).rglob("*"):
            if path.is_file():
                yield StoredFile(str(path), path.stat().st_size, path.stat().st_mtime_ns // 1_000_000)


@dataclass(frozen=True)
class FailingFiles(LocalFiles):
    """Writes the first segments of a log, up to ``failures`` of them, but loses the connection before they are done."""

    journal: str = ""
    failures: int = 1

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with super().open_output(path) as sink:
            yield sink
        if path.endswith(".parquet") and self._fails_now():
            raise ConnectionError("the storage went away\nand this is a second line")

    def _fails_now(self) -> bool:
        for number in range(self.failures):
            try:
                os.close(os.open(f"{self.journal}.{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return True
        return False


def write_segment(path: Path, records: Sequence[Record], row_group_rows: int = 1_000_000) -> Segment:
    """Records as one segment, with the metrics that Iceberg would have of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(to_arrow(0, records), path, row_group_size=row_group_rows, store_schema=False)
    horizons = [record.delete_horizon_ms for record in records if record.delete_horizon_ms is not None]
    return Segment(
        path=str(path),
        base_offset=records[0].offset,
        last_offset=records[-1].offset,
        first_timestamp_ms=min(record.timestamp_ms for record in records),
        largest_timestamp_ms=max(record.timestamp_ms for record in records),
        record_count=len(records),
        size_bytes=path.stat().st_size,
        tombstone_count=sum(record.is_tombstone for record in records),
        unkeyed_count=sum(record.key is None for record in records),
        stamped_count=len(horizons),
        earliest_delete_horizon_ms=min(horizons, default=None),
    )


def write_segments(folder: Path, records: Sequence[Record], records_each: int) -> list[Segment]:
    """Records in segments of so many each."""
    pieces = [records[start : start + records_each] for start in range(0, len(records), records_each)]
    return [write_segment(folder / f"in-{piece[0].offset:020d}.parquet", piece) for piece in pieces]


def live_segments(outcome: RewriteResult) -> list[Segment]:
    """The segments after the outcome is committed."""
    live = (set(outcome.step.segments) - set(outcome.removed)) | set(outcome.added)
    return sorted(live, key=lambda segment: segment.base_offset)


def live_records(outcome: RewriteResult) -> list[Record]:
    """All records after the outcome is committed."""
    return read(segment.path for segment in live_segments(outcome))


def read(paths: Iterable[str]) -> list[Record]:
    """The records of segment files, in order."""
    return [record for path in paths for record in from_arrow(pq.ParquetFile(path).iter_batches(columns=SCHEMA.names))]
