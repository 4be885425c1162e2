"""A topic that is dropped, or becomes unreadable, while a backfill is to make it costs the others of it nothing.

Dagster fails a backfill of which an asset is gone from the graph, and ends all of its runs.
"""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.storage.runs.schema import BulkActionsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage

from keptlog.dagster.orchestration import topics_sensor
from keptlog.errors import LogCorrupt
from keptlog.table.store import LogStore
from tests.orchestration.conftest import World

BACKFILL = "abcdefgh"


@pytest.fixture
def world(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A home of two topics, and a reload that nobody does."""
    monkeypatch.setattr(topics_sensor, "ask_for_reload", lambda _: None)
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(world.now_ms))  # a state file is of when it was kept
    world.topic("gone", partitions=2)
    world.topic("users")
    return world


def begin_backfill(world: World) -> PartitionBackfill:
    """As the UI does it for all partitions of the clean section of ``gone``."""
    key = dg.AssetKey(["gone", "clean"])
    graph = world.defs.get_repository_def().asset_graph
    backfill = PartitionBackfill.from_asset_partitions(
        BACKFILL,
        asset_graph=graph,
        partition_names=None,
        asset_selection=[key],
        backfill_timestamp=world.now_ms / 1000,
        tags={},
        dynamic_partitions_store=world.instance,
        all_partitions=True,
        title=None,
        description=None,
        run_config=None,
    )
    world.instance.add_backfill(backfill)
    return backfill


def sensor_of(world: World) -> dg.SensorDefinition:
    """That of a code location that is loaded now."""
    return world.defs.get_repository_def().get_sensor_def("topics_sensor")


def keys_after_reload(world: World) -> set[str]:
    return {key.to_user_string() for key in world.defs.get_repository_def().asset_graph.get_all_asset_keys()}


def test_a_dropped_topic_is_shown_until_the_backfill_of_it_has_ended(world: World) -> None:
    sensor, backfill = sensor_of(world), begin_backfill(world)
    world.store.delete_topic("gone", world.now_ms)

    told = world.skips(sensor)

    assert told == (
        f"the asset graph is kept as it is: 2 topics; gone is shown as it was until backfill {BACKFILL} has ended"
    )
    assert "gone/clean" in keys_after_reload(world)
    world.instance.update_backfill(backfill._replace(status=BulkActionStatus.COMPLETED_FAILED))
    assert world.skips(sensor) == "dropped: gone; a reload is asked for"
    assert "gone/clean" not in keys_after_reload(world)


def test_a_new_topic_is_shown_meanwhile(world: World) -> None:
    sensor = sensor_of(world)
    begin_backfill(world)
    world.store.delete_topic("gone", world.now_ms)
    world.topic("later")

    told = world.skips(sensor)

    assert told == f"new: later; gone is shown as it was until backfill {BACKFILL} has ended; a reload is asked for"
    assert {"gone/clean", "later/clean"} <= keys_after_reload(world)


def test_a_topic_that_becomes_unreadable_is_shown_until_then(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = sensor_of(world)
    begin_backfill(world)
    really = LogStore.observe

    def observe(store: LogStore, topic: str, location: str | None = None) -> object:
        if topic == "gone":
            raise LogCorrupt("gone can't be read")
        return really(store, topic, location)

    monkeypatch.setattr(LogStore, "observe", observe)
    world.reopen()

    assert f"gone is shown as it was until backfill {BACKFILL} has ended" in world.skips(sensor)
    assert "gone/unreadable" not in keys_after_reload(world)


def test_a_topic_made_anew_with_fewer_partitions_keeps_those_and_is_described_as_it_is_now(world: World) -> None:
    """Its page showed the policy of the topic that was deleted."""
    sensor = sensor_of(world)
    begin_backfill(world)
    world.store.delete_topic("gone", world.now_ms)
    world.topic("gone", partitions=1, cleanup_policy="delete")

    told = world.skips(sensor)

    shown = f"gone is shown with 2 partitions, as before, until backfill {BACKFILL} has ended"
    assert told == f"altered: gone; {shown}; a reload is asked for"
    clean = world.defs.get_repository_def().asset_graph.get(dg.AssetKey(["gone", "clean"]))
    assert clean.partitions_def
    assert [*clean.partitions_def.get_partition_keys()] == ["gone-0", "gone-1"]
    assert "the topic is not compacted" in str(clean.description)
    assert world.skips(sensor_of(world)) == f"the asset graph is kept as it is: 2 topics; {shown}"


@pytest.mark.parametrize("body", ["", "{", '{"__class__": "OfALaterDagster"}', '{"__class__": "PartitionBackfill"}'])
def test_while_a_stored_backfill_cannot_be_read_no_topic_is_dropped_that_another_one_may_need(
    world: World, body: str
) -> None:
    """Once that one was repaired, Dagster ended the other for the asset that was gone."""
    sensor, backfill = sensor_of(world), begin_backfill(world)
    world.instance.add_backfill(backfill._replace(backfill_id="unreadable"))
    store(world, "unreadable", body)
    world.store.delete_topic("gone", world.now_ms)

    told = world.skips(sensor)

    assert told.startswith("the asset graph is kept as it is: 2 topics; gone is shown as it was because Dagster can't ")
    assert "\n" not in told
    assert "gone/clean" in keys_after_reload(world)
    world.topic("later")
    assert world.skips(sensor).startswith("new: later; gone is shown as it was because Dagster can't read a stored ")
    assert {"gone/clean", "later/clean"} <= keys_after_reload(world)
    store(world, "unreadable", None)
    assert f"gone is shown as it was until backfill {BACKFILL} has ended" in world.skips(sensor_of(world))


def store(world: World, backfill_id: str, body: str | None) -> None:
    """Let what Dagster has stored of a backfill be this text; nothing if there is none."""
    storage, rows = world.instance.run_storage, BulkActionsTable
    assert isinstance(storage, SqlRunStorage)
    change = rows.delete() if body is None else rows.update().values(body=body)
    with storage.connect() as connection:
        connection.execute(change.where(rows.c.key == backfill_id))
