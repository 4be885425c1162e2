"""Log directories of these tests, written by the book, and what is read back from the topics that they become."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keptlog.home import wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_logs import KafkaLogs
from keptlog.ingest.result import IngestResult
from keptlog.log.record import Record
from keptlog.progress import silent
from keptlog.sources.kafka_log.directory import log_directories
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.sources.kafka_log.encoder import PLAIN, BatchOptions, batch, write_segment

FIRST_MS = 1_600_000_000_000
COMPACT = {"cleanup.policy": "compact"}


def some_records(first_offset: int, count: int) -> list[Record]:
    """Records of few keys; every seventh is a tombstone."""
    return [
        Record(n, b"key-%d" % (n % 5), None if n % 7 == 6 else b"value %d" % n, FIRST_MS + n)
        for n in range(first_offset, first_offset + count)
    ]


def some_batch(first_offset: int, count: int = 10, options: BatchOptions = PLAIN) -> bytes:
    return batch(some_records(first_offset, count), options)


def flipped(data: bytes) -> bytes:
    """A batch with one wrong bit in it."""
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


def write_log(directory: Path, name: str, batches: Sequence[bytes], base_offset: int = 0) -> Path:
    """A segment of a log; gives its file."""
    return write_segment(directory / name, base_offset, batches)


def write_id(directory: Path, name: str, topic_id: str) -> None:
    (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


def write_log_starts(directory: Path, **log_starts: int) -> None:
    """Of partition 0 of each topic."""
    entries = "".join(f"{topic} 0 {offset}\n" for topic, offset in log_starts.items())
    (directory / "log-start-offset-checkpoint").write_text(f"0\n{len(log_starts)}\n{entries}")


def write_high_watermarks(directory: Path, **high_watermarks: int) -> None:
    """Of partition 0 of each topic."""
    entries = "".join(f"{topic} 0 {offset}\n" for topic, offset in high_watermarks.items())
    (directory / "replication-offset-checkpoint").write_text(f"0\n{len(high_watermarks)}\n{entries}")


def write_first_dirty(directory: Path, topic: str, offset: int) -> None:
    """Of partition 0: up to where the broker's cleaner has come."""
    (directory / "cleaner-offset-checkpoint").write_text(f"0\n1\n{topic} 0 {offset}\n")


def run_import(
    store: LogStore, directory: Path, run_id: str, *, skip_lost: bool = False, reconcile: bool = False, **how: Any
) -> IngestResult:
    """Import all topics of a directory under their own names, without Spark; ``how`` are fields of ``KafkaLogs``."""
    logs = log_directories(directory)
    topics = {log.topic_partition.topic for log in logs}
    by_topic = {topic: [log for log in logs if log.topic_partition.topic == topic] for topic in sorted(topics)}
    ingest = Ingest(store, in_process_engine(store.files), wall_clock_ms)
    source = KafkaLogs(by_topic, COMPACT, partial(ingest.engine.start_jobs, run_id, silent), **how)
    return ingest.carry_out(ingest.plan(source, skip_lost=skip_lost, reconcile=reconcile), run_id)


def records_of(store: LogStore, topic: str, partition: int = 0) -> list[Record]:
    return [record for _, record in store.read(topic, partition)]
