"""What a purge leaves because another catalog may need it: who keeps it is told, with what to do, and how it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.log.holder import Holder, HolderKind
from keptlog.passes.erasures.kept_records import KeptRecords
from keptlog.passes.holders import check_gone, look_for_holders
from keptlog.table.doctor.topic_exam import examined
from keptlog.table.metadata import references
from keptlog.table.purge_preview import preview_purge
from keptlog.table.removal.erasure_register import read_erasures
from keptlog.table.removal.search import searched_files
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.table.foreign import insert, set_properties, table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import TOPIC, append_each, clean, create, staged, store_at, values
from tests.table.test_elsewhere_without_numbers import commit_plainly, copied_beside, head_of, registered
from tests.table.test_renamed_in_doubt import erase

LATER_MS = 3 * DAY_MS


@pytest.fixture
def original(tmp_path: Path) -> LogStore:
    store = create(tmp_path / "original")
    append_each(store, [("a", "1")])
    commit_plainly(tmp_path / "original")
    return store


@pytest.fixture
def other(tmp_path: Path, original: LogStore) -> LogStore:
    """A home that has registered a copy; the original is at rest."""
    assert original.topics() == [TOPIC]
    copy = copied_beside(head_of(tmp_path / "original"), tmp_path / "users.metadata.json")
    return registered(tmp_path / "other", copy)


def go_on(store: LogStore) -> None:
    append_each(store, [("a", "2")])
    clean(store)


def holders(store: LogStore, now_ms: int) -> Sequence[Holder]:
    return look_for_holders(store, TOPIC, now_ms).holders(now_ms)


def purged_twice(store: LogStore) -> int:
    """When that was."""
    now_ms = clock_ms() + LATER_MS
    store.purge(TOPIC, now_ms)
    store.purge(TOPIC, now_ms + LATER_MS)
    return now_ms + LATER_MS


def test_a_copied_file_that_shows_nothing_but_live_segments_is_old_metadata(other: LogStore, tmp_path: Path) -> None:
    now_ms = purged_twice(other)
    assert head_of(tmp_path / "original").exists()
    assert check_gone(other, TOPIC, [0], now_ms)[0].outcome == "ok"
    assert {each.kind for each in holders(other, now_ms)} == {HolderKind.METADATA}
    assert KeptRecords.look(other, TOPIC, now_ms).oldest_left_ms is None


def test_what_only_the_copied_file_shows_is_late_and_told_with_the_file_to_move_away(
    other: LogStore, tmp_path: Path
) -> None:
    go_on(other)
    now_ms = purged_twice(other)
    head = head_of(tmp_path / "original")
    [told] = [each for each in holders(other, now_ms) if each.kind is not HolderKind.METADATA]
    assert (told.kind, told.name, told.files, told.is_late) == ("copied state", f"file://{head}", 1, True)
    assert str(told).startswith(f"copied state file://{head} of {TOPIC} keeps 1 replaced file, past its deadline (")
    assert "if no other home has it, move that file away" in told.remedy
    assert KeptRecords.look(other, TOPIC, now_ms).oldest_left_ms is not None
    only_looks = UnopenedStore(tmp_path / "other", {}, lambda: store_at(tmp_path / "other"))
    assert told in look_for_holders(only_looks, TOPIC, now_ms).holders(now_ms)
    [receipt_line] = [each.holder for each in other.purge(TOPIC, now_ms).held]
    assert receipt_line == f"copied state file://{head}"


def test_once_the_copied_file_is_moved_away_a_purge_deletes_what_it_showed(
    other: LogStore, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    go_on(other)
    now_ms = purged_twice(other)
    head_of(tmp_path / "original").rename(tmp_path_factory.mktemp("away") / "head")
    assert len(other.purge(TOPIC, now_ms).deleted_orphans) > 0
    assert {each.kind for each in holders(other, now_ms)} == {HolderKind.METADATA}
    assert values(other) == [(0, 1, b"2")]


def test_a_purge_is_not_quiet_where_a_file_may_be_moved_away(other: LogStore) -> None:
    assert other.purge(TOPIC, clock_ms() + LATER_MS).quiet is None


def test_it_is_in_time_until_the_delay_and_an_interval_have_passed_since_the_other_went_on(other: LogStore) -> None:
    go_on(other)
    now_ms = clock_ms() + DAY_MS
    other.purge(TOPIC, now_ms)
    [told] = [each for each in holders(other, now_ms) if each.kind is HolderKind.COPIED_STATE]
    assert (told.is_late, told.until_ms) == (False, None)
    assert told.deadline_ms is not None
    assert now_ms < told.deadline_ms < now_ms + 2 * DAY_MS


def test_a_purge_promises_and_tells_what_it_does(other: LogStore) -> None:
    go_on(other)
    now_ms = clock_ms() + LATER_MS
    preview = preview_purge(other, TOPIC, now_ms, DAY_MS)
    receipt = other.purge(TOPIC, now_ms)
    assert (preview.snapshots, preview.segments) == (len(receipt.expired_snapshots), len(receipt.deleted_files))
    assert (len(receipt.expired_snapshots), len(receipt.deleted_files)) == (2, 1)


def test_expired_snapshots_are_told_though_all_of_their_files_are_left(other: LogStore) -> None:
    append_each(other, [("b", "2")])
    assert len(other.purge(TOPIC, clock_ms() + LATER_MS).expired_snapshots) == 1


def old_manifest(home: Path, other: LogStore) -> Path:
    """One that the copied state shows, and nothing that is live in the other home."""
    append_each(other, [("a", "2"), ("b", "2"), ("c", "2")], [("z", "2")])
    clean(other)
    live = {each.manifest_path for each in manifests_of(other.load_table(TOPIC))}
    only_copied = [each.manifest_path for each in manifests_of(table_of(home)) if each.manifest_path not in live]
    return Path(only_copied[-1].removeprefix("file://"))


def manifests_of(table: Table) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    return snapshot.manifests(table.io) if snapshot else []


def old_manifest_list(home: Path, other: LogStore) -> Path:
    """The copied state's, which the other home knows no more once a purge has come."""
    old_manifest(home, other)
    snapshot = table_of(home).current_snapshot()
    assert snapshot
    return Path(snapshot.manifest_list.removeprefix("file://"))


