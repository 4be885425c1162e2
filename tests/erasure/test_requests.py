"""Asking: once for each id, in one commit, topic by topic, whoever else is at it; and what is refused."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from keptlog.errors import CommitStateUnknown, InvalidConfig, KeptlogError, LogCorrupt, StorageUnavailable, UnknownTopic
from keptlog.log.erasures.erasure import GoneSince
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.table.removal.erasure_look import without_segments_since
from keptlog.table.store import LogStore
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE, World, new_id
from tests.in_process import in_process_engine
from tests.table.foreign import table_of
from tests.table.stores import FaultyCatalog

Fault = Callable[[Callable[[], Any]], Any]


def tombstones(world: World, topic: str = "users") -> list[bytes | None]:
    return [key for _, key, value in world.records(topic) if value is None]


def ids(world: World) -> list[str]:
    return [row.id for row in world.eraser.list(["users"], now_ms=world.now_ms).rows]


def test_the_same_id_asks_for_nothing_twice(world: World) -> None:
    world.create()
    first = world.ask()
    again = world.ask()
    assert (first.repeated, again.repeated) == (frozenset(), frozenset({"users"}))
    assert tombstones(world) == [KEY]
    assert world.erasure() == again.erasures["users"]


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_since_when_a_topic_has_no_segment_is_looked_for_once_and_only_where_it_has_none(
    world: World, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the list of manifests of one snapshot after the other."""
    world.create(settings={"cleanup.policy": policy})
    world.append((KEY, VALUE))
    looked: list[str] = []

    def counted(table: Table) -> GoneSince | None:
        looked.append(table.name()[-1])
        return without_segments_since(table)

    monkeypatch.setattr("keptlog.passes.erasures.erase_topic.without_segments_since", counted)
    world.ask()
    assert looked == []
    world.store.delete_records(TopicPartition("users", 0), -1, None)
    world.ask(OTHER, id="r2")
    assert looked == ["users"]


def test_the_same_id_is_known_after_a_purge_and_long_after(world: World) -> None:
    world.create()
    world.ask()
    world.to_deleted()
    world.later(3 * DAY_MS)
    world.purge()
    assert world.ask().repeated == {"users"}
    assert tombstones(world) == []


def test_an_id_that_was_asked_for_other_keys_is_refused(world: World) -> None:
    world.create()
    world.ask(KEY)
    result = world.ask(OTHER)
    said = "topic users: request r1 was made for other keys; give this one another id"
    assert {name: str(error) for name, error in result.failed.items()} == {"users": said}
    assert tombstones(world) == [KEY]


def test_a_catalog_that_does_not_answer_is_an_outage_whenever_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create(partitions=2)
    kind, calls, failing = type(world.store.committer.catalog), 0, 0
    load = kind.load_table

    def load_table(catalog: Any, identifier: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(5, "Input/output error")
        return load(catalog, identifier)

    monkeypatch.setattr(kind, "load_table", load_table)
    failures = 0
    while calls >= failing:
        calls, failing = 0, failing + 1
        try:
            failed = [*world.ask().failed.values()]
        except KeptlogError as error:
            failed = [error]
        assert all(isinstance(error, StorageUnavailable) for error in failed), failed
        failures += len(failed)
    monkeypatch.undo()
    assert failures >= 3
    assert tombstones(world) == [KEY]


def test_two_requests_at_once_both_land(world: World) -> None:
    world.create()
    threads = [threading.Thread(target=world.ask, args=(b"key-%08d" % n,), kwargs={"id": f"r{n}"}) for n in range(4)]
    world.eraser.hash_of(KEY)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ids(world)) == ["r0", "r1", "r2", "r3"]
    assert len(tombstones(world)) == 4
    world.purge()
    assert len(world.register_files) == 1


