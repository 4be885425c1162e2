"""Segments out of the rows that the page shows, and rows out of what became of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from keptlog.engine.tasks import Sizes
from keptlog.log.record import Record
from keptlog.log.result import RewriteResult, verify
from keptlog.log.segment import Segment
from keptlog.log.steps import CleanStep
from keptlog.log.strategy import Strategy, StrategyKind
from tests.engine_story.page import Row
from tests.in_process import in_process_engine
from tests.local_log import LocalFiles, live_records, write_segment

FILES = LocalFiles()
WHOLE = Sizes()
"""As they are by default: a log of the page is far too small to be cut."""
BY_HEADER = Strategy(StrategyKind.HEADER, "v")


def ms(seconds: str) -> int:
    """What the page writes as 70s."""
    return int(seconds.removesuffix("s")) * 1000


def record(row: Row) -> Record:
    """One record; a value that the page leaves out is as good as any."""
    value = row.get("value", "x")
    return Record(
        offset=int(row["offset"]),
        key=row["key"].encode(),
        value=None if value == "null" else value.encode(),
        timestamp_ms=0,
        headers=(("v", struct.pack(">q", int(row["version"]))),) if "version" in row else (),
        delete_horizon_ms=ms(row["until"]) if row.get("until") else None,
    )


def write(folder: Path, rows: Iterable[Row]) -> list[Segment]:
    """The rows' segments: one for each name in the column ``segment``, or one in all."""
    return [
        write_segment(folder / f"in-{name}.parquet", [record(row) for row in of_segment])
        for name, of_segment in groupby(rows, lambda row: row.get("segment", "A"))
    ]


def cleaned(step: CleanStep, folder: Path, run_id: str, sizes: Sizes = WHOLE) -> RewriteResult:
    """The step, carried out and verified; its log is one segment run unless ``sizes`` cut it."""
    [outcome] = in_process_engine(FILES, sizes).rewrite([step], {step.topic_partition.topic: str(folder)}, run_id)
    verify(outcome)
    return outcome


def after(outcome: RewriteResult, rows: Sequence[Row]) -> list[Row]:
    """All records after the outcome is committed, with the columns that these rows of the page have."""
    names = rows[0].keys()
    return [{name: cell for name, cell in _cells(each).items() if name in names} for each in live_records(outcome)]


def _cells(each: Record) -> Row:
    version = BY_HEADER.version_of(each)
    return {
        "offset": str(each.offset),
        "key": (each.key or b"").decode(),
        "value": "null" if each.value is None else each.value.decode(),
        "until": "" if each.delete_horizon_ms is None else f"{each.delete_horizon_ms // 1000}s",
        "version": "" if version is None else str(version),
    }
