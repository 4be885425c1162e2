"""Every task that reads several small files of an object store asks for them side by side."""

from __future__ import annotations

import pytest

from keptlog.engine.attempt import Attempt
from keptlog.engine.drop_tasks import DroppedLog, DropTask
from keptlog.engine.jobs import Task
from keptlog.engine.latest import MapByTask
from keptlog.engine.map_tasks import CompareTask, MapTask
from keptlog.engine.search_tasks import SearchTask
from keptlog.kernels.wanted_keys import WantedKeys
from keptlog.log.search import SearchedFile
from keptlog.log.steps import Compact, Drop
from keptlog.storage.key_hash import KeyHasher
from keptlog.table.store import LogStore
from tests.table.counted_s3 import CountedS3
from tests.table.stores import NOW_MS, TOPIC, new_id, step_for
from tests.table.test_requests import bucket, filled, s3, server, store

__all__ = ["bucket", "s3", "server", "store"]

SEGMENTS = 8
HASHER = KeyHasher(b"secret")
NOBODYS = HASHER.hash(b"nobody's key")


def task_over(step: Compact, location: str, kind: str) -> Task:
    drop = Drop(step.topic_partition, (), {NOBODYS: 1000}, step.checkpoint, 0, NOW_MS, 2**30)
    files = tuple(SearchedFile(each.path, each.size_bytes) for each in step.segments)
    tasks: dict[str, Task] = {
        "search": SearchTask(files, WantedKeys(HASHER, (NOBODYS,)), None),
        "drop": DropTask(HASHER, tuple((DroppedLog(0, drop, location), each) for each in step.segments), 2**20),
        "map": MapTask(0, step, step.segments, location),
        "compare": CompareTask(0, step, step.segments, location, MapByTask(step), with_watermarks=False),
    }
    return tasks[kind]


@pytest.mark.parametrize("kind", ["search", "drop", "map", "compare"])
def test_small_files_are_asked_for_once_and_side_by_side(store: LogStore, s3: CountedS3, kind: str) -> None:
    filled(store, 1, SEGMENTS)
    task = task_over(step_for(store.logs(TOPIC)[0]), store.data_location(TOPIC), kind)
    s3.forget()
    s3.delay_seconds = 0.3
    try:
        task.run(Attempt(store.files, new_id(), 0, new_id()))
    finally:
        s3.delay_seconds = 0.0
    assert s3.kinds()["GET"] == SEGMENTS
    assert s3.most_at_once > 1
