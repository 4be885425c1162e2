"""Whoever looks at a topic while others purge it is told of no damage: the table is another one by then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.table import Table

from keptlog.engine.engine import Engine
from keptlog.log.declared import change_to
from keptlog.log.record import NewRecord, Record
from keptlog.log.segment import Log
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.passes.erasures.erase_topic import TopicErasure
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.passes.erasures.key_places import KeyPlace
from keptlog.table.changes.declaration import Declaration, declared_topic
from keptlog.table.metadata.references import References, all_references
from keptlog.table.removal import search
from keptlog.table.store import LogStore
from tests.erasure.world import KEY, OTHER, SECOND_MS, VALUE, World, new_id
from tests.searching import Searcher
from tests.table.stores import staged


def add_partitions(store: LogStore, topic: str, partitions: int) -> None:
    before = declared_topic(store.load_table(topic))
    change = change_to(before, replace(before, partitions=partitions), ())
    Declaration(change, store.describe_topic(topic).id, new_id()).commit(store.committer, {})


def ingest(world: World, partition: int, key: bytes, value: bytes | None) -> None:
    """A record as the next of a partition of a source, which may have more of them than are here."""
    store = world.store
    positions = dict(enumerate(store.source_of("users").positions))
    position = positions.get(partition)
    at = OffsetRange(partition, position, position or 0, (position or 0) + 1)
    segments = staged(store, "users", partition, [Record(at.from_offset, key, value, world.now_ms)])
    partitions = max(partition + 1, len(positions))
    store.ingest("users", [Arrival(at, tuple(segments))], SourceIdentity("there"), partitions, new_id())


@pytest.fixture
def overtaken(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A request of which the last look is left; a purge comes in the middle of that."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    world.append((OTHER, b"2"))
    looks = [0]

    def and_meanwhile(table: Table) -> References:
        looks[0] += 1
        if looks[0] == 1:
            world.append((OTHER, b"3"))
            world.later(SECOND_MS)
            world.purge()
        return all_references(table)

    monkeypatch.setattr(search, "all_references", and_meanwhile)
    return world


def test_the_last_look_goes_on_beside_a_purge(overtaken: World) -> None:
    found = overtaken.eraser.verify(now_ms=overtaken.now_ms)
    assert dict(found.failed) == {}
    assert [row.erasure.state for row in found.rows] == ["verified"]


@pytest.mark.parametrize("is_hashed", [False, True])
def test_a_record_that_came_while_the_topic_was_read_is_erased_too(
    world: World, monkeypatch: pytest.MonkeyPatch, is_hashed: bool
) -> None:
    """By its offset it lies below the bound, in a partition where the key was not when that was read."""
    world.create(partitions=2)
    world.append((OTHER, b"1"), partition=0)
    tombstones = TopicErasure._tombstones

    def and_meanwhile(erasure: TopicErasure, places: Sequence[KeyPlace]) -> list[NewRecord]:
        monkeypatch.undo()
        for partition in range(2):
            world.append((KEY, VALUE), partition=partition)
        return tombstones(erasure, places)

    monkeypatch.setattr(TopicErasure, "_tombstones", and_meanwhile)
    keys, hashes = ([], [world.eraser.hash_of(KEY)]) if is_hashed else ([KEY], [])
    request, eraser = ErasureRequest("r1", ["users"], keys, hashes), world.eraser
    eraser.request(eraser.propose(request, now_ms=world.now_ms), now_ms=world.now_ms)
    assert [key for _, key, value in world.records() if value is None] == [KEY, KEY]
    world.to_deleted()
    assert world.verified().erasure.state == "verified"


@pytest.mark.parametrize("before", [1, 2])
def test_a_record_in_a_partition_that_came_while_the_topic_was_read_is_erased_too(
    world: World, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Such a partition had no bound, so that its record was taken for one that came after the request."""
    world.create(partitions=before)
    world.append((KEY, VALUE), partition=0)
    tombstones = TopicErasure._tombstones

    def and_meanwhile(erasure: TopicErasure, places: Sequence[KeyPlace]) -> list[NewRecord]:
        monkeypatch.undo()
        add_partitions(world.store, "users", 4)
        world.append((KEY, VALUE), partition=3)
        return tombstones(erasure, places)

    monkeypatch.setattr(TopicErasure, "_tombstones", and_meanwhile)
    world.ask(KEY)
    tombstoned = {partition for partition, record in world.store.read("users") if record.is_tombstone}
    assert {0, 3} <= tombstoned
    world.to_deleted()
    assert world.verified().erasure.state == "verified"
    assert not world.files_with(VALUE)


@pytest.mark.parametrize("partition", [0, 1])
def test_a_value_that_was_ingested_while_the_topic_was_read_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch, partition: int
) -> None:
    """It lay behind the bound of what was read, or in a partition without any, so that it counted as new."""
    world.create()
    world.ingest({0: (OTHER, b"1")}, 1)
    read, read_from = TopicErasure._places, list[Mapping[int, int]]()

    def and_meanwhile(erasure: TopicErasure, logs: Sequence[Log], since: Mapping[int, int]) -> list[KeyPlace]:
        found = read(erasure, logs, since)
        read_from.append(since)
        if len(read_from) == 1:
            ingest(world, partition, KEY, VALUE)
        elif len(read_from) < 4:
            ingest(world, 0, OTHER, b"2")
        return found

    monkeypatch.setattr(TopicErasure, "_places", and_meanwhile)
    assert dict(world.ask(KEY).failed) == {}
    row = world.row()
    assert row.erasure.state == "requested"
    assert row.blocked == (
        "waits for the source to delete 1 key: delete there (once more if it came back), "
        "or erase --here with another id",
    )
    read_on_from = [1, 1, 2] if partition else [1, 2, 3]
    assert [each.get(0) for each in read_from] == [None, *read_on_from], "what came is read, and no more"
    ingest(world, partition, KEY, None)
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert not world.files_with(VALUE)


def test_so_does_any_search(overtaken: World) -> None:
    store = overtaken.store
    engine: Engine = overtaken.eraser.engine
    found = Searcher(store, engine, overtaken.hasher).search("users", [overtaken.hasher.hash(KEY)], new_id())
    assert not [each for each in found if not each.is_clear]


@pytest.mark.parametrize("has_records", [True, False])
def test_a_request_goes_on_although_the_register_that_it_was_about_to_read_is_replaced_and_purged(
    world: World, monkeypatch: pytest.MonkeyPatch, has_records: bool
) -> None:
    """At each load of the table in turn another request lands, and what it has replaced is gone."""
    world.create()
    if has_records:
        world.append((KEY, VALUE))
    world.ask(OTHER, id="first")
    kind = type(world.store.committer.catalog)
    load, calls, overtaken_at = kind.load_table, 0, 0

    def load_table(catalog: Any, identifier: Any) -> Any:
        nonlocal calls
        table = load(catalog, identifier)
        calls += 1
        if calls == overtaken_at:
            with monkeypatch.context() as alone:
                alone.setattr(kind, "load_table", load)
                assert dict(world.ask(OTHER, id=f"meanwhile-{overtaken_at}").failed) == {}
                world.purge()
        return table

    monkeypatch.setattr(kind, "load_table", load_table)
    while calls >= overtaken_at:
        calls, overtaken_at = 0, overtaken_at + 1
        assert dict(world.ask(KEY, id=f"asked-{overtaken_at}").failed) == {}, overtaken_at
    assert overtaken_at > 3
