"""What another program has partitioned otherwise is told in one line, shows no key, and stops no purge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table.update import SetDefaultSpecUpdate

from keptlog.errors import LogCorrupt
from keptlog.home import new_id, open_home
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.repair import Repairer
from keptlog.storage.schema import to_arrow
from keptlog.table.metadata.manifests import SMALL_MANIFESTS
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import table_of

__all__ = ["home", "keptlog"]

FIELDS = [pytest.param(None, id="not at all"), "key", "offset"]


def partition_by(world: World, field: str | None) -> None:
    """As another program does, which then writes a row and a tag that shows it."""
    with table_of(world.home, "users").update_spec() as update:
        update.remove_field("partition")
        if field:
            update.add_identity(field)
    table_of(world.home, "users").append(to_arrow(0, [Record(2, KEY, VALUE, world.now_ms)]))


def tag_and_go_back(world: World) -> None:
    table = table_of(world.home, "users")
    table.manage_snapshots().create_tag(table.metadata.current_snapshot_id or 0, "audit").commit()
    table = table_of(world.home, "users")
    table.catalog.commit_table(table, (), (SetDefaultSpecUpdate.model_validate({"spec-id": 0}),))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "home")
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    return world


@pytest.mark.parametrize("field", FIELDS)
def test_once_it_is_repaired_purges_go_on_beside_a_tag_that_shows_it(world: World, field: str | None) -> None:
    partition_by(world, field)
    tag_and_go_back(world)
    repairer = Repairer(world.store)
    proposal = repairer.propose("users", now_ms=world.now_ms)
    assert proposal is not None
    repairer.repair(proposal, new_id(), now_ms=world.now_ms)
    world.append((KEY, b"2"))
    world.later(2 * DAY_MS)
    world.clean()
    world.later(2 * DAY_MS)
    before = len(list((world.home / "warehouse").rglob("*.parquet")))
    world.purge()
    assert len(list((world.home / "warehouse").rglob("*.parquet"))) < before


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "look",
    [lambda store: list(store.read("users")), lambda store: store.logs("users")],
    ids=["read", "logs"],
)
def test_who_looks_is_told_which_file_it_is_and_no_key(
    world: World, look: Callable[[LogStore], object], field: str | None
) -> None:
    partition_by(world, field)
    with pytest.raises(LogCorrupt) as caught:
        look(open_home(world.home).store)
    assert KEY.decode() not in str(caught.value)
    assert "users" in str(caught.value)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "command",
    ["topic describe users", "read users", "files users", "repair users --adopt --dry-run"],
)
def test_no_command_ends_with_a_traceback_or_shows_the_key(
    keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, field: str | None
) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "home"))
    world = World(tmp_path / "home")
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    partition_by(world, field)
    outcome = keptlog(*command.split())
    assert outcome.code != 0
    assert outcome.err.startswith("keptlog: ")
    assert KEY.decode() not in outcome.err


FOREIGN_SPECS = ["key", "offset", "timestamp_type", "delete_horizon"]
SPECS = [pytest.param((), id="nothing"), *[pytest.param((name,), id=name) for name in FOREIGN_SPECS]]


def adopt(world: World, fields: Sequence[str], rows: Sequence[pa.Table], topic: str = "users") -> None:
    """Rows that another program has partitioned by these fields alone, taken as part of the log."""
    with table_of(world.home, topic).update_spec() as update:
        update.remove_field("partition")
        for field in fields:
            update.add_identity(field)
    for each in rows:
        table_of(world.home, topic).append(each)
    table = table_of(world.home, topic)
    table.catalog.commit_table(table, (), (SetDefaultSpecUpdate.model_validate({"spec-id": 0}),))
    repairer = Repairer(world.store)
    proposal = repairer.propose(topic, is_adoption=True, now_ms=world.now_ms)
    assert proposal is not None
    repairer.repair(proposal, new_id(), now_ms=world.now_ms)


def rows_at(first_offset: int, now_ms: int, partition: int = 0) -> list[pa.Table]:
    """One with a tombstone that has a delete horizon, and one without: partitioned by that, one of them by null."""
    stamped = Record(first_offset, KEY, None, now_ms, delete_horizon_ms=now_ms + 9 * DAY_MS)
    return [to_arrow(partition, [stamped]), to_arrow(partition, [Record(first_offset + 1, OTHER, b"2", now_ms)])]


@pytest.mark.parametrize("fields", SPECS)
def test_files_of_another_partitioning_that_were_adopted_are_cleaned_like_others(
    world: World, fields: Sequence[str]
) -> None:
    adopt(world, fields, rows_at(2, world.now_ms))
    world.later(2 * DAY_MS)
    world.append((KEY, b"4"), (OTHER, b"5"))
    world.later(2 * DAY_MS)
    world.append((b"third", b"6"))
    world.clean()
    assert [offset for offset, _, _ in world.records()] == [4, 5, 6]


@pytest.mark.parametrize("fields", SPECS)
def test_appends_go_on_beside_them_when_manifests_are_merged(world: World, fields: Sequence[str]) -> None:
    adopt(world, fields, rows_at(2, world.now_ms))
    for _ in range(SMALL_MANIFESTS + 1):
        world.append((KEY, b"4"))
    assert [offset for offset, _, _ in world.records()] == list(range(4 + SMALL_MANIFESTS + 1))


@pytest.mark.parametrize("fields", SPECS)
def test_their_records_are_deleted_like_others(world: World, fields: Sequence[str]) -> None:
    adopt(world, fields, rows_at(2, world.now_ms))
    world.append((KEY, b"4"))
    world.store.delete_records(TopicPartition("users", 0), 4, new_id())
    assert [offset for offset, _, _ in world.records()] == [4]


@pytest.mark.parametrize("fields", SPECS)
@pytest.mark.parametrize("partition", [0, 1])
def test_who_looks_without_pyiceberg_sees_them_in_the_same_log(
    tmp_path: Path, partition: int, fields: Sequence[str]
) -> None:
    world = World(tmp_path / "home")
    world.create(partitions=2)
    world.append((KEY, VALUE), partition=partition)
    adopt(world, fields, rows_at(1, world.now_ms, partition))
    world.append((KEY, b"4"), partition=partition)
    seen = list(UnopenedStore(world.home, {}, lambda: world.store).logs("users"))
    assert seen == list(open_home(world.home).store.logs("users"))
    assert [len(log.segments) for log in seen] == ([4, 0] if partition == 0 else [0, 4])


def test_a_file_of_a_spec_with_one_more_field_that_was_adopted_is_a_file_like_others(world: World) -> None:
    with table_of(world.home, "users").update_spec() as update:
        update.add_identity("timestamp_type")
    table_of(world.home, "users").append(to_arrow(0, [Record(2, KEY, b"2", world.now_ms)]))
    table = table_of(world.home, "users")
    table.catalog.commit_table(table, (), (SetDefaultSpecUpdate.model_validate({"spec-id": 0}),))
    repairer = Repairer(world.store)
    proposal = repairer.propose("users", is_adoption=True, now_ms=world.now_ms)
    assert proposal is not None
    repairer.repair(proposal, new_id(), now_ms=world.now_ms)
    world.append((OTHER, b"2"))
    world.later(2 * DAY_MS)
    world.clean()
    assert [(offset, value) for offset, _, value in world.records()] == [(2, b"2"), (3, b"2")]
