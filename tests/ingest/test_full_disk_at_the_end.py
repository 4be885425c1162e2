"""A disk that is full only when a task waits for what it has written: its topic says so, and the others land.

It was told as a failure of Spark and tried again and again, each time with the whole segment left; and no topic landed.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from keptlog.home import wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.whole_file import sync
from tests.in_process import in_process_engine
from tests.ingest.memory import MemorySource
from tests.logs import open_store


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    store = open_store(tmp_path)
    return Ingest(store, in_process_engine(store.files), wall_clock_ms)


def refuse_fsync(monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    def refuse(path: Path) -> None:
        if below in path.parts and path.suffix == ".parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(path)

    monkeypatch.setattr("keptlog.table.io.durable_at_end.sync", refuse)


def test_the_topic_says_so_leaves_no_file_and_keeps_no_other_out(
    ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_fsync(monkeypatch, below="a")
    source = MemorySource({"a": (25,), "b": (7,)})
    result = ingest.carry_out(ingest.plan(source), "run")
    assert [str(each.topic_partition) for each in result.committed] == ["b-0"]
    assert list(result.failed) == ["a-0"]
    assert "is full" in str(result.failed["a-0"])
    assert [path.name for path in tmp_path.rglob("*.parquet") if "a" in path.parts] == []
