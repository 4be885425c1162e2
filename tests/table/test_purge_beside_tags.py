"""What is tagged while a purge goes on stays: the tag, its snapshot and its files; and no receipt says that it went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import CommitTableResponse

from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.purging import purge
from keptlog.table.removal.expiry import expiry_of
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.purges import MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values, proved, receipts
from tests.table.rest_server import catalog_of
from tests.table.stores import TOPIC, FaultyCatalog, append_each, new_id, store_over, values

LATER_MS = 60 * MINUTE_MS
"""Later than what is written while a purge goes on."""


@pytest.fixture(params=["embedded", "rest"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """The catalog that a purge goes through."""
    with catalog_of(request.param, tmp_path) as catalog:
        yield catalog


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """What others do is done here: a log of which three segments were replaced by one."""
    return cleaned(tmp_path)


def tag_oldest(home: Path, kind: str = "tag") -> int:
    """What another engine's CREATE TAG does; gives the snapshot, which shows the record a=1 alone."""
    table = table_of(home)
    oldest = min(table.metadata.snapshots, key=lambda each: each.sequence_number or 0)
    changes = table.manage_snapshots()
    (changes.create_tag if kind == "tag" else changes.create_branch)(oldest.snapshot_id, "audit").commit()
    return oldest.snapshot_id


def while_it_reads(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Between a purge's choice of snapshots and its commit it reads manifests and footers; there this happens, once."""
    todo = [happens]

    def read(*how: Any) -> Any:
        while todo:
            todo.pop()()
        return expiry_of(*how)

    monkeypatch.setattr(purge, "expiry_of", read)


def require_kept(store: LogStore, home: Path, snapshot_id: int) -> None:
    table = table_of(home)
    assert table.metadata.refs["audit"].snapshot_id == snapshot_id
    assert values(store, snapshot_id=snapshot_id) == [(0, 0, b"1")]
    assert len(paths_of_values(store) - live_paths(store)) == 1


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_tag_made_while_a_purge_reads_stays_with_its_files(
    store: LogStore, tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    tagged: list[int] = []
    while_it_reads(monkeypatch, lambda: tagged.append(tag_oldest(tmp_path, kind)))
    receipt = store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert len(receipt.deleted_files) == 2
    require_kept(store, tmp_path, *tagged)


def test_a_tag_made_after_the_last_look_is_seen_by_the_commit_itself(store: LogStore, tmp_path: Path) -> None:
    tagged: list[int] = []

    def behind_a_tag(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        tagged.append(tag_oldest(tmp_path))
        return commit()

    between = FaultyCatalog(open_catalog(tmp_path))
    between.faults = [behind_a_tag]
    receipt = store_over(between).purge(TOPIC, clock_ms() + LATER_MS)
    assert len(receipt.deleted_files) == 2
    require_kept(store, tmp_path, *tagged)


def require_true(store: LogStore, home: Path, told: Sequence[int]) -> None:
    """A snapshot that a receipt or the purge itself says went is there no more, and one went."""
    there = {each.snapshot_id for each in table_of(home).metadata.snapshots}
    assert there.isdisjoint(told)
    [proof] = receipts(home)
    assert there.isdisjoint(proof["expired_snapshots"])
    assert sorted(proof["expired_snapshots"]) == sorted(told) != []
    assert live_paths(store).isdisjoint(proved(home))


def test_a_receipt_does_not_name_the_snapshot_that_an_attempt_before_was_about_to_expire(
    store: LogStore, tmp_path: Path
) -> None:
    tagged: list[int] = []

    def behind_a_tag(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        tagged.append(tag_oldest(tmp_path))
        append_each(store, [("c", "5")])
        return commit()

    between = FaultyCatalog(open_catalog(tmp_path))
    between.faults = [behind_a_tag]
    receipt = store_over(between).purge(TOPIC, clock_ms() + LATER_MS)
    require_kept(store, tmp_path, *tagged)
    require_true(store, tmp_path, receipt.expired_snapshots)


def test_nor_does_one_that_is_left_by_the_journal_of_a_killed_purge(store: LogStore, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def killed(_: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        raise Killed

    between = FaultyCatalog(open_catalog(tmp_path))
    between.faults = [killed]
    # A file belongs to the last journal that names it: to this one.
    last = LogStore(between, {}, lambda _: None, lambda: f"z-{new_id()}")
    with pytest.raises(Killed):
        last.purge(TOPIC, clock_ms() + LATER_MS)
    tagged = tag_oldest(tmp_path)
    receipt = store.purge(TOPIC, clock_ms() + LATER_MS)
    require_kept(store, tmp_path, tagged)
    require_true(store, tmp_path, receipt.expired_snapshots)
