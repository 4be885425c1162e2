"""Whatever holds bytes that are not live is found, alone and by its name, and no longer once it is removed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyiceberg.table import Table

from keptlog.log.holder import Held, Holder, HolderKind, Holdings, Terms
from keptlog.table.removal.held import held_in
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values
from tests.table.stores import TOPIC, append_each, clean, create, rewritten, staged, step_for

TERMS = Terms(delete_delay_ms=MINUTE_MS)
RECORDS = frozenset(HolderKind) - {HolderKind.METADATA}
"""Kinds that may hold records: old metadata is always there."""


def held(store: LogStore, now_ms: int | None = None) -> list[Held]:
    """What may hold records."""
    now_ms = now_ms or clock_ms()
    found = held_in(lambda: store.load_table(TOPIC), store.files, TERMS, now_ms)
    assert found.unread == ()
    return [each for each in found.held if each.kind in RECORDS]


def holders_of(
    topic: str, found: Iterable[Held], terms: Terms, now_ms: int, partition: int | None = None
) -> list[Holder]:
    return Holdings(topic, terms, tuple(found)).holders(now_ms, partition)


def kinds(store: LogStore, now_ms: int | None = None) -> set[HolderKind]:
    return {each.kind for each in held(store, now_ms)}


def purged(home: Path) -> LogStore:
    """A cleaned log with nothing left over."""
    store = cleaned(home)
    store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert held(store) == []
    return store


def local(path: str | None) -> Path:
    assert path
    return Path(path.removeprefix("file://"))


def location(store: LogStore) -> str:
    return store.describe_topic(TOPIC).location


def test_segments_that_a_clean_has_replaced_are_retired_since_its_commit_and_gone_after_a_purge(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    replaced_ms = table_of(tmp_path).metadata.snapshots[-1].timestamp_ms
    found = held(store)
    assert {each.path for each in found} == paths_of_values(store) - live_paths(store)
    assert {(each.kind, each.since_ms, each.partition) for each in found} == {("retired", replaced_ms, 0)}
    [holder] = holders_of(TOPIC, found, TERMS, clock_ms())
    assert (holder.files, holder.until_ms, holder.is_late) == (3, replaced_ms + MINUTE_MS, False)
    assert holder.bytes == sum(local(each.path).stat().st_size for each in found)
    [late] = holders_of(TOPIC, found, TERMS, replaced_ms + MINUTE_MS + DAY_MS + 1)
    assert (late.late_files, late.deadline_ms) == (3, replaced_ms + MINUTE_MS + DAY_MS)
    store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert held(store) == []


def test_a_log_that_was_only_appended_to_has_no_holder(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("b", "2")])
    table_of(tmp_path).manage_snapshots().create_tag(table_of(tmp_path).metadata.snapshots[0].snapshot_id, "x").commit()
    assert held(store) == []


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_tag_or_a_branch_of_another_program_is_named_and_late_though_purges_came(tmp_path: Path, kind: str) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    first = table_of(tmp_path).metadata.snapshots[0].snapshot_id
    changes = table_of(tmp_path).manage_snapshots()
    (changes.create_tag if kind == "tag" else changes.create_branch)(first, "audit").commit()
    clean(store)
    later_ms = clock_ms() + 2 * DAY_MS
    store.purge(TOPIC, later_ms)
    [file] = held(store, later_ms)
    assert (file.kind, file.name) == (kind, "audit")
    [holder] = holders_of(TOPIC, [file], TERMS, later_ms)
    assert str(holder).startswith(f"{kind} audit of {TOPIC} keeps 1 retired segment, past its deadline (")
    assert f"DROP {kind.upper()} `audit`" in str(holder)
    changes = table_of(tmp_path).manage_snapshots()
    (changes.remove_tag if kind == "tag" else changes.remove_branch)("audit").commit()
    assert kinds(store, later_ms) == {HolderKind.RETIRED}
    store.purge(TOPIC, later_ms)
    assert held(store, later_ms) == []


def test_of_what_a_tag_keeps_only_that_is_late_which_was_superseded_long_ago(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("b", "1")])
    table = table_of(tmp_path)
    table.manage_snapshots().create_tag(table.metadata.snapshots[-1].snapshot_id, "audit").commit()
    assert held(store) == [], "all that the tag shows is live"
    append_each(store, [("a", "2")])
    clean(store)
    superseded_ms = table_of(tmp_path).metadata.snapshots[-1].timestamp_ms
    found = [each for each in held(store) if each.kind is HolderKind.TAG]
    assert {each.since_ms for each in found} == {superseded_ms}
    [holder] = holders_of(TOPIC, found, TERMS, superseded_ms)
    assert not holder.is_late
    assert holder.until_ms is None


def test_a_file_that_two_tags_keep_is_told_of_both(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    first = table_of(tmp_path).metadata.snapshots[0].snapshot_id
    table_of(tmp_path).manage_snapshots().create_tag(first, "one").create_tag(first, "two").commit()
    clean(store)
    named = [(each.kind, each.name) for each in held(store)]
    assert sorted(named) == [("retired", ""), ("tag", "one"), ("tag", "two")]


def test_a_tag_of_the_current_snapshot_holds_nothing(tmp_path: Path) -> None:
    store = purged(tmp_path)
    current = table_of(tmp_path).metadata.current_snapshot_id
    assert current
    table_of(tmp_path).manage_snapshots().create_tag(current, "now").commit()
    assert held(store) == []


def test_a_staged_file_is_held_until_the_grace_and_then_an_orphan_until_a_purge(tmp_path: Path) -> None:
    store = purged(tmp_path)
    [left] = staged(store, TOPIC, 0, [record for _, record in store.read(TOPIC)])
    [file] = held(store)
    assert (file.kind, file.path, file.partition, file.bytes) == ("staged", left.path, 0, left.size_bytes)
    [holder] = holders_of(TOPIC, [file], TERMS, clock_ms())
    assert holder.until_ms == file.since_ms + DAY_MS
    later_ms = file.since_ms + DAY_MS
    assert kinds(store, later_ms) == {HolderKind.ORPHAN}
    [late] = holders_of(TOPIC, held(store, later_ms + DAY_MS + 1), TERMS, later_ms + DAY_MS + 1)
    assert late.is_late
    store.purge(TOPIC, later_ms)
    assert held(store, later_ms) == []


def test_what_a_task_left_in_the_staging_folder_is_held_for_all_logs(tmp_path: Path) -> None:
    store = purged(tmp_path)
    path = f"{location(store)}/data/staging/run/map"
    store.files.write_bytes(path, b"keys")
    [file] = held(store)
    assert (file.kind, file.path, file.partition) == ("staged", path, None)
    [of_log] = holders_of(TOPIC, [file], TERMS, clock_ms(), partition=0)
    assert of_log.files == 1
    store.files.delete(path)
    assert held(store) == []


def test_a_file_of_watermarks_is_retired_when_a_later_one_of_its_log_is_live(tmp_path: Path) -> None:
    store = purged(tmp_path)
    folder = f"{location(store)}/data/watermarks/partition=0"
    old, now, next_one = (f"{folder}/marks-{number}.arrow" for number in range(3))
    for path in (old, now, next_one):
        store.files.write_bytes(path, b"keys")
    # The clock that tells which is later counts milliseconds, and a write may take less.
    written_ns = local(now).stat().st_mtime_ns
    os.utime(local(old), ns=(written_ns - 10**9,) * 2)
    os.utime(local(next_one), ns=(written_ns + 10**9,) * 2)
    table_of(tmp_path).transaction().set_properties({"log.p0.watermarks": now}).commit_transaction()
    by_path = {each.path: each for each in held(store)}
    assert {path: each.kind for path, each in by_path.items()} == {old: "watermarks", next_one: "staged"}
    modified_ms = local(now).stat().st_mtime_ns // 1_000_000
    assert by_path[old].since_ms >= modified_ms
    for path in (old, next_one):
        store.files.delete(path)
    assert held(store) == []


@pytest.mark.parametrize("folder", ["gc", "receipts/unreadable"])
def test_a_journal_is_held_until_a_purge_has_finished_it(tmp_path: Path, folder: str) -> None:
    store = purged(tmp_path)
    path = f"{location(store)}/metadata/{folder}/left.json"
    store.files.write_bytes(path, b"a value")
    [file] = held(store)
    assert (file.kind, file.path) == ("journal", path)
    [late] = holders_of(TOPIC, [file], TERMS, file.since_ms + DAY_MS + 1)
    assert late.is_late
    store.files.delete(path)
    assert held(store) == []


def test_receipts_hold_nothing(tmp_path: Path) -> None:
    store = purged(tmp_path)
    store.files.write_bytes(f"{location(store)}/metadata/receipts/1.json", b"{}")
    store.files.write_bytes(f"{location(store)}/metadata/receipts/runs/1.json", b"{}")
    assert held(store) == []


def test_old_metadata_is_told_and_never_late(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    found = held_in(lambda: store.load_table(TOPIC), store.files, TERMS, clock_ms()).held
    [holder] = [each for each in holders_of(TOPIC, found, TERMS, 2**53) if each.kind is HolderKind.METADATA]
    assert holder.files
    assert (holder.deadline_ms, holder.is_late) == (None, False)


def test_keptlog_writes_no_bounds_of_keys_and_values_and_bounds_of_others_are_statistics(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    assert HolderKind.STATISTICS not in kinds(store)
    table = table_of(tmp_path)
    table.transaction().set_properties({"write.metadata.metrics.default": "full"}).commit_transaction()
    table.refresh()
    first = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().create_branch(first, "theirs").commit()
    table.refresh().append(table.scan(snapshot_id=first).to_arrow(), branch="theirs")
    found = [each for each in held(store) if each.kind is HolderKind.STATISTICS]
    assert [local(each.path).suffix for each in found] == [".avro"]
    table.refresh().manage_snapshots().remove_branch("theirs").commit()
    store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert HolderKind.STATISTICS not in kinds(store)


def test_a_snapshot_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    first, second, *_ = table_of(tmp_path).metadata.snapshots
    local(first.manifest_list).write_bytes(b"rot")
    found = held_in(lambda: store.load_table(TOPIC), store.files, TERMS, clock_ms())
    assert len(found.unread) == 1
    assert first.manifest_list in found.unread[0]
    assert {each.kind for each in found.held} >= {HolderKind.RETIRED}
    assert second.manifest_list not in found.unread[0]


def test_what_another_purge_deletes_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    old, loads = store.load_table(TOPIC), itertools.count()

    def load() -> Table:
        if next(loads) == 1:
            store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
            return old
        return store.load_table(TOPIC)

    found = held_in(load, store.files, TERMS, clock_ms())
    assert found.unread == ()
    assert [each for each in found.held if each.kind in RECORDS] == []


def test_the_losers_files_of_a_race_are_staged(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    lost = rewritten(store, step_for(store.logs(TOPIC)[0]))
    clean(store)
    assert [each.path for each in held(store) if each.kind is HolderKind.STAGED] == [lost.added[0].path]
