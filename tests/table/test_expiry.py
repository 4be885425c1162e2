"""What only expired snapshots have: read from few manifests, and the same as if all had been compared with all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.snapshots import Snapshot

from keptlog.log.holder import HolderKind, Terms
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.repair import Repairer
from keptlog.table.metadata.references import Manifests, References, references_of
from keptlog.table.removal.expiry import _follower, expiry_of
from keptlog.table.removal.held import held_in
from tests.profiles import examples
from tests.table.foreign import current_id, roll_back, table_of
from tests.table.purges import MINUTE_MS, clock_ms, live_paths, paths_of_values
from tests.table.snapshots import History
from tests.table.stores import TOPIC, append_each, clean, create, new_id


def compared(history: History, expired: list[Snapshot]) -> References:
    """All that stays compared with all that goes."""
    manifests = Manifests(TOPIC, history.table.io)
    gone = {each.snapshot_id for each in expired}
    kept = [each for each in history.table.metadata.snapshots if each.snapshot_id not in gone]
    return references_of(expired, manifests).without(references_of(kept, manifests))


LINE = ["append", "append", "append", "clean", "retain", "empty", "expire"]
HISTORIES = {
    "a line": LINE,
    "a line with repairs": [*LINE, "bring back"],
    "anything": [*LINE, "bring back", "tag", "roll back"],
}


def happen(history: History, dice: random.Random, kinds: list[str]) -> None:
    """One thing that happens to a table."""
    live, snapshots = history.live, history.table.metadata.snapshots
    kind = dice.choice(kinds)
    if kind == "clean" and live:
        first = dice.randrange(len(live))
        history.add([history.new_file()], live[first : first + dice.randint(1, 4)])
    elif kind == "retain" and live:
        history.add([], live[: dice.randint(1, len(live))])
    elif kind == "empty":
        history.add()
    elif kind == "expire" and len(snapshots) > 2:
        history.expire(oldest(history, dice.randint(1, len(snapshots) - 2)))
    elif kind == "bring back" and snapshots:
        history.bring_back(dice.choice(snapshots))
    elif kind == "tag" and snapshots:
        history.tag(dice.choice(snapshots), f"tag-{dice.randrange(3)}")
    elif kind == "roll back" and snapshots:
        history.roll_back(dice.choice(snapshots))
    else:
        history.add([history.new_file() for _ in range(dice.randint(1, 3))])


def oldest(history: History, count: int) -> list[Snapshot]:
    """The oldest snapshots, but for those that must stay."""
    protected = {reference.snapshot_id for reference in history.table.metadata.refs.values()}
    return [each for each in history.table.metadata.snapshots[:count] if each.snapshot_id not in protected]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a topic, from which each history begins anew."""
    home = tmp_path_factory.mktemp("home")
    create(home)
    return home


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32), steps=st.integers(2, 20), kind=st.sampled_from(list(HISTORIES)))
def test_what_few_manifests_tell_is_what_all_of_them_tell(home: Path, seed: int, steps: int, kind: str) -> None:
    dice, history = random.Random(seed), History(home)
    for _ in range(steps):
        happen(history, dice, HISTORIES[kind])
    expired = oldest(history, dice.randint(1, max(1, len(history.table.metadata.snapshots) - 1)))
    if kind == "a line" and expired:
        assert _follower(history.table, expired)
    found = expiry_of(history.table, expired, Manifests(TOPIC, history.table.io))
    assert found.files == compared(history, expired)
    assert found.unreadable == []


def test_a_history_with_a_fork_is_compared_as_a_whole(tmp_path: Path) -> None:
    create(tmp_path)
    history = History(tmp_path)
    first = history.add([history.new_file()])
    second = history.add([history.new_file()])
    assert _follower(history.table, [first]) == second
    history.roll_back(first)
    third = history.add([history.new_file()])
    assert _follower(history.table, [second]) is None
    found = expiry_of(history.table, [second], Manifests(TOPIC, history.table.io)).files
    assert found == compared(history, [second])
    assert third.manifest_list not in found.metadata_bytes
    assert len(found.data_bytes) == 1


