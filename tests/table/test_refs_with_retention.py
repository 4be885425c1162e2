"""A tag or a branch that was made with a retention of its own ends with it: a purge drops it, and what only it kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import CommitTableResponse
from pyiceberg.table.update.snapshot import ManageSnapshots

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.home import open_home
from keptlog.log.holder import HolderKind, Terms
from keptlog.log.words.iso_time import iso_time
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.purge_preview import preview_purge
from keptlog.table.purging.purge_receipt import PurgeReceipt
from keptlog.table.reading.cache import held_as_lists, held_of_lists
from keptlog.table.removal.held import held_in
from keptlog.table.removal.ref_retention import EndedRef
from keptlog.table.removal.superseded import SupersededFiles
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from tests.table.foreign import table_of
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values
from tests.table.rest_server import catalog_of
from tests.table.stores import TOPIC, FaultyCatalog, append_each, create, store_at, store_over, values

RETENTION_MS = 7 * DAY_MS


@pytest.fixture(params=["embedded", "rest"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """The catalog that a purge goes through."""
    with catalog_of(request.param, tmp_path) as catalog:
        yield catalog


def oldest(home: Path) -> int:
    return min(table_of(home).metadata.snapshots, key=lambda each: each.sequence_number or 0).snapshot_id


def retain(home: Path, kind: str = "tag") -> None:
    """What another engine's ``CREATE TAG audit RETAIN 7 DAYS`` does, of the oldest snapshot."""
    changes: ManageSnapshots = table_of(home).manage_snapshots()
    make = changes.create_tag if kind == "tag" else changes.create_branch
    make(oldest(home), "audit", max_ref_age_ms=RETENTION_MS).commit()


def refs(home: Path) -> set[str]:
    return set(table_of(home).metadata.refs) - {"main"}


def purged(store: LogStore, after_ms: int) -> PurgeReceipt:
    return store.purge(TOPIC, clock_ms() + after_ms)


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_it_keeps_its_snapshot_while_that_lasts_and_then_goes_with_it(
    tmp_path: Path, catalog: Catalog, kind: str
) -> None:
    store = cleaned(tmp_path)
    retain(tmp_path, kind=kind)
    snapshot_id = oldest(tmp_path)
    through = store_over(catalog)
    purged(through, RETENTION_MS - DAY_MS)
    assert values(store, snapshot_id=snapshot_id) == [(0, 0, b"1")]
    receipt = purged(through, RETENTION_MS + DAY_MS)
    assert refs(tmp_path) == set()
    assert receipt.expired_snapshots == (snapshot_id,)
    assert [(each.kind, each.name) for each in receipt.dropped_refs] == [(kind, "audit")]
    assert paths_of_values(store) == live_paths(store)


