"""A log too large for one commit, on a real Spark session: stopped after a leg, gone on with, and what is left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from keptlog.home import new_id
from keptlog.log.broker import BrokerConfig
from keptlog.log.record import NewRecord, Record
from keptlog.log.reference import clean_records, latest_values
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.verify import verify_log
from keptlog.spark.jobs import spark_engine
from keptlog.table.store import LogStore
from tests.logs import open_store
from tests.spark.test_engine import CUT, some_records

NOW_MS = 1_800_000_000_000
RETENTION_MS = 1000
TOPIC = "t"


class Stopped(BaseException):
    """What no handler of errors sees."""


@dataclass
class Scene:
    """A topic of one log whose cleans are cut into several Spark tasks."""

    store: LogStore
    spark: SparkSession
    said: list[str]
    commit_max_bytes: int = 2**40
    stop_before: str = "no leg"

    def clean(self) -> Pass:
        engine = spark_engine(lambda: self.spark, self.store.files, CUT)
        broker = BrokerConfig(keptlog_cleaner_commit_max_bytes=self.commit_max_bytes)
        cleaner = Cleaner(self.store, engine, broker)
        begun = cleaner.begin([], new_id(), now_ms=NOW_MS, requested=True)
        return cleaner.commit(cleaner.stage(begun, progress=self._said))

    def _said(self, doing: str) -> None:
        self.said.append(doing)
        if self.stop_before in doing:
            raise Stopped

    def append(self, records: list[Record]) -> None:
        for batch in range(0, len(records), 50):
            new = [NewRecord(each.key, each.value, each.timestamp_ms, 0) for each in records[batch : batch + 50]]
            self.store.append(TOPIC, new, new_id(), NOW_MS)

    @property
    def records(self) -> list[Record]:
        return [record for _, record in self.store.read(TOPIC, 0)]

    @property
    def bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.store.logs(TOPIC)[0].segments)

    @property
    def cleans(self) -> int:
        """How many commits cleans have made."""
        snapshots = self.store.load_table(TOPIC).metadata.snapshots
        return sum(each.summary is not None and each.summary.get("keptlog.operation") == "clean" for each in snapshots)


@pytest.fixture
def scene(spark: SparkSession, tmp_path: Path) -> Scene:
    """With a clean section of several segments, and a dirty one."""
    scene = Scene(open_store(tmp_path), spark, [])
    settings = {"cleanup.policy": "compact", "segment.ms": "1", "delete.retention.ms": str(RETENTION_MS)}
    scene.store.create_topic(TOPIC, 1, settings | {"internal.segment.bytes": "4000"})
    scene.append(some_records(500, 300))
    assert not scene.clean().failed
    scene.append(some_records(300, 300, first_offset=500, seed=2))
    return scene


def test_a_clean_that_was_stopped_after_its_first_leg_is_gone_on_with_in_legs_and_leaves_what_the_rules_leave(
    scene: Scene,
) -> None:
    before, checkpoint = scene.records, scene.store.logs(TOPIC)[0].checkpoint
    expected = clean_records(before[:-300], before[-300:], NOW_MS, RETENTION_MS)
    scene.commit_max_bytes, scene.stop_before, commits = scene.bytes // 4, ", leg 2 of", scene.cleans
    with pytest.raises(Stopped):
        scene.clean()
    assert scene.cleans == commits + 1
    assert scene.store.logs(TOPIC)[0].checkpoint == checkpoint
    between = scene.records
    assert {each.offset for each in expected} < {each.offset for each in between} < {each.offset for each in before}
    assert latest_values(between) == latest_values(before)
    assert all(each.passed for each in verify_log(scene.store, scene.store.logs(TOPIC)[0], NOW_MS))

    scene.stop_before = "no leg"
    assert not scene.clean().failed
    assert scene.cleans >= commits + 3
    assert scene.records == expected
    assert scene.store.logs(TOPIC)[0].checkpoint == 800
    assert all(each.passed for each in verify_log(scene.store, scene.store.logs(TOPIC)[0], NOW_MS))
    last = scene.said[-1]  # rewriting t-0, leg 5 of 5 in 2 tasks
    assert int(last.split(" of ")[1].split()[0]) >= 3
    assert any(", leg " in each and not each.endswith(" in 1 task") for each in scene.said)
