"""A home with very many topics, or with a topic of very many segments, made in little time.

Only tables are made, as real commits would make them; of the segments there is the entry in the manifest and no file,
because whoever judges, plans and commits reads none. Nothing is synced to the disk on the way.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog

from keptlog.home import new_id
from keptlog.log.segment import Segment
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.topics import TopicCreation
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.state import first_dirty_offset, log_end_offset
from keptlog.table.namespaces import CATALOG_NAME

_SPAWN = multiprocessing.get_context("spawn")
_HOUR_MS = 3_600_000
SEGMENT_RECORDS = 1_000
CONFIG = {"cleanup.policy": "compact", "segment.ms": str(_HOUR_MS), "min.cleanable.dirty.ratio": "0.9"}
"""Compacted, closed after an hour, and due only when nearly all of it is dirty."""


@dataclass(frozen=True, slots=True)
class Shape:
    """``segments`` is of each topic-partition; they come in as many appends as ``appends`` says, in equal shares."""

    partitions: int = 10
    segments: int = 5
    appends: int = 1


def topic_name(number: int) -> str:
    return f"shop.topic-{number:04d}"


def make_topics(home: Path, topics: int, shape: Shape, now_ms: int, processes: int = 2) -> None:
    """Make a home with topics 0 to ``topics``; half of each log's segments are clean, all were appended a day ago."""
    _plain_catalog(home).create_namespace_if_not_exists("keptlog")
    shares = [range(first, topics, processes) for first in range(processes)]
    with ProcessPoolExecutor(processes, mp_context=_SPAWN) as pool:
        for made in [pool.submit(_make, home, share, shape, now_ms) for share in shares]:
            made.result()


def add_segments(catalog: Catalog, topic: str, numbers: Iterable[int], partitions: Sequence[int], now_ms: int) -> None:
    """One append commit: to each of the partitions its segments of these numbers."""
    numbers = list(numbers)
    table = load_topic_table(catalog, topic)
    added = [
        data_file_of(partition, segment_of(table.location(), partition, number, now_ms - 24 * _HOUR_MS))
        for partition in partitions
        for number in numbers
    ]
    end = str((numbers[-1] + 1) * SEGMENT_RECORDS)
    ends = {log_end_offset(partition): end for partition in partitions}
    FileChange({"keptlog.operation": "append"}, ends, added).land(table)


def segment_of(location: str, partition: int, number: int, timestamp_ms: int) -> Segment:
    """The segment of this number as its writer would describe it."""
    base_offset = number * SEGMENT_RECORDS
    return Segment(
        path=f"{location}/data/partition={partition}/{base_offset:020d}-made-{number:032d}.parquet",
        base_offset=base_offset,
        last_offset=base_offset + SEGMENT_RECORDS - 1,
        first_timestamp_ms=timestamp_ms,
        largest_timestamp_ms=timestamp_ms + _HOUR_MS,
        record_count=SEGMENT_RECORDS,
        size_bytes=200_000,
    )


def _make(home: Path, numbers: range, shape: Shape, now_ms: int) -> None:
    catalog = _plain_catalog(home)
    partitions = range(shape.partitions)
    each = -(-shape.segments // shape.appends)
    for number in numbers:
        topic = topic_name(number)
        TopicCreation(topic, shape.partitions, CONFIG).carry_out(catalog, TableFiles(), new_id)
        for first in range(0, shape.segments, each):
            add_segments(catalog, topic, range(first, min(first + each, shape.segments)), partitions, now_ms)
        checkpoint = str(shape.segments // 2 * SEGMENT_RECORDS)
        table = load_topic_table(catalog, topic)
        table.transaction().set_properties(
            {first_dirty_offset(partition): checkpoint for partition in partitions}
        ).commit_transaction()


def _plain_catalog(home: Path) -> Catalog:
    """The embedded catalog without its syncs."""
    home.mkdir(parents=True, exist_ok=True)
    embedded = open_catalog(home)
    return load_catalog(
        CATALOG_NAME,
        **{**embedded.properties, "type": "sql", "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"},
    )
