"""What processes that live for two ticks each tell Dagster, where nobody has started a code server."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData

from keptlog.dagster.orchestration.still_told import ASKED_AGAIN_PER_TICK, in_turn
from tests.orchestration.conftest import World
from tests.orchestration.shipped import KEYS, clean_logs, dirty_ratio_sensor
from tests.orchestration.test_told_sections import LOGS, until_nothing_is_told


def test_what_was_wiped_and_is_planned_again_is_told_by_processes_of_two_ticks_each(world: World) -> None:
    """Each finds the cursor of the last one, and nothing new to tell. None lives for ten minutes."""
    topics = [f"topic{number}" for number in range(2 * ASKED_AGAIN_PER_TICK)]
    for topic in topics:
        world.topic(topic)
    until_nothing_is_told(world)
    keys = [KEYS.dirty(topic) for topic in topics]
    world.instance.wipe_assets(keys)
    run = world.instance.create_run_for_job(clean_logs, status=dg.DagsterRunStatus.STARTING)
    for topic, key in zip(topics, keys, strict=True):
        planned = AssetMaterializationPlannedData(key, partition=f"{topic}-0")
        event = dg.DagsterEvent.build_asset_materialization_planned_event(run.job_name, "clean", planned)
        world.instance.report_dagster_event(event, run.run_id)

    for _ in range(5):
        world.reopen()
        for _ in range(2):
            world.now_ms += 30_000
            world.tick(dirty_ratio_sensor)

    told = {topic: world.instance.get_materialized_partitions(KEYS.dirty(topic)) for topic in topics}
    assert told == {topic: {f"{topic}-0"} for topic in topics}


@pytest.mark.parametrize("lives", [1, 2])
@pytest.mark.parametrize("interval_ms", [30_000, 60_000, 90_000, 120_000])
@pytest.mark.parametrize("sections", [1, 12, 24, 36, 60, 300])
def test_each_section_has_its_turn_however_far_apart_ticks_are(sections: int, interval_ms: int, lives: int) -> None:
    """Ticks a minute apart passed over the same half of 24 sections in each round."""
    keys = [dg.AssetKey([f"topic{number:03}", "dirty"]) for number in range(sections)]
    left, now_ms = set(keys), 1_800_000_000_000
    at_ms: dict[dg.AssetKey, int] = {}

    for tick in range(6 * sections):
        if tick % lives == 0:
            at_ms = {}
        left.difference_update(in_turn(at_ms, keys, now_ms))
        now_ms += interval_ms

    assert left == set()


@pytest.mark.parametrize("lives", [1, 2])
def test_a_large_topic_is_told_to_its_end_before_others_have_their_turn_again(
    world: World, monkeypatch: pytest.MonkeyPatch, lives: int
) -> None:
    """It got as many logs a round as a tick has place for, and a round of very many topics takes hours."""
    monkeypatch.setattr("keptlog.dagster.orchestration.first_looks.ASKED_PER_TICK", 2)
    world.topic("users", LOGS)
    topics = [f"topic{number}" for number in range(8)]
    for topic in topics:
        world.topic(topic)

    for tick in range(4 + 2 + 1):  # four for the others, what the large topic takes, and one that is shared
        if tick % lives == 0:
            world.reopen()
        world.now_ms += 30_000
        world.tick(dirty_ratio_sensor)

    told = world.instance.get_materialized_partitions
    assert told(KEYS.clean("users")) == {f"users-{number}" for number in range(LOGS)}
    assert [topic for topic in topics if not told(KEYS.clean(topic))] == []
