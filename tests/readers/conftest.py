"""The topic at every moment of its history, each in a folder that the page's code is run in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from keptlog.log.record import Record
from keptlog.storage.schema import from_arrow
from keptlog.table.store import LogStore
from tests.readers.prepared import MOMENTS, TOPIC, prepare

Rows = list[tuple[int, Record]]
"""Partition and record."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fetched", action="store_true", help="also try the readers that have to be fetched for it: 1.3 GB"
    )


def rows_of(table: pa.Table) -> Rows:
    """What an engine read, in the order of partition and offset."""
    numbers: Sequence[int] = table["partition"].to_pylist()
    rows = zip(numbers, from_arrow(table.to_batches()), strict=True)
    return sorted(rows, key=lambda row: (row[0], row[1].offset))


class Moment:
    """The topic as it stands at one moment; ``folder`` has a ``.keptlog``."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.store: LogStore = prepare(folder / ".keptlog", name)

    @property
    def rows(self) -> Rows:
        return list(self.store.read(TOPIC))

    @property
    def latest(self) -> Rows:
        return list(self.store.read(TOPIC, latest=True))


@pytest.fixture(scope="session", params=MOMENTS)
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Moment:
    return Moment(tmp_path_factory.mktemp("readers"), request.param)


@pytest.fixture
def moment(prepared: Moment, monkeypatch: pytest.MonkeyPatch) -> Moment:
    """Where the page's code finds ``.keptlog``, and nothing else that is configured."""
    monkeypatch.chdir(prepared.folder)
    monkeypatch.delenv("KEPTLOG_HOME", raising=False)
    return prepared


@pytest.fixture(autouse=True)
def same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """``keptlog`` is the one beside this Python, and Polars plans with PyIceberg without telling of a faster way."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
