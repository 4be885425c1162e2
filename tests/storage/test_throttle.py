"""The rate at which a clean reads and writes, on a clock that only sleep moves."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pyarrow as pa
import pytest

from keptlog.storage.throttle import Throttle, ThrottledFiles
from tests.local_log import LocalFiles
from tests.storage.clock import Clock

RATE = 1000.0


def test_what_is_read_and_written_counts_and_sleep_makes_up_for_it(tmp_path: Path) -> None:
    clock = Clock(str(tmp_path))
    files = ThrottledFiles(LocalFiles(), Throttle(RATE, clock.monotonic, clock.sleep))
    with files.open_output(str(tmp_path / "a")) as sink:
        sink.write(b"x" * 3000)
    assert clock.monotonic() == pytest.approx(3)
    with files.open_input(str(tmp_path / "a")) as source:
        assert source.read(1000) == b"x" * 1000
        assert clock.monotonic() == pytest.approx(4)
        source.seek(2900)
        assert source.read() == b"x" * 100
    assert clock.monotonic() == pytest.approx(4.1)


def test_time_that_has_passed_anyway_is_not_slept_again(tmp_path: Path) -> None:
    clock = Clock(str(tmp_path))
    files = ThrottledFiles(LocalFiles(), Throttle(RATE, clock.monotonic, clock.sleep))
    clock.sleep(2.5)
    with files.open_output(str(tmp_path / "a")) as sink:
        sink.write(b"x" * 2000)
        assert clock.monotonic() == pytest.approx(2.5)
        sink.write(b"x" * 2000)
    assert clock.monotonic() == pytest.approx(4)


def test_arrow_reads_and_writes_the_same_through_a_throttle(tmp_path: Path) -> None:
    clock = Clock(str(tmp_path))
    files = ThrottledFiles(LocalFiles(), Throttle(RATE, clock.monotonic, clock.sleep))
    table = pa.table({"key": [b"a", b"b"] * 500})
    with files.open_output(str(tmp_path / "a")) as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with files.open_input(str(tmp_path / "a")) as source:
        assert pa.ipc.open_file(source).read_all() == table
    assert [file.path for file in files.list(str(tmp_path))].count(str(tmp_path / "a")) == 1
    files.delete(str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()


def test_a_throttle_travels_to_the_executors() -> None:
    throttle = Throttle(RATE, time.monotonic, time.sleep)
    assert pickle.loads(pickle.dumps(throttle)) == throttle  # noqa: S301  # just pickled
    assert throttle.share_of(4).bytes_per_second == RATE / 4
