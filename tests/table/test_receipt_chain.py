"""Drafts are sealed exactly once by id, in one line, whatever the catalog answers and whoever else is at it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy.exc import OperationalError

from keptlog.errors import CommitStateUnknown, InvalidConfig, KeptlogError, StorageUnavailable, UnsupportedFormat
from keptlog.receipts.chain import Flaw
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.chain import receipt_chain
from keptlog.table.chain.receipt_chain import KEPT_SNAPSHOTS
from keptlog.table.io.files import TableFiles
from tests.table.receipt_chains import chain_at, chain_over, check, draft, ids, require_sound, stored
from tests.table.stores import FaultyCatalog, create

Commit = Callable[[], Any]


def test_drafts_are_sealed_in_their_order_and_found_again(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    first = chain.append([draft(1), draft(2)])
    second = chain.append([draft(3)])
    assert [(each.sequence, each.id) for each in first + second] == [(1, "draft-1"), (2, "draft-2"), (3, "draft-3")]
    assert first[1].previous_sha256 == first[0].sha256
    assert list(chain_at(tmp_path).receipts()) == first + second
    assert chain.find("draft-2") == chain.find("2") == first[1]
    assert chain.find("draft-4") is chain.find("4") is chain.find("0") is None
    head = chain.head()
    assert head
    assert (head.sequence, head.sha256) == (3, second[0].sha256)
    require_sound(chain)


def test_a_home_without_receipts_has_none_and_none_is_made_by_looking(tmp_path: Path) -> None:
    chain = chain_at(tmp_path / "home")
    assert (list(chain.receipts()), chain.head(), chain.find("1")) == ([], None, None)
    assert chain.append([]) == []
    require_sound(chain)
    assert not (tmp_path / "home").exists()


def test_the_properties_of_its_table_name_no_column_that_it_has_not(tmp_path: Path) -> None:
    """A catalog that makes the metadata itself refuses a table whose properties do."""
    chain = chain_at(tmp_path)
    chain.append([draft(1)])
    table = chain.table()
    assert table
    columns = [name.rpartition(".column.")[2] for name in table.properties if ".column." in name]
    assert set(columns) <= set(table.schema().column_names)
    assert "schema.name-mapping.default" not in table.properties


def test_no_topic_is_made_of_it(tmp_path: Path) -> None:
    store = create(tmp_path)
    chain_at(tmp_path).append([draft(1)])
    assert store.topics() == ["shop.users-v2"]
    assert list(store.metadata_locations()) == ["shop.users-v2"]
    assert store.being_deleted() == []


@pytest.mark.parametrize("again", [chain_at, None])
def test_what_is_sealed_again_is_found_and_not_sealed_twice(tmp_path: Path, again: Any) -> None:
    chain = chain_at(tmp_path)
    sealed = chain.append([draft(1), draft(2)])
    other = again(tmp_path) if again else chain
    assert other.append([draft(2), draft(1), draft(2)]) == [sealed[1], sealed[0]]
    mixed = other.append([draft(1), draft(3)])
    assert [each.sequence for each in mixed] == [1, 3]
    assert ids(chain) == ["draft-1", "draft-2", "draft-3"]
    require_sound(chain)


def test_more_drafts_than_go_into_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_chain, "SEALED_AT_ONCE", 3)
    chain = chain_at(tmp_path)
    receipts = chain.append(draft(number) for number in range(8))
    assert [each.sequence for each in receipts] == list(range(1, 9))
    require_sound(chain)


def test_the_folders_of_a_thousand_are_all_found(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append(draft(number) for number in range(1998))
    assert [each.sequence for each in chain.append([draft("a"), draft("b"), draft("c")])] == [1999, 2000, 2001]
    fresh = chain_at(tmp_path)
    assert [each.sequence for each in fresh.append([draft(0), draft(998), draft(999), draft("b")])] == [
        1,
        999,
        1000,
        2000,
    ]
    found = check(fresh)
    assert (found.is_sound, found.receipts) == (True, 2001)


def lost_answer(commit: Commit) -> Any:
    commit()
    raise OperationalError("commit", {}, Exception("connection reset"))


def lost_request(_: Commit) -> Any:
    raise OperationalError("commit", {}, Exception("connection reset"))


def refused(_: Commit) -> Any:
    raise CommitFailedException("branch main has changed")


def landed_and_refused(commit: Commit) -> Any:
    commit()
    raise CommitFailedException("branch main has changed")


FAULTS = [lost_answer, lost_request, refused, landed_and_refused]


@pytest.mark.parametrize(
    "faults", [[first, second] for first in FAULTS for second in FAULTS] + [[each] for each in FAULTS]
)
def test_whatever_the_catalog_answers_a_draft_is_sealed_once(tmp_path: Path, faults: list[Any]) -> None:
    catalog = FaultyCatalog(open_catalog(tmp_path))
    chain_at(tmp_path).append([draft(0)])
    catalog.faults = list(faults)
    chain = chain_over(catalog)
    assert [each.sequence for each in chain.append([draft(1), draft(2)])] == [2, 3]
    catalog.faults = list(faults)
    assert [each.sequence for each in chain.append([draft(2), draft(3)])] == [3, 4]
    assert ids(chain) == [f"draft-{number}" for number in range(4)]
    assert len(stored(chain)) == 4
    require_sound(chain)


def beaten(home: Path, name: str) -> Any:
    """A commit that another writer is just before."""

    def commit(inner: Commit) -> Any:
        chain_at(home).append([draft(name)])
        return inner()

    return commit


def test_who_loses_a_race_goes_behind_the_winner_and_deletes_what_he_staged(tmp_path: Path) -> None:
    catalog = FaultyCatalog(open_catalog(tmp_path))
    chain_at(tmp_path).append([draft(0)])
    catalog.faults = [beaten(tmp_path, "x"), beaten(tmp_path, "y")]
    chain = chain_over(catalog)
    assert [each.sequence for each in chain.append([draft(1), draft(2)])] == [4, 5]
    assert ids(chain) == ["draft-0", "draft-x", "draft-y", "draft-1", "draft-2"]
    assert len(stored(chain)) == 5
    require_sound(chain)


def test_who_finds_his_drafts_sealed_by_another_takes_those(tmp_path: Path) -> None:
    catalog = FaultyCatalog(open_catalog(tmp_path))
    chain_at(tmp_path).append([draft(0)])
    catalog.faults = [beaten(tmp_path, "1")]
    chain = chain_over(catalog)
    assert [each.sequence for each in chain.append([draft(1)])] == [2]
    catalog.faults = [beaten(tmp_path, "2")]
    assert [each.sequence for each in chain.append([draft(2), draft(3)])] == [3, 4]
    assert len(stored(chain)) == 4
    require_sound(chain)


def test_a_request_that_lands_late_is_not_sealed_again(tmp_path: Path) -> None:
    """It gets no answer, and lands while the next attempt is on its way."""
    catalog = FaultyCatalog(open_catalog(tmp_path))
    chain_at(tmp_path).append([draft(0)])
    waiting: list[Commit] = []

    def later(commit: Commit) -> Any:
        waiting.append(commit)
        raise OperationalError("commit", {}, Exception("timed out"))

    def after_the_first(commit: Commit) -> Any:
        waiting.pop()()
        return commit()

    catalog.faults = [later, after_the_first]
    chain = chain_over(catalog)
    assert [each.sequence for each in chain.append([draft(1)])] == [2]
    assert (ids(chain), len(stored(chain))) == (["draft-0", "draft-1"], 2)
    require_sound(chain)


def test_nobody_answering_is_told_and_the_same_call_finds_out(tmp_path: Path) -> None:
    catalog = FaultyCatalog(open_catalog(tmp_path))
    chain = chain_over(catalog)
    chain_at(tmp_path).append([draft(0)])
    catalog.faults = [lost_request] * 100
    with pytest.raises(
        CommitStateUnknown, match=r"table keptlog_receipts.chain: .*; the same again finds it if it did$"
    ):
        chain.append([draft(1)])
    catalog.faults = [lost_answer] * 1
    assert [each.sequence for each in chain.append([draft(1)])] == [2]
    assert ids(chain) == ["draft-0", "draft-1"]
    require_sound(chain)


def test_who_only_loses_races_leaves_nothing_behind(tmp_path: Path) -> None:
    catalog = FaultyCatalog(open_catalog(tmp_path))
    chain = chain_over(catalog)
    chain_at(tmp_path).append([draft(0)])
    catalog.faults = [refused] * 1000
    with pytest.raises(KeptlogError, match=r"table keptlog_receipts\.chain: others committed first 200 times"):
        chain.append([draft(1)])
    assert len(stored(chain)) == 1
    require_sound(chain)


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    write = TableFiles.write_bytes

    def full(self: TableFiles, path: str, content: bytes) -> None:
        if "draft-2" in path:
            raise OSError(28, "No space left on device", path)
        write(self, path, content)

    monkeypatch.setattr(TableFiles, "write_bytes", full)
    with pytest.raises(StorageUnavailable, match="is full"):
        chain.append([draft(1), draft(2)])
    monkeypatch.undo()
    assert len(stored(chain)) == 1
    assert [each.sequence for each in chain.append([draft(1), draft(2)])] == [2, 3]


def test_the_table_keeps_its_metadata_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_chain, "KEPT_SNAPSHOTS", 25)
    chain = chain_at(tmp_path)
    for number in range(40):
        chain.append([draft(number)])
    table = chain.table()
    assert table
    assert len(table.metadata.snapshots) == 26
    metadata = Path(table.location().removeprefix("file://")) / "metadata"
    names = sorted(path.name for path in metadata.iterdir())
    assert len([name for name in names if name.endswith(".avro")]) <= 27
    assert len([name for name in names if name.endswith(".metadata.json")]) <= 22
    assert len(names) == len([name for name in names if name.endswith((".avro", ".metadata.json"))])
    heads = list((metadata.parent / "receipts").rglob("heads/*"))
    assert 24 <= len(heads) <= 27
    assert KEPT_SNAPSHOTS > 24
    require_sound(chain)


def test_what_refused_commits_and_kills_left_of_metadata_is_deleted_once_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipt_chain, "KEPT_SNAPSHOTS", 5)
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    table = chain.table()
    assert table
    metadata = Path(table.location().removeprefix("file://")) / "metadata"
    left = [metadata / "snap-1-0-x.avro", metadata / "00001-x.metadata.json"]
    (heads,) = (metadata.parent / "receipts").glob("*/heads")
    foreign = [metadata / "notes.txt", heads / ".nfs0000000000000001"]
    for path in [*left, *foreign]:
        path.write_text("x")
    chain.append([draft(1)])
    assert [path for path in left if path.exists()] == left
    for number in range(2, 30):
        chain.append([draft(number)])
    assert [path for path in left if path.exists()] == []
    assert [path for path in foreign if path.exists()] == foreign
    require_sound(chain)


def test_what_keeps_old_files_from_being_deleted_fails_nothing_that_was_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strange(*_: object) -> int:
        raise ValueError("strange")

    monkeypatch.setattr(receipt_chain, "_oldest_ms", strange)
    chain = chain_at(tmp_path)
    assert [each.id for each in chain.append([draft(0)])] == ["draft-0"]
    require_sound(chain)


def test_a_snapshot_that_somebody_gave_a_name_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt_chain, "KEPT_SNAPSHOTS", 2)
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    table = chain.table()
    assert table
    tagged = table.metadata.current_snapshot_id
    assert tagged
    table.manage_snapshots().create_tag(tagged, "audit").commit()
    for number in range(1, 30):
        chain.append([draft(number)])
    table = chain.table()
    assert table
    snapshot = table.snapshot_by_id(tagged)
    assert snapshot
    kept = Path(snapshot.manifest_list.removeprefix("file://"))
    assert kept.exists()
    assert len(list(kept.parent.glob("snap-*"))) <= 24


def test_what_another_program_does_to_its_snapshots_is_no_matter(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    table = chain.table()
    assert table
    first = table.metadata.current_snapshot_id
    assert first
    chain.append([draft(1)])
    table = chain.table()
    assert table
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert [each.sequence for each in chain.append([draft(2), draft(1)])] == [3, 2]
    require_sound(chain)


@pytest.mark.parametrize("moved", [shutil.copytree, shutil.move])
def test_a_copied_or_moved_home_refuses_to_seal_with_the_text_of_all_changes(tmp_path: Path, moved: Any) -> None:
    home = tmp_path / "home"
    chain_at(home).append([draft(0)])
    moved(str(home), str(tmp_path / "other"))
    chain = chain_at(tmp_path / "other")
    with pytest.raises(InvalidConfig, match=r"home .*/other (is a copy of the home at|was moved from) .*/home"):
        chain.append([draft(1)])
    (tmp_path / "other" / "receipts.key").unlink(missing_ok=True)
    if moved is shutil.copytree:
        assert ids(chain) == ["draft-0"]
        require_sound(chain_at(home))


def test_a_chain_of_a_newer_keptlog_is_refused(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    table = chain.table()
    assert table
    table.transaction().set_properties({"keptlog.format-version": "2.0"}).commit_transaction()
    with pytest.raises(UnsupportedFormat, match="upgrade keptlog"):
        chain.append([draft(1)])


def test_a_receipt_that_is_damaged_costs_only_itself(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append(draft(number) for number in range(4))
    damaged, gone = stored(chain)[1:3]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    gone.unlink()
    each_receipt = chain.receipts()
    assert [next(each_receipt).sequence, next(each_receipt).sequence] == [1, 4]
    said = r"receipt 2, .* is damaged.*no file of receipt 3 is in .*: keptlog receipt verify"
    with pytest.raises(KeptlogError, match=said):
        next(each_receipt)
    assert {finding.flaw for finding in check(chain).findings} == {Flaw.DAMAGED, Flaw.MISSING}
    assert [each.sequence for each in chain.append([draft(9)])] == [5]


def test_what_was_written_over_a_receipt_in_storage_is_found(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append(draft(number) for number in range(3))
    newest = stored(chain)[-1]
    content = json.loads(newest.read_bytes())
    content["at_ms"] += 1
    newest.write_text(json.dumps(content))
    (finding,) = [each for each in check(chain).findings if each.flaw is Flaw.DAMAGED]
    assert newest.name in finding.text


def test_two_catalogs_with_one_warehouse_leave_each_other_their_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both chains lie in one folder. The first receipt of the second catalog deleted the table of the first."""
    monkeypatch.setattr(receipt_chain, "KEPT_SNAPSHOTS", 2)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    chains = []
    for name in ("staging", "production"):
        monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / name}.db")
        chains.append(chain_over(open_catalog(tmp_path)))
    chains[0].append([draft(0)])
    for number in range(1, 30):
        chains[1].append([draft(number)])
    chains[0].append([draft(30)])
    assert [ids(each) for each in chains] == [["draft-0", "draft-30"], [f"draft-{number}" for number in range(1, 30)]]
    for each in chains:
        # Whose the others are nobody can tell: they are named, and none of the own ones is missing.
        assert {finding.flaw for finding in check(each).findings} == {Flaw.PUT_BACK}
