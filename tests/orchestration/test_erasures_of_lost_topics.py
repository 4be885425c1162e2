"""An open erasure of a topic whose table another program has dropped does not end with that: the check tells it."""

from __future__ import annotations

import time
from typing import NoReturn

import dagster as dg
import pytest
from pyiceberg.table import Table

from keptlog.errors import StorageUnavailable
from keptlog.passes.erasures import lost_topics
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import NAMESPACE
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.erasing import SETTINGS, ask, run
from tests.orchestration.shipped import DEADLINE_CHECK, ERASURES_KEY, erasure_sensor


@pytest.fixture
def dropped(world: World) -> Table:
    """Its table as it was: it has an erasure that is to be done within four hours, and so has another topic."""
    world.now_ms = time.time_ns() // 1_000_000
    for topic in ("users", "fine"):
        world.topic(topic, 1, **SETTINGS)
        world.append(topic, ("user-7@example.org", "1"), ("other", "1"), age_ms=0)
    ask(world, by_ms=4 * HOUR_MS)
    ask(world, "fine", by_ms=2000 * HOUR_MS, request_id="r2")
    world.tick(erasure_sensor)
    table = world.store.load_table("users")
    open_catalog(world.path).drop_table((NAMESPACE, "users"))
    return table


def materialize(world: World) -> dg.AssetCheckEvaluation:
    result = world.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=world.instance, asset_selection=[ERASURES_KEY]
    )
    (check,) = [each for each in result.get_asset_check_evaluations() if each.asset_check_key == DEADLINE_CHECK]
    return check


def out_of_reach(_: object) -> NoReturn:
    raise StorageUnavailable("the store does not answer")


def shown(world: World) -> dg.AssetCheckEvaluation:
    (record,) = world.instance.event_log_storage.get_asset_check_execution_history(DEADLINE_CHECK, limit=1)
    assert record.evaluation is not None
    return record.evaluation


def test_whoever_materializes_the_asset_is_told_and_no_tick_takes_that_back(world: World, dropped: Table) -> None:
    told = materialize(world)
    assert not told.passed
    assert "no topic lies in this folder any more" in (told.description or "")
    assert "for the keys of r1" in (told.description or "")
    for _ in range(2):
        world.now_ms += HOUR_MS
        world.tick(erasure_sensor)
        assert not shown(world).passed


def test_a_topic_that_was_put_back_is_told_as_any_other_once_that_was_looked_at(world: World, dropped: Table) -> None:
    materialize(world)
    open_catalog(world.path).register_table((NAMESPACE, "users"), dropped.metadata_location)
    assert materialize(world).passed
    world.tick(erasure_sensor)
    assert shown(world).passed


def test_a_run_that_verifies_all_tells_it_too(world: World, dropped: Table) -> None:
    assert not run(world, "verify_erasures", {}).success
    assert "no topic lies in this folder any more" in (shown(world).description or "")
    world.tick(erasure_sensor)
    assert not shown(world).passed


def test_a_look_that_cannot_list_the_folders_takes_nothing_back(
    world: World, dropped: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    materialize(world)
    with monkeypatch.context() as patched:
        patched.setattr(lost_topics, "unowned_folders", out_of_reach)
        told = materialize(world).description or ""
    assert "the store does not answer" in told
    assert "for the keys of r1" in told
    assert "for the keys of r1" in (materialize(world).description or "")
