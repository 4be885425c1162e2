"""Everything that is measured, keptlog among it, behind one face.

    keptlog_clean.py   keptlog's own engine on Spark
    plain_copies.py    what must be paid at least: decode and encode of all bytes (the floor), and a file copy
    duckdb_sql.py      three queries
    polars_lazy.py     one query
    spark_sql.py       three queries
    kafka_cleaner.py   Apache Kafka's own class, on the same records in Kafka's format
    table_formats.py   Apache Hudi's and Apache Paimon's own compaction, on the same records in tables of theirs
                       (table_format_driver.py: in a Spark of their own)

All get the same files and must leave the same records: offsets, times, keys, values, headers and delete horizons, in
offset order. All write zstd at level 1, and what they have written is on the disk before the clock stops. What each
may leave out, the head of its module says. Nobody, keptlog neither, plans the clean or commits its outcome to a table.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.generated_log import GeneratedLog
from keptlog.log.steps import Compact


class PeerMissing(Exception):
    """A peer can't be had on this machine; says why."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How the process of a peer is set up; contenders with the same setup share it."""

    peer: str
    """The module."""
    cores: int
    is_pinned: bool = False
    """Whether the process and all that it starts have these cores and no others."""
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """One run: what to clean, in which way, and the folder, still empty, for all that is written."""

    log: GeneratedLog
    variant: str
    output: Path
    run_id: str

    @property
    def step(self) -> Compact:
        """The first of the steps; they differ in nothing but the topic-partition and its segments."""
        return self.log.steps[0]


@dataclass(frozen=True, slots=True)
class Left:
    """The log as a run left it: Parquet files, new ones and kept ones, or a Kafka log directory.

    ``is_state`` says that the files have the rows of the log in no order, and no horizons of tombstones.
    """

    paths: tuple[str, ...] = ()
    kafka_log: Path | None = None
    is_state: bool = False
    notes: Mapping[str, float] = field(default_factory=dict)


class Peer(Protocol):
    """One of the modules, with its session."""

    def prepare(self, work: Work) -> None:
        """Whatever is not to be measured."""
        ...

    def run(self, work: Work) -> Left:
        """The measured part."""
        ...

    def close(self) -> None:
        """End the session, and every process that was started for it."""
        ...


def open_peer(setup: Setup) -> Peer:
    """Import what a peer needs, and start its session.

    Raises:
        PeerMissing: it can't be had here.
    """
    peer: Peer = importlib.import_module(f"benchmarks.peers.{setup.peer}").open_peer(setup)
    return peer