@pytest.mark.parametrize("damage", ["can't be read", "is gone"])
@pytest.mark.parametrize("old_file", [old_manifest, old_manifest_list], ids=["manifest", "manifest list"])
def test_a_purge_deletes_nothing_while_a_manifest_or_the_list_of_them_of_the_copied_state_is_damaged(
    other: LogStore, tmp_path: Path, damage: str, old_file: Callable[[Path, LogStore], Path]
) -> None:
    home, kind = tmp_path / "original", "manifest" if old_file is old_manifest else "manifest list"
    before, file = values(store_at(home)), old_file(home, other)
    content, now_ms = file.read_bytes(), clock_ms() + LATER_MS
    file.unlink() if damage == "is gone" else file.write_bytes(b"rot")
    with pytest.raises(LogCorrupt, match=rf"nothing was deleted: {kind} file://{file} {damage}") as refused:
        other.purge(TOPIC, now_ms)
    assert f"under the name file://{head_of(home)}. Nobody can tell" in str(refused.value)
    with pytest.raises(LogCorrupt, match=f"put the {kind} back from a copy of the storage"):
        preview_purge(other, TOPIC, now_ms, DAY_MS)
    assert str(file) in look_for_holders(other, TOPIC, now_ms).no_purge
    file.write_bytes(content)
    purged_twice(other)
    assert values(store_at(home)) == before


