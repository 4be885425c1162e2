"""However many logs of a run that died are still to be marked, its tags hold their names, and none is too long."""

from __future__ import annotations

import time
from collections.abc import Mapping

import dagster as dg
import pytest

from keptlog.dagster.assets.long_tags import tag_text
from keptlog.dagster.orchestration.own_runs import MARKED_TAG, UNMARKED_TAG
from keptlog.errors import StorageUnavailable
from keptlog.log.segment import Log
from keptlog.table.store import LogStore
from tests.orchestration.conftest import World
from tests.orchestration.instance import fail
from tests.orchestration.shipped import clean_logs, failed_run_sensor

LONGEST = 2_000
LARGE, SMALL = "a" * 80, "b" * 80


def test_of_many_long_names_exactly_those_that_are_left_are_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.now_ms = time.time_ns() // 1_000_000
    names = {topic: [f"{topic}-{number}" for number in range(count)] for topic, count in ((LARGE, 290), (SMALL, 10))}
    for topic in names:
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    config = {"ops": {"plan": {"config": {"logs": [*names[SMALL], *names[LARGE]]}}}}
    run = world.instance.create_run_for_job(clean_logs, run_config=config, status=dg.DagsterRunStatus.STARTED)
    fail(world.instance, run)
    away, really = {LARGE, SMALL}, LogStore.logs

    def logs(store: LogStore, topic: str) -> list[Log]:
        if topic in away:
            raise StorageUnavailable("its bucket is gone")
        return really(store, topic)

    def tags() -> Mapping[str, str]:
        world.tick(failed_run_sensor)
        found = world.instance.get_run_by_id(run.run_id)
        assert found
        assert max(map(len, found.tags.values())) <= LONGEST
        return found.tags

    monkeypatch.setattr(LogStore, "logs", logs)
    assert sorted((tag_text(tags(), UNMARKED_TAG) or "").split(",")) == [*sorted(names[LARGE]), *sorted(names[SMALL])]
    away.remove(LARGE)
    assert (tag_text(tags(), UNMARKED_TAG) or "").split(",") == names[SMALL]
    away.clear()
    assert MARKED_TAG in tags()
    assert [store_log.uncleanable is not None for topic in names for store_log in world.store.logs(topic)] == [True] * 2
