"""The rate of a clean holds for all its tasks together, whatever processes they are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from keptlog.engine.tasks import Sizes
from keptlog.log.record import Record
from keptlog.log.segment import total_bytes
from keptlog.log.words.counted import counted
from keptlog.spark.jobs import spark_engine
from keptlog.storage.throttle import Throttle
from tests.building import Clean
from tests.local_log import LocalFiles, live_records, write_segments
from tests.storage.clock import Clock

RATE = 1000.0


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
