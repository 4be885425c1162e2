"""A journal that an earlier topic has left in the folder is settled, and no receipt tells its files a second time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.home import new_id
from keptlog.log.erasures.erasure import Erasure, ErasureBound, ReachedState
from keptlog.table.chain.sealed_deletions import SealedDeletions
from keptlog.table.changes.erasures import RegisterChange
from keptlog.table.io.files import TableFiles
from keptlog.table.purge_preview import preview_purge
from keptlog.table.removal.journal import (
    DELETION,
    DeletedFile,
    EndedErasure,
    Journal,
    journal_folder,
    read_journal,
    write_journal,
)
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, receipts
from tests.table.stores import COMPACTED, TOPIC, append_each, store_at


def id_and_location(store: LogStore) -> tuple[str, str]:
    topic = store.describe_topic(TOPIC)
    return topic.id, topic.location


def purge(store: LogStore) -> None:
    store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS)


def journals(location: str) -> list[str]:
    return [file.path for file in TableFiles().list(journal_folder(location))]


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Journal]:
    """The topic made anew, and the journal of a purge of the earlier one, killed as that was deleted."""
    store = cleaned(tmp_path)
    earlier, location = id_and_location(store)
    written: list[Journal] = []

    def note(files: TableFiles, path: str, content: bytes) -> None:
        write_bytes(files, path, content)
        if path.startswith(journal_folder(location)) and not written:
            written.append(read_journal(files, path))

    write_bytes = TableFiles.write_bytes
    with monkeypatch.context() as patch:
        patch.setattr(TableFiles, "write_bytes", note)
        purge(store)
    [journal] = written
    assert journal.table_uuid == earlier
    assert journal.segments
    store.delete_topic(TOPIC, clock_ms())
    told = [each for each in receipts(tmp_path) if each["kind"] == DELETION and each["table_uuid"] == earlier]
    for draft in (tmp_path / "warehouse").rglob("receipts/*.json"):
        draft.unlink()  # as if sealed
    monkeypatch.setattr(SealedDeletions, "__call__", lambda _, asked: told if asked == earlier else [])
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")])
    assert store.describe_topic(TOPIC).location == location
    write_journal(store.files, path := f"{journal_folder(location)}0-left.json", journal)
    return path, journal


def test_the_purge_of_the_later_topic_drops_it_without_a_receipt(tmp_path: Path, left: tuple[str, Journal]) -> None:
    store = store_at(tmp_path)
    purge(store)
    assert journals(id_and_location(store)[1]) == []
    assert receipts(tmp_path) == []


def test_so_does_the_deletion_of_the_later_topic(tmp_path: Path, left: tuple[str, Journal]) -> None:
    store = store_at(tmp_path)
    later, _ = id_and_location(store)
    store.delete_topic(TOPIC, clock_ms())
    gone = {file.path for file in left[1].segments}
    assert [each["table_uuid"] for each in receipts(tmp_path)] == [later]
    assert gone.isdisjoint(file["path"] for each in receipts(tmp_path) for file in each["files"])


def test_what_is_still_there_of_it_goes_with_a_receipt_that_says_whose_it_was(
    tmp_path: Path, left: tuple[str, Journal]
) -> None:
    store = store_at(tmp_path)
    still = left[1].segments[0].path
    store.files.write_bytes(still, b"x")
    purge(store)
    [receipt] = receipts(tmp_path)
    assert [file["path"] for file in receipt["files"]] == [still]
    assert receipt["table_uuid"] == left[1].table_uuid != id_and_location(store)[0]
    assert not store.files.exists(still)


def test_what_is_gone_of_it_is_told_as_the_earlier_topics_where_no_receipt_of_its_deletion_is_there(
    tmp_path: Path, left: tuple[str, Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program has dropped that topic, so nobody else tells what keptlog had deleted."""
    monkeypatch.setattr(SealedDeletions, "__call__", lambda _, __: [])
    store = store_at(tmp_path)
    purge(store)
    [receipt] = receipts(tmp_path)
    assert [file["path"] for file in receipt["files"]] == left[1].paths
    assert (receipt["kind"], receipt["table_uuid"]) == ("purge", left[1].table_uuid)
    assert journals(id_and_location(store)[1]) == []


def test_a_journal_that_does_not_say_whose_it_is_is_carried_out_as_the_topics_own(
    tmp_path: Path, left: tuple[str, Journal]
) -> None:
    store, (path, journal) = store_at(tmp_path), left
    told = json.loads(store.files.read_bytes(path))
    del told["table_uuid"]
    store.files.write_bytes(path, json.dumps(told).encode())
    purge(store)
    [receipt] = receipts(tmp_path)
    assert [file["path"] for file in receipt["files"]] == journal.paths
    assert receipt["table_uuid"] == id_and_location(store)[0]


def leave_deletion(store: LogStore, left: tuple[str, Journal], erasures: tuple[EndedErasure, ...] | None) -> str:
    """The journal of the earlier topic's deletion instead of that of its purge; gives the file that it names."""
    path, journal = left
    gone = DeletedFile(f"{id_and_location(store)[1]}/data/gone.parquet", 4)
    of_deletion = replace(journal, segments=(), metadata=(gone,), kind=DELETION, erasures=erasures)
    store.files.delete(path)
    write_journal(store.files, path.replace("0-left", "deletion-left"), of_deletion)
    return gone.path


def test_the_journal_of_an_earlier_topics_deletion_is_told_whole_for_nobody_else_tells_it(
    tmp_path: Path, left: tuple[str, Journal]
) -> None:
    store = store_at(tmp_path)
    gone = leave_deletion(store, left, None)
    store.delete_topic(TOPIC, clock_ms())
    [told] = [each for each in receipts(tmp_path) if each["table_uuid"] == left[1].table_uuid]
    assert [file["path"] for file in told["files"]] == [gone]


