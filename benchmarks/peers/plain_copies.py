"""What reading and writing the same bytes costs at least, whatever is done to the records on the way.

floor   plain pyarrow, in as many processes as cores, each with an equal share of the bytes: every row group of every
        input is decoded, and encoded as keptlog encodes
copy    the operating system copies the files

They leave everything as it is. What a clean drops, or keeps without looking at it, they still pay for, so a clean can
be below them.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers import Left, Setup, Work
from keptlog.engine.bundles import contiguous_runs
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_writer import WRITER_OPTIONS, batch_rows

_SPAWN = multiprocessing.get_context("spawn")


def open_peer(setup: Setup) -> PlainCopies:
    pool = ProcessPoolExecutor(setup.cores, mp_context=_SPAWN, initializer=pa.set_cpu_count, initargs=(1,))
    for started in [pool.submit(_ready) for _ in range(setup.cores)]:
        started.result()
    return PlainCopies(pool, setup.cores)


@dataclass(frozen=True)
class PlainCopies:
    """Copies in processes that wait for work."""

    pool: ProcessPoolExecutor
    cores: int

    def prepare(self, work: Work) -> None:
        pass

    def close(self) -> None:
        self.pool.shutdown()

    def run(self, work: Work) -> Left:
        segments = [segment for step in work.log.steps for segment in step.segments]
        share_bytes = -(-sum(segment.size_bytes for segment in segments) // self.cores)
        # A name is only unique inside of its topic-partition.
        numbers = {segment.path: number for number, segment in enumerate(segments)}
        copy = {"floor": _encode_again, "copy": _copy}[work.variant]
        shares = [
            [(segment.path, str(work.output / f"{numbers[segment.path]}.parquet")) for segment in share]
            for share in contiguous_runs(segments, share_bytes)
        ]
        return Left(tuple(path for paths in self.pool.map(copy, shares) for path in paths))


def _ready() -> None:
    """Called to have the process import this module."""


def _encode_again(copies: Sequence[tuple[str, str]]) -> list[str]:
    for source, target in copies:
        # Reading ahead costs a tenth here, as it would keptlog.
        with pq.ParquetFile(source, pre_buffer=False) as parquet:
            first = parquet.metadata.row_group(0)
            options = {"write_batch_size": batch_rows(first.num_rows, first.total_byte_size), **WRITER_OPTIONS}
            with pq.ParquetWriter(target, SCHEMA, **options) as writer:
                for index in range(parquet.num_row_groups):
                    writer.write_table(parquet.read_row_group(index, use_threads=False))
    return [target for _, target in copies]


def _copy(copies: Sequence[tuple[str, str]]) -> list[str]:
    for source, target in copies:
        shutil.copyfile(source, Path(target))
    return [target for _, target in copies]