def test_what_also_another_tag_shows_stays_for_that(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    retain(tmp_path)
    table_of(tmp_path).manage_snapshots().create_tag(oldest(tmp_path), "for ever").commit()
    purged(store, RETENTION_MS + DAY_MS)
    assert refs(tmp_path) == {"for ever"}
    assert values(store, snapshot_id=oldest(tmp_path)) == [(0, 0, b"1")]


def test_one_that_shows_what_main_shows_goes_and_takes_nothing_along(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    retain(tmp_path)
    purged(store, RETENTION_MS + DAY_MS)
    assert refs(tmp_path) == set()
    assert values(store) == [(0, 0, b"1")]


def test_main_never_ends(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    current = table_of(tmp_path).metadata.current_snapshot_id
    assert current is not None
    table_of(tmp_path).manage_snapshots().create_branch(current, "main", max_ref_age_ms=1).commit()
    purged(store, RETENTION_MS)
    assert table_of(tmp_path).metadata.current_snapshot_id == current
    assert len(values(store)) > 0


def test_a_topic_that_was_quiet_is_looked_at_again_once_it_is_over(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    [current] = table_of(tmp_path).metadata.snapshots
    retain(tmp_path)
    ends_ms = current.timestamp_ms + RETENTION_MS
    quiet = store.purge(TOPIC, ends_ms - MINUTE_MS).quiet
    assert quiet is not None
    assert quiet.until_ms == ends_ms + 1
    store.purge(TOPIC, ends_ms)
    assert refs(tmp_path) == {"audit"}
    store.purge(TOPIC, ends_ms + 1)
    assert refs(tmp_path) == set()


def test_a_preview_counts_what_goes_with_it(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    retain(tmp_path)
    purged(store, DAY_MS)
    before, after = (preview_purge(store, TOPIC, clock_ms() + ms, DAY_MS) for ms in (2 * DAY_MS, RETENTION_MS + DAY_MS))
    assert (before.snapshots, before.segments) == (0, 0)
    assert (after.snapshots, after.segments) == (1, 1)
    assert f"{after.refs[0]} would be dropped; 1 snapshot would expire, " in str(after)


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_preview_and_receipt_name_it_also_where_nothing_goes_with_it_and_the_log_not_once_more(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "keptlog")
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    retain(tmp_path, kind=kind)
    [current] = table_of(tmp_path).metadata.snapshots
    ends_ms = current.timestamp_ms + RETENTION_MS
    going = EndedRef(kind, "audit", ends_ms)
    told = f"{kind} audit, whose retention ended {iso_time(ends_ms)}"
    early, due = (preview_purge(store, TOPIC, ends_ms + ms, DAY_MS) for ms in (0, 1))
    assert (early.refs, early.deletes_anything) == ((), False)
    assert (due.refs, due.deletes_anything) == ((going,), True)
    assert str(due) == f"{TOPIC}: {told} would be dropped"
    assert store.purge(TOPIC, ends_ms + 1).dropped_refs == (going,)
    assert "dropped" not in caplog.text  # whoever has the receipt tells it, as a run of Dagster does
    assert store.purge(TOPIC, ends_ms + 2).dropped_refs == ()


def test_one_that_was_dropped_by_a_commit_without_an_answer_is_told(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    retain(tmp_path)

    def without_an_answer(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        commit()
        raise CommitStateUnknownException("no answer")

    between = FaultyCatalog(open_catalog(tmp_path))
    between.faults = [without_an_answer]
    receipt = store_over(between).purge(TOPIC, clock_ms() + RETENTION_MS + DAY_MS)
    assert [each.name for each in receipt.dropped_refs] == ["audit"]
    assert refs(tmp_path) == set()
    assert len(values(store)) > 0


def test_one_that_is_given_a_longer_retention_meanwhile_stays(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    retain(tmp_path)
    snapshot_id = oldest(tmp_path)

    def behind_a_change(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        changes = table_of(tmp_path).manage_snapshots()
        changes.create_tag(snapshot_id, "audit", max_ref_age_ms=2 * RETENTION_MS).commit()
        return commit()

    between = FaultyCatalog(open_catalog(tmp_path))
    between.faults = [behind_a_change]
    receipt = store_over(between).purge(TOPIC, clock_ms() + RETENTION_MS + MINUTE_MS)
    assert receipt.dropped_refs == ()
    assert refs(tmp_path) == {"audit"}
    assert values(store, snapshot_id=snapshot_id) == [(0, 0, b"1")]


def test_one_that_is_moved_meanwhile_stays_whoever_compares(tmp_path: Path, catalog: Catalog) -> None:
    store = cleaned(tmp_path)
    retain(tmp_path)
    current = table_of(tmp_path).metadata.current_snapshot_id
    assert current is not None

    def behind_a_move(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        table_of(tmp_path).manage_snapshots().create_tag(current, "audit").commit()
        return commit()

    between = FaultyCatalog(catalog)
    between.faults = [behind_a_move]
    purged(store_over(between), RETENTION_MS + DAY_MS)
    assert table_of(tmp_path).metadata.refs["audit"].snapshot_id == current
    assert len(values(store)) > 0


def test_a_clock_that_jumped_ends_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned(tmp_path)
    retain(tmp_path)
    store = open_home(tmp_path).store
    jumped_ms = clock_ms() + 3_650 * DAY_MS
    monkeypatch.setattr(store.clock_guard, "clock_ms", lambda: jumped_ms)
    with pytest.raises(InvalidConfig, match="the clock shows"):
        store.purge(TOPIC, jumped_ms)
    assert refs(tmp_path) == {"audit"}


def test_all_who_look_are_told_until_when_it_keeps_what_it_shows(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    retain(tmp_path)
    table = store.load_table(TOPIC)
    ends_ms = table.metadata.snapshots[0].timestamp_ms + RETENTION_MS
    full = held_in(lambda: table, store.files, Terms(MINUTE_MS), clock_ms()).held
    cheap = SupersededFiles().of(table)
    bare = UnopenedStore(tmp_path, {}, lambda: store_at(tmp_path)).observe(TOPIC).holdings.held
    for held in (full, cheap, bare, held_of_lists(held_as_lists(cheap))):
        assert {(each.kind, each.kept_until_ms) for each in held if each.kind is not HolderKind.METADATA} == {
            (HolderKind.TAG, ends_ms),
            (HolderKind.RETIRED, None),
        }


def test_a_purge_that_fails_once_it_has_dropped_one_names_it_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", "keptlog")
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    retain(tmp_path)
    [current] = table_of(tmp_path).metadata.snapshots

    def refused(*_: object) -> NoReturn:
        raise StorageUnavailable("403, it says no")

    monkeypatch.setattr("keptlog.table.purging.purge.live_references", refused)
    with pytest.raises(StorageUnavailable, match="it says no"):
        store.purge(TOPIC, current.timestamp_ms + RETENTION_MS + 1)
    assert f"topic {TOPIC}: dropped tag audit, whose retention ended " in caplog.text