def ask(store: LogStore) -> None:
    """Leave an open erasure in the topic."""
    topic, now_ms = store.describe_topic(TOPIC), clock_ms()
    bounds, reached = (ErasureBound(0, 1, 1),), (ReachedState("requested", now_ms),)
    erasure = Erasure("r1", "tombstone", now_ms, None, "", "f" * 8, ("ab" * 32,), bounds=bounds, reached=reached)
    RegisterChange(topic, store.committer, store.files, new_id, now_ms).request(erasure, None)


@pytest.mark.parametrize("told", [(), None])
def test_an_erasure_that_ends_with_the_later_topic_is_in_the_receipt_of_that_and_in_no_other(
    tmp_path: Path, left: tuple[str, Journal], told: tuple[EndedErasure, ...] | None
) -> None:
    store = store_at(tmp_path)
    later, _ = id_and_location(store)
    ask(store)
    leave_deletion(store, left, told)
    done = store.delete_topic(TOPIC, clock_ms())
    assert [each.request for each in done.ended or ()] == ["r1"]
    ended = {each["table_uuid"]: each["erasures"] for each in receipts(tmp_path)}
    assert [each["request"] for each in ended.pop(later)] == ["r1"]
    assert ended == {left[1].table_uuid: None if told is None else []}


def test_what_ended_with_the_earlier_topic_is_not_told_as_ended_with_the_later(
    tmp_path: Path, left: tuple[str, Journal]
) -> None:
    store = store_at(tmp_path)
    leave_deletion(store, left, (EndedErasure("r0", "tombstone", "", "tombstoned", 1, None, "f" * 8, ("ab" * 32,)),))
    assert store.delete_topic(TOPIC, clock_ms()).ended == ()


def test_what_can_not_be_read_of_the_later_topic_is_told_as_not_looked_at(
    tmp_path: Path, left: tuple[str, Journal]
) -> None:
    store = store_at(tmp_path)
    later, location = id_and_location(store)
    leave_deletion(store, left, ())
    for file in list(store.files.list(f"{location}/metadata")):
        if file.path.endswith(".avro"):
            store.files.write_bytes(file.path, b"damaged")
    store.delete_topic(TOPIC, clock_ms())
    held = {each["table_uuid"]: each["held_files"] for each in receipts(tmp_path)}
    assert held == {later: None, left[1].table_uuid: []}


def test_a_purge_tells_what_an_earlier_topics_deletion_has_deleted_and_deletes_nothing_by_its_journal(
    tmp_path: Path, left: tuple[str, Journal]
) -> None:
    store, (path, journal) = store_at(tmp_path), left
    location = id_and_location(store)[1]
    store.files.delete(path)
    kept = f"{location}/metadata/receipts/readers/search/1/0-5.json"
    store.files.write_bytes(kept, b"{}")
    gone, there = DeletedFile(f"{location}/data/gone.parquet", 4), DeletedFile(kept, 2)
    ended = EndedErasure("r1", "tombstone", "", "tombstoned", 1, None, "ab", ("cd",))
    of_deletion = Journal((), (), (gone, there), DELETION, erasures=(ended,), table_uuid=journal.table_uuid)
    write_journal(store.files, path.replace("0-left", "deletion-left"), of_deletion)
    assert not preview_purge(store, TOPIC, clock_ms(), DAY_MS).deletes_anything
    purged = store.purge(TOPIC, clock_ms())
    [told] = receipts(tmp_path)
    assert (told["kind"], told["id"], told["table_uuid"]) == (DELETION, "deletion-left", journal.table_uuid)
    assert [file["path"] for file in told["files"]] == [gone.path]
    assert [each["request"] for each in told["erasures"]] == ["r1"]
    assert store.files.exists(kept)
    assert journals(location) == []
    assert (purged.deleted_files, purged.deleted_metadata, purged.deleted_orphans) == ((), (), ())


def test_the_deletion_of_the_later_topic_tells_its_own_erasures_beside_such_a_journal(
    tmp_path: Path, left: tuple[str, Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, (path, journal) = store_at(tmp_path), left
    store.files.delete(path)
    of_deletion = Journal(
        (), (), (DeletedFile(f"{path}-gone", 4),), DELETION, table_uuid=journal.table_uuid, erasures=()
    )
    write_journal(store.files, path.replace("0-left", "deletion-left"), of_deletion)
    ended = EndedErasure("r2", "tombstone", "", "tombstoned", 1, None, "ab", ("cd",))
    monkeypatch.setattr("keptlog.table.removal.deletion.ended_erasures", lambda *_: ((ended,), ""))
    later = id_and_location(store)[0]
    store.delete_topic(TOPIC, clock_ms())
    told = {each["table_uuid"]: each["erasures"] for each in receipts(tmp_path)}
    assert told[journal.table_uuid] == []
    assert [each["request"] for each in told[later]] == ["r2"]


def test_the_journals_of_sweeps_and_of_deletions_say_whose_they_are_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = cleaned(tmp_path)
    own, location = id_and_location(store)
    store.files.write_bytes(f"{location}/data/orphan.parquet", b"x")
    said: dict[str, object] = {}
    real = TableFiles.write_bytes

    def note(files: TableFiles, path: str, content: bytes) -> None:
        if path.startswith(journal_folder(location)):
            journal = json.loads(content)
            said[journal["kind"]] = journal["table_uuid"]
        real(files, path, content)

    monkeypatch.setattr(TableFiles, "write_bytes", note)
    store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS, 0)
    store.delete_topic(TOPIC, clock_ms())
    assert said == dict.fromkeys(("expiry", "sweep", "topic-delete"), own)