def test_the_same_request_twice_at_once_lands_once(world: World) -> None:
    world.create()
    world.eraser.hash_of(KEY)
    threads = [threading.Thread(target=world.ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (ids(world), tombstones(world)) == (["r1"], [KEY])


def refused(_commit: Callable[[], Any]) -> Any:
    raise CommitFailedException("somebody was faster")


def landed_then_refused(commit: Callable[[], Any]) -> Any:
    commit()
    raise CommitFailedException("somebody was faster")


def lost_answer(commit: Callable[[], Any]) -> Any:
    commit()
    raise OSError("no answer")


def killed(_commit: Callable[[], Any]) -> Any:
    raise KeyboardInterrupt


def killed_after(commit: Callable[[], Any]) -> Any:
    commit()
    raise KeyboardInterrupt


def faulty(world: World, *faults: Fault) -> FaultyCatalog:
    catalog = FaultyCatalog(world.store._catalog)  # the faults come from below
    catalog.faults += faults
    return catalog


def ask_over(world: World, catalog: FaultyCatalog) -> None:
    store = LogStore(catalog, {}, lambda _: None, new_id)
    eraser = type(world.eraser)(store, in_process_engine(store.files), lambda **_: world.hasher, new_id)
    request = ErasureRequest("r1", ("users",), (KEY,))
    result = eraser.request(eraser.propose(request, now_ms=world.now_ms), now_ms=world.now_ms)
    for error in result.failed.values():
        raise error


@pytest.mark.parametrize("fault", [refused, landed_then_refused, lost_answer])
def test_a_commit_that_meets_a_fault_lands_once_with_its_register(world: World, fault: Fault) -> None:
    world.create()
    world.append((KEY, VALUE))
    ask_over(world, faulty(world, fault))
    assert (ids(world), tombstones(world)) == (["r1"], [KEY])
    world.purge()
    assert len(world.register_files) == 1


@pytest.mark.parametrize(("fault", "is_there"), [(killed, False), (killed_after, True)])
def test_killed_around_the_commit_there_is_never_a_tombstone_without_its_request(
    world: World, fault: Fault, *, is_there: bool
) -> None:
    world.create()
    world.append((KEY, VALUE))
    with pytest.raises(KeyboardInterrupt):
        ask_over(world, faulty(world, fault))
    assert (ids(world), tombstones(world)) == ((["r1"], [KEY]) if is_there else ([], []))
    world.ask()
    assert (ids(world), tombstones(world)) == (["r1"], [KEY])


def test_of_a_request_that_never_landed_no_register_file_is_left(world: World) -> None:
    world.create()
    with pytest.raises(KeptlogError):
        ask_over(world, faulty(world, *[refused] * 500))
    assert world.register_files == []


def test_a_broken_topic_costs_only_itself_and_the_same_request_does_the_rest(world: World) -> None:
    for topic in ("a", "b", "c"):
        world.create(topic)
        world.append((KEY, VALUE), topic=topic)
    end = "log.p0.log-end-offset"
    table_of(world.home, "b").transaction().set_properties({end: "many"}).commit_transaction()
    result = world.ask(topics=("a", "b", "c"))
    assert sorted(result.erasures) == ["a", "c"]
    assert list(result.failed) == ["b"]
    assert "many" in str(result.failed["b"])
    table_of(world.home, "b").transaction().set_properties({end: "1"}).commit_transaction()
    again = world.ask(topics=("a", "b", "c"))
    assert (sorted(again.repeated), list(again.failed)) == (["a", "c"], [])
    assert [tombstones(world, topic) for topic in "abc"] == [[KEY]] * 3


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"reason": "because of user-7@example.org"}, "the reason has a key in it"),
        ({"reason": "\udcff"}, "the reason of an erasure is text that UTF-8 can't hold"),
        ({"deadline_ms": 5}, "has passed"),
        ({"topics": ()}, "no topic"),
        ({"id": "a/b"}, "run id"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(world: World, how: dict[str, Any], said: str) -> None:
    world.create()
    with pytest.raises(InvalidConfig, match=said):
        world.ask(**how)
    assert world.register_files == []


def test_a_topic_that_is_not_there_stops_the_whole_request(world: World) -> None:
    world.create()
    with pytest.raises(UnknownTopic, match="nothing was asked for"):
        world.ask(topics=("users", "usres"))
    assert tombstones(world) == []


def test_another_secret_is_refused_by_its_fingerprint(world: World) -> None:
    world.create()
    world.ask()
    fingerprint = world.hasher.fingerprint
    (world.home / "erasure.secret").write_text("ab" * 32)
    result = world.ask(OTHER, id="r2")
    assert isinstance(result.failed["users"], InvalidConfig)
    assert fingerprint in str(result.failed["users"])
    assert world.hasher.fingerprint in str(result.failed["users"])


def test_a_register_that_is_damaged_or_gone_is_told_and_nothing_is_built_on_it(world: World) -> None:
    world.create()
    world.ask()
    (path,) = world.register_files
    content = path.read_bytes()
    path.write_bytes(content.replace(b"tombstone", b"tombstome"))
    damaged = world.eraser.list(now_ms=world.now_ms)
    assert "are not as they were written" in str(damaged.failed["users"])
    path.unlink()
    gone = world.ask(OTHER, id="r2")
    assert isinstance(gone.failed["users"], LogCorrupt)
    assert "are gone" in str(gone.failed["users"])
    path.write_bytes(content)
    assert world.row().id == "r1"


def test_a_register_that_is_gone_keeps_no_other_topic_from_being_verified(world: World) -> None:
    for topic in ("users", "orders"):
        world.create(topic)
        world.append((KEY, VALUE), topic=topic)
    world.ask(topics=("orders",), id="r1")
    world.ask(id="r2")
    world.to_deleted("orders")
    for path in world.register_files:
        if "/users/" in str(path):
            path.unlink()
    found = world.eraser.verify(["r2", "r1"], now_ms=world.now_ms)
    assert [(row.id, row.topic, row.erasure.state) for row in found.rows] == [("r1", "orders", "verified")]
    assert list(found.failed) == ["users"]
    assert "are gone" in str(found.failed["users"])
    with pytest.raises(InvalidConfig, match="no erasure 'r3'"):
        world.eraser.verify(["r3"], ["orders"], now_ms=world.now_ms)


def test_the_register_survives_clean_purge_alter_and_repair(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    before = table_of(world.home, "users").metadata.current_snapshot_id
    assert before is not None
    world.ask()
    world.store.alter_topic("users", {"segment.ms": str(2 * HOUR_MS)})
    table_of(world.home, "users").manage_snapshots().rollback_to_snapshot(before).commit()
    store = world.store
    plan = store.plan_repair("users", is_adoption=False)
    assert plan is not None
    store.repair(plan, new_id())
    assert tombstones(world) == [KEY]
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"


def test_a_copied_home_is_looked_at_and_not_written(world: World, tmp_path: Any) -> None:
    world.create()
    world.ask()
    copy = World(tmp_path / "copy", world.now_ms + 3 * HOUR_MS)
    shutil.copytree(world.home, copy.home)
    assert copy.row().id == "r1"
    with pytest.raises(InvalidConfig, match="copy of the home"):
        copy.ask(OTHER, id="r2")


def unanswered(_commit: Callable[[], Any]) -> Any:
    raise OSError("no route")


def test_where_nobody_says_whether_it_landed_the_same_request_finds_out(world: World) -> None:
    world.create()
    catalog = faulty(world, *[unanswered] * 100)
    with pytest.raises(CommitStateUnknown, match=r"--run-id r1$"):
        ask_over(world, catalog)
    world.ask()
    assert (ids(world), tombstones(world)) == (["r1"], [KEY])


def test_one_id_may_name_an_append_and_a_request(world: World) -> None:
    world.create()
    world.store.append("users", [NewRecord(KEY, VALUE, world.now_ms, 0)], "r1", world.now_ms)
    assert world.ask().repeated == frozenset()
    assert world.records() == [(0, KEY, VALUE), (1, KEY, None)]
