"""What can't be deleted is named with the reason; the rest goes, and a receipt names only what is gone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keptlog.errors import Action, InvalidConfig, StorageUnavailable
from keptlog.passes.purge import Purger
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from keptlog.table.removal.journal import SWEEP, DeletedFile, Journal, journal_folder, write_journal
from keptlog.table.store import LogStore
from tests.storage_errors import unlisted
from tests.table.killed import sealing_store
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, files_sealed, live_paths, paths_of_values, sealed
from tests.table.stores import NOW_MS, TOPIC, append_each, create

AFTER_THE_DELAY_MS = 10 * MINUTE_MS
LATER_MS = 2 * DAY_MS


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    cleaned(tmp_path)
    return sealing_store(tmp_path)


@pytest.fixture
def immutable() -> Iterator[Callable[[str], None]]:
    """Makes files immutable, until the test ends or it is called again with ``undo``."""
    made: list[str] = []

    def make(path: str) -> None:
        local = path.removeprefix("file://")
        done = subprocess.run(["chattr", "+i", local], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("this machine lets us make no file immutable")
        made.append(local)

    yield make
    subprocess.run(["chattr", "-i", *made], capture_output=True, check=False)


def mutable(path: str) -> None:
    subprocess.run(["chattr", "-i", path.removeprefix("file://")], check=True)


def refusing(monkeypatch: pytest.MonkeyPatch, error: Exception, *endings: str) -> None:
    """What a storage says that is not this machine's disk."""
    real = TableFiles.delete

    def delete(files: TableFiles, path: str) -> None:
        if path.endswith(endings):
            raise error
        real(files, path)

    monkeypatch.setattr(TableFiles, "delete", delete)


def orphan(store: LogStore, name: str) -> str:
    path = f"{store.data_location(TOPIC)}/partition=0/{name}.parquet"
    store.files.write_bytes(path, b"of a run that died")
    return path