@pytest.mark.parametrize("error", [FileNotFoundError(2, "not there just now"), LogCorrupt("a bit is wrong")])
def test_a_manifest_that_can_not_be_read_once_costs_the_other_home_nothing(
    other: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    home = tmp_path / "original"
    before, manifest = values(store_at(home)), old_manifest(home, other)
    really, errors = references._content_of, [error]

    def content_of(read: ManifestFile, io: FileIO) -> object:
        if read.manifest_path.endswith(manifest.name) and errors:
            raise errors.pop()
        return really(read, io)

    monkeypatch.setattr(references, "_content_of", content_of)
    with pytest.raises(LogCorrupt, match="nothing was deleted: manifest "):
        other.purge(TOPIC, clock_ms() + LATER_MS)
    assert values(store_at(home)) == before
    other.purge(TOPIC, clock_ms() + LATER_MS)
    assert values(store_at(home)) == before


def test_a_damaged_manifest_of_the_copied_state_stops_no_purge_once_that_file_is_moved_away(
    other: LogStore, tmp_path: Path
) -> None:
    old_manifest(tmp_path / "original", other).write_bytes(b"rot")
    head_of(tmp_path / "original").rename(tmp_path / "moved")
    assert other.purge(TOPIC, clock_ms() + LATER_MS).deleted_files


def files_beside(tmp_path: Path) -> set[str]:
    return {f"file://{path}" for path in (tmp_path / "beside").rglob("*.parquet")}


@pytest.fixture
def with_a_file_beside(tmp_path: Path) -> LogStore:
    """Who has registered a copy of a topic to which another program has brought a file from outside of its folder."""
    home = tmp_path / "original"
    store = create(home)
    append_each(store, [("a", "1")])
    set_properties(home, {"write.data.path": f"file://{tmp_path}/beside"})
    insert(home, 1)
    set_properties(home, {"write.data.path": None})
    plan = store.plan_repair(TOPIC, is_adoption=True)
    assert plan
    store.repair(plan, "adopt")
    commit_plainly(home)
    other = registered(tmp_path / "other", copied_beside(head_of(home), tmp_path / "users.metadata.json"))
    append_each(other, [(key.decode(), "2") for key in keys_of(other)], [("z", "2")])
    clean(other)
    return other


def keys_of(store: LogStore) -> list[bytes]:
    return [record.key for _, record in store.read(TOPIC) if record.key]


def test_what_a_copied_state_shows_outside_of_the_folder_stays_known_until_somebody_deletes_it(
    with_a_file_beside: LogStore, tmp_path: Path
) -> None:
    other, head = with_a_file_beside, head_of(tmp_path / "original")
    [beside] = files_beside(tmp_path)
    now_ms = purged_twice(other)
    [left] = other.purge(TOPIC, now_ms).not_deleted
    assert (left.path, f"has the topic under the name file://{head}" in left.reason) == (beside, True)
    assert HolderKind.ELSEWHERE not in {each.kind for each in holders(other, now_ms)}
    told = {each.kind: each.files for each in holders(other, now_ms)}
    assert told[HolderKind.COPIED_STATE] == 2

    head.rename(tmp_path / "moved")
    now_ms = purged_twice(other)
    assert beside in {each.path for each in searched_files(lambda: other.load_table(TOPIC), other.files)}
    assert [each.path for each in other.purge(TOPIC, now_ms).not_deleted] == [beside]
    assert "delete by hand what nobody needs" in check_gone(other, TOPIC, [0], now_ms)[0].description

    Path(beside.removeprefix("file://")).unlink()
    other.purge(TOPIC, now_ms)
    assert check_gone(other, TOPIC, [0], now_ms)[0].outcome == "ok"


def test_a_preview_does_not_say_that_a_purge_would_leave_what_another_home_may_need(
    with_a_file_beside: LogStore, tmp_path: Path
) -> None:
    now_ms = purged_twice(with_a_file_beside)
    assert "outside of its folder" not in str(preview_purge(with_a_file_beside, TOPIC, now_ms, DAY_MS))
    head_of(tmp_path / "original").rename(tmp_path / "moved")
    assert "outside of its folder" in str(preview_purge(with_a_file_beside, TOPIC, now_ms, DAY_MS))


@pytest.mark.parametrize("kept", [1, 2])
def test_a_copied_state_is_spared_while_it_is_the_oldest_of_a_history_that_was_cut(tmp_path: Path, kept: int) -> None:
    home = tmp_path / "original"
    append_each(create(home), [("a", "1")])
    set_properties(home, {"write.metadata.previous-versions-max": str(kept)})
    append_each(store_at(home), *[[(key, "1")] for key in "bcd"])
    commit_plainly(home)
    other = registered(tmp_path / "other", copied_beside(head_of(home), tmp_path / "users.metadata.json"))
    before = values(store_at(home))
    append_each(other, *[[(key, "2") for key in "abcd"]] * kept)

    with pytest.raises(LogCorrupt, match="under that name"):
        other.delete_topic(TOPIC, clock_ms() + LATER_MS)
    other.purge(TOPIC, clock_ms() + LATER_MS)

    assert values(store_at(home)) == before


def test_watermarks_that_the_copied_file_names_are_left(original: LogStore, tmp_path: Path) -> None:
    marks = f"{original.describe_topic(TOPIC).location}/data/watermarks/partition=0/marks.arrow"
    original.files.write_bytes(marks, b"keys")
    set_properties(tmp_path / "original", {"log.p0.watermarks": marks})
    commit_plainly(tmp_path / "original")
    copy = copied_beside(head_of(tmp_path / "original"), tmp_path / "users.metadata.json")
    other = registered(tmp_path / "other", copy)
    with other.load_table(TOPIC).transaction() as transaction:
        transaction.remove_properties("log.p0.watermarks")
    now_ms = purged_twice(other)
    assert original.files.exists(marks)
    told = {each.kind: each.files for each in holders(other, now_ms)}
    assert told[HolderKind.COPIED_STATE] == 1


def test_the_register_of_erasures_that_the_copied_file_names_is_left(original: LogStore, tmp_path: Path) -> None:
    erase(original)
    commit_plainly(tmp_path / "original")
    copy = copied_beside(head_of(tmp_path / "original"), tmp_path / "users.metadata.json")
    other = registered(tmp_path / "other", copy)
    erase(other, "r2")
    purged_twice(other)
    assert [each.id for each in read_erasures(original.files, table_of(tmp_path / "original"))] == ["r1"]


def test_what_is_one_ahead_is_told_with_what_ends_it(original: LogStore, tmp_path: Path) -> None:
    now_ms = one_ahead(original, tmp_path)
    store = store_at(tmp_path / "original")
    [told] = [each for each in holders(store, now_ms) if each.kind is not HolderKind.METADATA]
    assert (told.kind, told.files, told.is_late) == ("commit ahead", 1, True)
    assert told.name.rpartition("/")[2].startswith("00003-")
    assert "no purge deletes what it refers to before the next commit here" in told.remedy
    commit_plainly(tmp_path / "original")
    store.purge(TOPIC, now_ms)
    assert {each.kind for each in holders(store, now_ms)} == {HolderKind.METADATA}


def test_a_younger_one_may_be_of_a_run_that_is_under_way(original: LogStore, tmp_path: Path) -> None:
    one_ahead(original, tmp_path)
    store = store_at(tmp_path / "original")
    assert HolderKind.STAGED in {each.kind for each in holders(store, clock_ms())}


def one_ahead(original: LogStore, tmp_path: Path) -> int:
    """A commit that this catalog does not know; gives when a purge of long after came."""
    catalog = tmp_path / "original" / "catalog.db"
    shutil.copy(catalog, tmp_path / "backup.db")
    append_each(original, [("b", "2")])
    shutil.copy(tmp_path / "backup.db", catalog)
    return purged_twice(store_at(tmp_path / "original"))


@pytest.mark.parametrize("damage", ["can't be read", "is gone"])
@pytest.mark.parametrize("kind", ["manifest", "manifest list"])
def test_a_purge_deletes_nothing_while_what_is_one_ahead_is_damaged_for_it_may_have_landed(
    tmp_path: Path, kind: str, damage: str
) -> None:
    home = tmp_path / "home"
    append_each(create(home), [("a", "1")])
    shutil.copy(home / "catalog.db", tmp_path / "backup.db")
    append_each(store_at(home), [("b", "2")])
    shutil.copy(home / "catalog.db", tmp_path / "newer.db")
    file, ahead = newest_of(home, kind), head_of(home)
    shutil.copy(tmp_path / "backup.db", home / "catalog.db")
    content = file.read_bytes()
    file.unlink() if damage == "is gone" else file.write_bytes(b"rot")
    told = rf"{kind} file://{file} {damage}.*, and file://{ahead}, one commit ahead of this catalog, may have landed"
    with pytest.raises(LogCorrupt, match=rf"nothing was deleted: {told}.* move {ahead.name} away"):
        store_at(home).purge(TOPIC, clock_ms() + LATER_MS)

    file.write_bytes(content)
    shutil.copy(tmp_path / "newer.db", home / "catalog.db")
    assert values(store_at(home)) == [(0, 0, b"1"), (0, 1, b"2")]


def test_of_damage_for_two_the_first_is_told(other: LogStore, tmp_path: Path) -> None:
    copied, catalog = old_manifest(tmp_path / "original", other), tmp_path / "other" / "catalog.db"
    shutil.copy(catalog, tmp_path / "backup.db")
    append_each(other, [("b", "3")])
    newest_of(tmp_path / "other", "manifest").unlink()
    copied.unlink()
    shutil.copy(tmp_path / "backup.db", catalog)
    with pytest.raises(LogCorrupt, match=rf"nothing was deleted: manifest file://{copied} is gone, and another home"):
        store_at(tmp_path / "other").purge(TOPIC, clock_ms() + LATER_MS)


def newest_of(home: Path, kind: str) -> Path:
    """The manifest that the last commit has added, or its list of manifests."""
    table = table_of(home)
    snapshot = table.current_snapshot()
    assert snapshot
    added = [each.manifest_path for each in manifests_of(table) if each.added_snapshot_id == snapshot.snapshot_id]
    return Path((added[0] if kind == "manifest" else snapshot.manifest_list).removeprefix("file://"))


def test_watermarks_of_what_is_one_ahead_are_left(original: LogStore, tmp_path: Path) -> None:
    catalog = tmp_path / "original" / "catalog.db"
    shutil.copy(catalog, tmp_path / "backup.db")
    marks = f"{original.describe_topic(TOPIC).location}/data/watermarks/partition=0/marks.arrow"
    original.files.write_bytes(marks, b"keys")
    set_properties(tmp_path / "original", {"log.p0.watermarks": marks})
    shutil.copy(tmp_path / "backup.db", catalog)
    purged_twice(store_at(tmp_path / "original"))
    assert original.files.exists(marks)


def test_where_nobody_can_read_what_is_to_be_spared_that_is_told(
    original: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged(original, TOPIC, 0, [record for _, record in original.read(TOPIC)])

    def out_of_reach(*_: object) -> None:
        raise StorageUnavailable("no answer")

    monkeypatch.setattr("keptlog.table.removal.refusal.told_apart", out_of_reach)
    found = check_gone(original, TOPIC, [0], clock_ms())[0]
    assert (found.outcome, "that this catalog does not name" in found.description) == ("not looked at", True)


def test_doctor_names_the_copied_file(other: LogStore, tmp_path: Path) -> None:
    assert examined(other, TOPIC).copied == (f"file://{head_of(tmp_path / 'original')}",)