def test_files_that_a_repair_has_brought_back_stay(tmp_path: Path) -> None:
    create(tmp_path)
    history = History(tmp_path)
    first = history.add([history.new_file()])
    history.add([history.new_file()], history.live)
    history.bring_back(first)
    history.add([history.new_file()])
    found = expiry_of(history.table, [first], Manifests(TOPIC, history.table.io)).files
    assert (found.data_bytes, list(found.metadata_bytes)) == ({}, [first.manifest_list])


def test_what_somebody_has_rolled_back_stays_for_the_delay_from_then_on(tmp_path: Path) -> None:
    store = create(tmp_path, config={"file.delete.delay.ms": str(MINUTE_MS)})
    append_each(store, [("a", "1")])
    first, before = current_id(tmp_path), live_paths(store)
    append_each(store, [("a", "2")])
    lost = live_paths(store) - before
    made_ms = table_of(tmp_path).metadata.snapshots[-1].timestamp_ms
    roll_back(tmp_path, first)
    rolled_back_ms = table_of(tmp_path).metadata.snapshot_log[-1].timestamp_ms
    proposal = Repairer(store).propose(TOPIC, is_adoption=True, now_ms=rolled_back_ms)
    assert proposal
    Repairer(store).repair(proposal, new_id(), now_ms=rolled_back_ms)
    store.purge(TOPIC, made_ms + MINUTE_MS)
    assert lost <= paths_of_values(store)
    store.purge(TOPIC, rolled_back_ms + MINUTE_MS)
    assert paths_of_values(store) == before


def test_what_a_tag_keeps_is_not_younger_after_each_purge_and_is_late_after_delay_and_interval(tmp_path: Path) -> None:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")])
    table = table_of(tmp_path)
    table.manage_snapshots().create_tag(current_id(tmp_path), "audit").commit()
    append_each(store, [("a", "2")])
    clean(store)
    terms, since_ms = Terms(MINUTE_MS), []
    for number in range(3):
        append_each(store, [("b", str(number))])
        store.purge(TOPIC, clock_ms() + 1)
        found = held_in(lambda: store.load_table(TOPIC), store.files, terms, clock_ms())
        since_ms += [each.since_ms for each in found.held if each.kind is HolderKind.TAG]
    assert since_ms == [table.metadata.snapshots[0].timestamp_ms] * 3
    late_ms = since_ms[0] + MINUTE_MS + terms.purge_interval_ms + 1
    tags = [each for each in found.holders(late_ms) if each.kind is HolderKind.TAG]
    assert tags
    assert all(each.is_late for each in tags)


def test_a_file_that_another_program_has_added_twice_stays_for_a_tag_that_shows_it(tmp_path: Path) -> None:
    """It stands in two manifests. One expires, and the tag has the other."""
    store = create(tmp_path, config={"cleanup.policy": "delete", "file.delete.delay.ms": "60000"})
    append_each(store, [("a", "1"), ("b", "1")])
    table = table_of(tmp_path)
    (task,) = table.scan().plan_files()
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as again:
        again.append_data_file(task.file)
    repairer = Repairer(store)
    proposal = repairer.propose(TOPIC, now_ms=clock_ms())
    assert proposal is not None
    repairer.repair(proposal, new_id(), now_ms=clock_ms())
    table_of(tmp_path).manage_snapshots().create_tag(current_id(tmp_path), "audit").commit()
    store.delete_records(TopicPartition(TOPIC, 0), 2, new_id())
    store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS, orphan_grace_ms=24 * 60 * MINUTE_MS)
    audited = table_of(tmp_path)
    snapshot_id = audited.metadata.refs["audit"].snapshot_id
    assert audited.scan(snapshot_id=snapshot_id).to_arrow().num_rows == 2