def test_a_retired_segment_that_is_immutable_is_named_and_goes_with_the_purge_after_it_was_mended(
    tmp_path: Path, store: LogStore, immutable: Callable[[str], None]
) -> None:
    retired = sorted(paths_of_values(store) - live_paths(store))
    stuck, *others = retired
    immutable(stuck)
    receipt = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    [left] = receipt.not_deleted
    assert (left.path, left.bytes > 0) == (stuck, True)
    assert "Operation not permitted" in left.reason
    assert sorted(file.path for file in receipt.deleted_files) == others
    assert [path for path in files_sealed(tmp_path / "chain") if "/data/" in path] == others
    [proof] = sealed(tmp_path / "chain")
    assert [file["path"] for file in proof["content"]["not_deleted"]] == [stuck]
    again = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert (again.deleted_files, [file.path for file in again.not_deleted], again.receipts) == ((), [stuck], ())
    mutable(stuck)
    last = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert ([file.path for file in last.deleted_files], last.not_deleted) == ([stuck], ())
    assert [path for path in files_sealed(tmp_path / "chain") if "/data/" in path] == retired
    assert not list((tmp_path / "warehouse").rglob("gc/*.json"))


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(13, "Permission denied"),
        OSError(30, "Read-only file system"),
        OSError("When deleting key 'x': AWS Error ACCESS_DENIED during DeleteObject operation: Access Denied."),
        OSError(5, "Input/output error"),
        StorageUnavailable("the object is locked until 2030-01-01"),
    ],
)
def test_whatever_keeps_a_file_from_being_deleted_is_its_reason_and_the_next_topic_is_purged(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    stuck = min(paths_of_values(store) - live_paths(store))
    store.create_topic("z", 1, {})
    refusing(monkeypatch, error, stuck.rpartition("/")[2])
    result = Purger(store).purge(now_ms=clock_ms() + AFTER_THE_DELAY_MS)
    assert list(result.receipts) == [TOPIC, "z"]
    [left] = result.receipts[TOPIC].not_deleted
    assert str(error).splitlines()[0] in left.reason
    assert len(result.receipts[TOPIC].deleted_files) == 2
    text = str(result.failed[TOPIC])
    assert text.startswith(f"topic {TOPIC}: 1 file could not be deleted: {stuck} (")
    assert text.endswith("see to it that they can be, and purge again")


def test_a_storage_that_does_not_answer_any_more_ends_the_purge_and_the_next_one_has_the_receipts(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    retired = sorted(paths_of_values(store) - live_paths(store))

    def unreachable(*_: object) -> bool:
        raise OSError("the bucket does not answer")

    with monkeypatch.context() as patch:
        refusing(patch, OSError("the bucket does not answer"), retired[1].rpartition("/")[2])
        patch.setattr(TableFiles, "exists", unreachable)
        with pytest.raises(StorageUnavailable, match="does not answer"):
            store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert [path for path in files_sealed(tmp_path / "chain") if "/data/" in path] == retired


def test_a_file_that_is_there_after_the_storage_said_it_is_deleted_is_in_no_receipt(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = min(paths_of_values(store) - live_paths(store))
    real = TableFiles.delete
    monkeypatch.setattr(TableFiles, "delete", lambda files, path: None if path == stuck else real(files, path))
    receipt = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert [(file.path, "still there" in file.reason) for file in receipt.not_deleted] == [(stuck, True)]
    assert stuck not in files_sealed(tmp_path / "chain")


def test_an_orphan_that_can_not_be_deleted_costs_one_fence_and_not_one_a_purge(
    tmp_path: Path, store: LogStore, immutable: Callable[[str], None]
) -> None:
    store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    stuck, other = orphan(store, "x"), orphan(store, "y")
    immutable(stuck)
    first = store.purge(TOPIC, clock_ms() + LATER_MS)
    assert other in {file.path for file in first.deleted_orphans}
    store.purge(TOPIC, clock_ms() + LATER_MS)
    snapshot = store.describe_topic(TOPIC).snapshot_id
    for _ in range(3):
        receipt = store.purge(TOPIC, clock_ms() + LATER_MS)
        assert [file.path for file in receipt.not_deleted] == [stuck]
    assert store.describe_topic(TOPIC).snapshot_id == snapshot
    mutable(stuck)
    assert [file.path for file in store.purge(TOPIC, clock_ms() + LATER_MS).deleted_orphans] == [stuck]
    orphans = files_sealed(tmp_path / "chain", "orphan")
    assert [path for path in orphans if "/data/" in path] == [stuck, other]


def test_a_bucket_that_lets_nothing_be_deleted_says_so_and_collects_no_journals(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        refusing(patch, OSError("AWS Error ACCESS_DENIED during DeleteObject operation: Access Denied."), "")
        for _ in range(3):
            receipt = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
            assert len([file for file in receipt.not_deleted if "/data/" in file.path]) == 3
        assert len(list((tmp_path / "warehouse").rglob("gc/*.json"))) == 1
    assert len(store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS).deleted_files) == 3


def test_a_journal_that_can_not_be_deleted_gives_no_file_a_second_receipt(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = orphan(store, "left")
    folder = journal_folder(store.describe_topic(TOPIC).location)
    for name in ("x1", "x2"):
        write_journal(store.files, f"{folder}{name}.json", Journal((), (), (DeletedFile(left, 18),), SWEEP))
    with monkeypatch.context() as patch:
        refusing(patch, OSError(5, "Input/output error"), "x1.json")
        assert [file.path for file in store.purge(TOPIC, clock_ms()).not_deleted] == [f"{folder}x1.json"]
    assert store.purge(TOPIC, clock_ms()).not_deleted == ()
    assert files_sealed(tmp_path / "chain") == [left]
    assert not list((tmp_path / "warehouse").rglob("gc/*.json"))


def test_a_topic_of_which_a_file_can_not_be_deleted_is_gone_for_all_and_its_deletion_stays_unfinished(
    tmp_path: Path, store: LogStore, immutable: Callable[[str], None]
) -> None:
    stuck = min(live_paths(store))
    before = len(list(store.files.list(store.describe_topic(TOPIC).location)))
    immutable(stuck)
    deletion = store.delete_topic(TOPIC, NOW_MS)
    assert [file.path for file in deletion.not_deleted] == [stuck]
    assert "keptlog topic delete" in str(deletion.unfinished)
    assert (store.topics(), store.being_deleted()) == ([], [TOPIC])
    result = Purger(store).purge(now_ms=NOW_MS)
    assert stuck in str(result.failed[TOPIC])
    mutable(stuck)
    done = Purger(store).purge(now_ms=NOW_MS)
    assert (done.failed, list(done.deletions), store.being_deleted()) == ({}, [TOPIC], [])
    sealed_files = files_sealed(tmp_path / "chain", "topic-delete")
    assert stuck in sealed_files
    assert len(sealed_files) == len(set(sealed_files)) == before - 1  # the last metadata goes behind the receipt


def test_what_a_purge_could_not_delete_is_named_too_if_its_topic_can_not_be_deleted_wholly(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = sorted(paths_of_values(store))
    with monkeypatch.context() as patch:
        refusing(patch, PermissionError(13, "Permission denied"), ".parquet")
        store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
        for _ in range(2):
            done = store.delete_topic(TOPIC, NOW_MS)
            assert sorted(file.path for file in done.not_deleted) == values
    [first] = sealed(tmp_path / "chain")
    assert sorted(file["path"] for file in first["content"]["not_deleted"]) == values
    assert store.delete_topic(TOPIC, NOW_MS).is_over
    assert [path for path in files_sealed(tmp_path / "chain") if "/data/" in path] == values
    assert len(sealed(tmp_path / "chain")) == 2
    assert not list((tmp_path / "warehouse").rglob("*.json"))


def test_the_receipt_of_a_deletion_tells_which_records_were_in_what_a_purge_could_not_delete(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshots that told it have expired by then."""
    with monkeypatch.context() as patch:
        refusing(patch, PermissionError(13, "Permission denied"), ".parquet")
        store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert store.delete_topic(TOPIC, NOW_MS).is_over
    [proof] = sealed(tmp_path / "chain")
    segments = [file for file in proof["content"]["files"] if "/data/" in file["path"]]
    offsets = sorted((file["partition"], file["first_offset"], file["last_offset"]) for file in segments)
    assert offsets == [(0, 0, 0), (0, 1, 1), (0, 2, 3), (0, 2, 3)]
    assert all(file["crc32"] for file in segments)


def test_a_topic_with_a_folder_that_can_not_be_listed_is_not_deleted(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(path for path in (tmp_path / "warehouse").rglob("*") if path.is_file())
    with monkeypatch.context() as patch:
        unlisted(patch, "partition=0")
        with pytest.raises(StorageUnavailable, match="partition=0"):
            store.delete_topic(TOPIC, NOW_MS)
    assert (store.topics(), store.being_deleted(), sealed(tmp_path / "chain")) == ([TOPIC], [], [])
    assert sorted(path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()) == before


def test_a_folder_that_can_not_be_listed_any_more_keeps_a_deletion_unfinished(
    tmp_path: Path, store: LogStore, immutable: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = min(live_paths(store))
    immutable(stuck)
    assert store.delete_topic(TOPIC, NOW_MS).unfinished
    told = files_sealed(tmp_path / "chain", "topic-delete")
    with monkeypatch.context() as patch:
        unlisted(patch, "partition=0")
        with pytest.raises(StorageUnavailable, match="partition=0"):
            store.delete_topic(TOPIC, NOW_MS)
    assert store.being_deleted() == [TOPIC]
    assert files_sealed(tmp_path / "chain", "topic-delete") == told
    mutable(stuck)
    assert store.delete_topic(TOPIC, NOW_MS).unfinished is None


def test_tags_do_not_keep_a_topic_from_being_deleted(tmp_path: Path) -> None:
    create(tmp_path)
    store = sealing_store(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    tagged = store.describe_topic(TOPIC).snapshot_id
    assert tagged
    open_catalog(tmp_path).load_table(("keptlog", TOPIC)).manage_snapshots().create_tag(tagged, "audit").commit()
    assert store.delete_topic(TOPIC, NOW_MS).unfinished is None
    assert [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()] == []


def test_files_that_are_staged_while_a_topic_is_deleted_do_not_stay(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = f"{store.data_location(TOPIC)}/partition=0/"
    real = TableFiles.delete
    late: list[str] = []

    def delete(files: TableFiles, path: str) -> None:
        if len(late) < 2 and path.startswith(folder):
            late.append(f"{folder}late-{len(late)}.parquet")
            files.write_bytes(late[-1], b"of a run that knows nothing of it")
        real(files, path)

    monkeypatch.setattr(TableFiles, "delete", delete)
    assert store.delete_topic(TOPIC, NOW_MS).unfinished is None
    assert [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()] == []
    assert set(late) <= set(files_sealed(tmp_path / "chain", "topic-delete"))


def test_a_topic_is_not_forgotten_before_its_receipts_are_sealed(tmp_path: Path, store: LogStore) -> None:
    store.seal = None
    [earlier] = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS).receipts

    def fails(_: object) -> None:
        raise StorageUnavailable("the chain's table is locked")

    store.seal = fails
    deletion = store.delete_topic(TOPIC, NOW_MS)
    assert "receipts not sealed (StorageUnavailable: the chain's table is locked)" in str(deletion.unfinished)
    assert store.being_deleted() == [TOPIC]

    def refuses(_: object) -> None:
        raise InvalidConfig("the signing key is damaged")

    assert deletion.unfinished
    store.seal = refuses
    again = store.delete_topic(TOPIC, NOW_MS).unfinished
    assert again
    assert [deletion.unfinished.action, again.action] == [Action.RETRY, Action.FIX_CONFIG]
    assert Purger(sealing_store(tmp_path)).purge(now_ms=NOW_MS).failed == {}
    assert store.being_deleted() == []
    assert {each["id"] for each in sealed(tmp_path / "chain")} == {earlier, *deletion.receipts}


def test_receipts_of_a_deleted_topic_that_nobody_could_seal_are_sealed_by_the_purge_of_the_next_one(
    tmp_path: Path, store: LogStore
) -> None:
    location, topic_id = store.describe_topic(TOPIC).location, store.describe_topic(TOPIC).id
    store.seal = None
    assert store.delete_topic(TOPIC, NOW_MS).unfinished is None
    create(tmp_path)
    anew = sealing_store(tmp_path)
    assert anew.describe_topic(TOPIC).location == location
    anew.purge(TOPIC, clock_ms())
    assert [each["content"]["table_uuid"] for each in sealed(tmp_path / "chain")] == [topic_id]
