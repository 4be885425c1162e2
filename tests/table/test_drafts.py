"""Receipts: what is in them, and how they come out of the topic's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keptlog.storage.checksums import checksums_text
from keptlog.table.removal.journal import DeletedFile, Journal, journal_folder, write_journal
from keptlog.table.store import LogStore
from tests.table.killed import sealing_store
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values, sealed
from tests.table.stores import NOW_MS, TOPIC, create, staged

AFTER_THE_DELAY_MS = 10 * MINUTE_MS


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    cleaned(tmp_path)
    return sealing_store(tmp_path)


def test_a_receipt_says_of_each_segment_its_checksums_its_partition_its_offsets_and_why_it_went(
    tmp_path: Path, store: LogStore
) -> None:
    retired = {Path(path.removeprefix("file://")) for path in paths_of_values(store) - live_paths(store)}
    written = {f"file://{path}": checksums_text(path.read_bytes()) for path in retired}
    receipt = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    [proof] = sealed(tmp_path / "chain")
    assert (proof["id"], proof["kind"]) == (receipt.receipts[0], "purge")
    content = proof["content"]
    assert (content["topic"], content["table_uuid"]) == (TOPIC, store.describe_topic(TOPIC).id)
    assert len(content["expired_snapshots"]) == 3
    segments = [file for file in content["files"] if "/data/" in file["path"]]
    assert {file["path"]: file["crc32"] for file in segments} == written
    assert None not in written.values()
    told = sorted((file["partition"], file["first_offset"], file["last_offset"], file["why"]) for file in segments)
    assert told == [(0, 0, 0, "retired"), (0, 1, 1, "retired"), (0, 2, 3, "retired")]
    assert not list((tmp_path / "warehouse").rglob("receipts/*.json"))


def test_an_orphan_with_a_value_in_it_is_in_a_receipt_with_its_checksums(tmp_path: Path, store: LogStore) -> None:
    store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    [orphan] = staged(store, TOPIC, 0, [record for _, record in store.read(TOPIC)])
    [receipt_id] = store.purge(TOPIC, clock_ms() + 2 * DAY_MS).receipts
    [proof] = [each for each in sealed(tmp_path / "chain") if each["id"] == receipt_id]
    [file] = [each for each in proof["content"]["files"] if each["path"] == orphan.path]
    assert (file["why"], file["bytes"], len(file["crc32"])) == ("orphan", orphan.size_bytes, 17)
    assert file["partition"] is None


def test_receipts_of_older_formats_are_sealed_too(tmp_path: Path) -> None:
    create(tmp_path)
    store = sealing_store(tmp_path)
    folder = Path(store.describe_topic(TOPIC).location.removeprefix("file://")) / "metadata" / "receipts"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "r.json").write_text("{}")
    old = {"topic": TOPIC, "purged_at_ms": NOW_MS, "expired_snapshots": [1, 2]}
    files = [{"path": "file:///x/a.parquet", "bytes": 7}]
    held = [{"path": "file:///x/b.parquet", "bytes": 8, "holder": "staged"}]
    (folder / "of-1-0.json").write_text(json.dumps(old | {"deleted_files": files}, indent=1))
    (folder / "of-1-1.json").write_text(json.dumps(old | {"deleted_files": files, "held_files": held}, indent=1))
    receipt = store.purge(TOPIC, NOW_MS)
    assert (receipt.receipts, receipt.sealing.sealed) == ((), ("of-1-0", "of-1-1"))
    first, second = sealed(tmp_path / "chain")
    assert (first["at_ms"], first["kind"], first["content"]["expired_snapshots"]) == (NOW_MS, "purge", [1, 2])
    [file] = first["content"]["files"]
    assert (file["path"], file["bytes"], file["why"], file["crc32"]) == ("file:///x/a.parquet", 7, "retired", None)
    assert (first["content"]["held_files"], second["content"]["held_files"]) == (None, held)
    assert [path.name for path in folder.rglob("*.json")] == ["r.json"]


def test_a_receipt_that_can_not_be_sealed_stays_and_is_sealed_by_the_next_purge(
    tmp_path: Path, store: LogStore
) -> None:
    def fails(_: object) -> None:
        raise OSError("no such key")

    store.seal = fails
    receipt = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert receipt.sealing.waiting == receipt.receipts
    assert receipt.sealing.why == "OSError: no such key"
    again = sealing_store(tmp_path).purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert (again.receipts, again.sealing.sealed) == ((), receipt.receipts)


def test_what_is_no_receipt_is_passed_over_and_is_not_lost_with_its_topic(tmp_path: Path, store: LogStore) -> None:
    folder = Path(store.describe_topic(TOPIC).location.removeprefix("file://")) / "metadata" / "receipts"
    folder.mkdir()
    (folder / "half.json").write_text('{"topic": "us')
    receipt = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert len(receipt.sealing.sealed) == 1
    assert ["half.json is no receipt" in what for what in receipt.unreadable] == [True]
    assert store.delete_topic(TOPIC, NOW_MS).unfinished is None
    [kept] = [each for each in sealed(tmp_path / "chain") if each["id"].startswith("unreadable-")]
    assert kept["content"]["unreadable"] == '{"topic": "us'


def test_half_a_receipt_without_a_journal_is_sealed_as_it_is_once_it_is_older_than_the_grace(
    tmp_path: Path, store: LogStore
) -> None:
    """The last one of a purge that died while it wrote, on a store that shows half of a file."""
    folder = Path(store.describe_topic(TOPIC).location.removeprefix("file://")) / "metadata" / "receipts"
    folder.mkdir()
    (folder / "half.json").write_text('{"topic": "us')
    young = store.purge(TOPIC, clock_ms() + AFTER_THE_DELAY_MS)
    assert [path.name for path in folder.glob("*.json")] == ["half.json"]
    assert "once it is older than the grace" in young.unreadable[0]
    old = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert list(folder.glob("*.json")) == []
    [kept] = [each for each in sealed(tmp_path / "chain") if each["id"].startswith("unreadable-")]
    assert kept["content"]["unreadable"] == '{"topic": "us'
    assert old.unreadable[0].endswith(f"sealed as it is, in receipt {kept['id']}")
    assert store.purge(TOPIC, clock_ms() + 3 * DAY_MS).unreadable == ()


def test_two_drafts_that_are_empty_are_sealed_each(tmp_path: Path, store: LogStore) -> None:
    """What a full disk leaves; sealed under one id, the second was deleted with nothing that tells of it."""
    for name in ("one", "other"):
        folder = Path(store.describe_topic(TOPIC).location.removeprefix("file://")) / "metadata" / "receipts"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_bytes(b"")
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert list(folder.glob("*.json")) == []
    assert len([each for each in sealed(tmp_path / "chain") if each["id"].startswith("unreadable-")]) == 2


def test_half_a_receipt_whose_journal_is_still_there_waits_for_it_to_be_written_again(
    tmp_path: Path, store: LogStore
) -> None:
    location = store.describe_topic(TOPIC).location
    folder = Path(location.removeprefix("file://")) / "metadata" / "receipts"
    folder.mkdir()
    (folder / "j.json").write_text('{"topic": "us')
    elsewhere = tmp_path / "elsewhere.parquet"
    elsewhere.write_bytes(b"what no purge deletes, and so its journal stays")
    journal = Journal((1,), (DeletedFile(str(elsewhere), 4),), ())
    write_journal(store.files, f"{journal_folder(location)}j.json", journal)
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert (folder / "j.json").exists()
    elsewhere.unlink()
    assert "j" in store.purge(TOPIC, clock_ms() + 2 * DAY_MS).sealing.sealed
    assert list(folder.glob("*.json")) == []
