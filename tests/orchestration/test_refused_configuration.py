"""A run whose own configuration can't be accepted says so; it is no outage, and no other work waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.assets.outage import OUTAGE_TAG
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import IngestWorld, ingest_world


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def tags(world: World, run_id: str) -> dict[str, str]:
    run = world.instance.get_run_by_id(run_id)
    assert run
    return dict(run.tags)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"topics": ["users"], "topic_partitions": ["users-0"]}, "topics and topic_partitions are both given"),
        ({"topics": ["users", "a/b"]}, "'a/b'"),
        ({"topic_partitions": ["users-0", "users"]}, "'users' is not a topic-partition"),
        ({"topics": ["users"], "config": {"segment.ms": "soon"}}, "segment.ms"),
        ({"topics": ["users"], "skip_lost": True, "reconcile": True}, "skip_lost and reconcile are both given: give"),
    ],
)
def test_an_ingest_that_is_refused_keeps_the_sensor_from_nothing(
    here: IngestWorld, config: dict[str, Any], says: str
) -> None:
    here.knows("users", 0)
    here.produce("users", ("a", "1"))
    for _ in range(2):
        result = here.ingest(**config)
        assert says in here.failure(result)
        assert OUTAGE_TAG not in tags(here.world, result.run_id)

    assert "users-0" in here.asked()


def test_an_ingest_that_this_machine_is_not_set_up_for_is_an_outage(here: IngestWorld) -> None:
    here.knows("users", 0)
    (here.world.path / "kafka.properties").write_text("group.id=mine\n")

    assert OUTAGE_TAG in tags(here.world, here.ingest(topics=["users"]).run_id)


def test_a_purge_that_is_refused_is_no_outage(world: World) -> None:
    world.topic("users")
    config = {"ops": {"delete_retired_files": {"config": {"orphan_grace_ms": -5}}}}

    result = world.run_job("purge", dg.RunRequest(run_config=config))

    failure = result.failure_data_for_node("delete_retired_files")
    assert failure
    assert failure.user_failure_data
    assert "nothing was done: orphan_grace_ms is -5" in (failure.user_failure_data.description or "")
    assert OUTAGE_TAG not in tags(world, result.run_id)
