"""The rate at which a clean reads and writes, on a clock that only sleep moves."""

from __future__ import annotations

import pickle
import random
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from keptlog.engine.tasks import Sizes
from keptlog.log.counted import counted
from keptlog.log.record import Record
from keptlog.log.segment import total_bytes
from keptlog.spark.jobs import spark_engine
from keptlog.storage.throttle import Throttle, ThrottledFiles
from tests.building import Clean
from tests.spark.local_log import LocalFiles, live_records, write_segments

RATE = 1000.0


@dataclass(frozen=True)
class Clock:
    """Time that stands still but for sleep. It is kept in a file, for tasks are processes of their own."""

    folder: str

    @property
    def _slept(self) -> Path:
        return Path(self.folder) / "slept"

    def monotonic(self) -> float:
        return sum(float(line) for line in self._slept.read_text().splitlines()) if self._slept.exists() else 0.0

    def sleep(self, seconds: float) -> None:
        with self._slept.open("a") as slept:
            slept.write(f"{seconds!r}\n")


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


@pytest.mark.parametrize("tasks", [1, 2])
def test_all_tasks_of_a_clean_together_keep_to_the_rate(spark: SparkSession, tmp_path: Path, tasks: int) -> None:
    """Keys and values are read, what survives is written; of each file a little is read at each opening."""
    dice = random.Random(3)
    records = [Record(offset, b"%d" % (offset // 2), dice.randbytes(4000), 1) for offset in range(1000)]
    segments = write_segments(tmp_path / Clean.topic, records, 250)
    clock = Clock(str(tmp_path))
    sizes = Sizes() if tasks == 1 else Sizes(whole_log_records=0, run_bytes=total_bytes(segments) // tasks)
    engine = spark_engine(lambda: spark, LocalFiles(), sizes, Throttle(RATE, clock.monotonic, clock.sleep))
    said: list[str] = []
    locations = {Clean.topic: str(tmp_path / Clean.topic)}
    [outcome] = engine.rewrite([Clean(0, 1000).step(segments)], locations, "run", said.append)
    assert said[-1] == f"rewriting 1 log in {counted(tasks, 'task')}"
    assert len(live_records(outcome)) == 500
    least_bytes = total_bytes(segments) + total_bytes(outcome.added)
    # Sleep takes no time here, so tasks may run one after the other that would run at once: each at its share.
    assert least_bytes <= RATE * clock.monotonic() <= 1.3 * tasks * least_bytes
