"""A commit that was about to land while its files were swept is refused, whichever moment it chose."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableResponse, Table

from keptlog.errors import CommitStateUnknown, StalePlan
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.commit import Committer, Prepare
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.state import CONDEMNED
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, clock_ms, live_paths, paths_of_values, stored_paths, unreferenced
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    clean,
    create,
    new_id,
    new_records,
    rewritten,
    step_for,
    store_at,
    store_over,
    values,
)

LATER_MS = 2 * DAY_MS


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    return store


def properties(home: Path) -> dict[str, str]:
    return open_catalog(home).load_table(("keptlog", TOPIC)).properties


def before_the_next_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something between the last look of a change and its commit, once."""
    really = FileChange.written
    done: list[bool] = []

    def written(change: FileChange, table: Table) -> Callable[[], object]:
        commit = really(change, table)

        def land() -> None:
            if not done:
                done.append(True)
                act()
            commit()

        return land

    monkeypatch.setattr(FileChange, "written", written)


def before_it_is_deleted(monkeypatch: pytest.MonkeyPatch, path: str, act: Callable[[], object]) -> None:
    """Do something when a purge is about to delete a file, once."""
    really = TableFiles.delete
    done: list[bool] = []

    def delete(files: TableFiles, deleted: str) -> None:
        if deleted == path and not done:
            done.append(True)
            act()
        really(files, deleted)

    monkeypatch.setattr(TableFiles, "delete", delete)


def test_an_append_that_is_swept_between_its_last_look_and_its_commit_does_not_land(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_the_next_commit(monkeypatch, lambda: store_at(tmp_path).purge(TOPIC, clock_ms() + LATER_MS))
    with pytest.raises(StalePlan, match="swept"):
        store.append(TOPIC, new_records(("a", "3")), new_id(), NOW_MS)
    assert values(store_at(tmp_path)) == [(0, 0, b"1"), (0, 1, b"2")]
    assert paths_of_values(store) == live_paths(store)


def test_a_clean_that_is_swept_between_its_last_look_and_its_commit_does_not_land(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    before_the_next_commit(monkeypatch, lambda: store_at(tmp_path).purge(TOPIC, clock_ms() + LATER_MS))
    with pytest.raises(StalePlan, match="swept"):
        store.swap(TOPIC, [outcome], new_id())
    assert len(values(store_at(tmp_path))) == 2


def test_a_run_that_looks_again_while_its_files_are_being_deleted_does_not_land(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    refused: list[str] = []

    def commit() -> None:
        with pytest.raises(StalePlan) as refusal:
            store_at(tmp_path).swap(TOPIC, [outcome], new_id())
        refused.append(str(refusal.value))

    before_it_is_deleted(monkeypatch, outcome.added[0].path, commit)
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert len(refused) == 1
    assert "swept" in refused[0]
    assert len(values(store_at(tmp_path))) == 2


def test_a_run_that_lands_before_the_fence_keeps_its_files(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    # The first commit of this purge that moves a snapshot is the fence.
    before_the_next_commit(monkeypatch, lambda: store_at(tmp_path).swap(TOPIC, [outcome], new_id()))
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert values(store_at(tmp_path)) == [(0, 1, b"2")]


def test_a_fence_is_made_only_where_a_commit_could_still_land(tmp_path: Path, store: LogStore) -> None:
    """What a lost race leaves of metadata was built on a snapshot that is no longer current."""
    metadata = Path(store.describe_topic(TOPIC).location.removeprefix("file://")) / "metadata"
    (metadata / "left-m0.avro").write_bytes(b"left")
    append_each(store, [("a", "3")])
    newest = store.describe_topic(TOPIC).snapshot_id
    assert len(store.purge(TOPIC, clock_ms() + LATER_MS).deleted_orphans) == 1
    assert store.describe_topic(TOPIC).snapshot_id == newest
    (metadata / "newer-m0.avro").write_bytes(b"may be that of a commit under way")
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert store.describe_topic(TOPIC).snapshot_id != newest
    assert unreferenced(tmp_path) == set()


def test_the_list_of_condemned_journals_is_emptied_by_a_later_purge(tmp_path: Path, store: LogStore) -> None:
    rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert len(json.loads(properties(tmp_path)[CONDEMNED])) == 1
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert CONDEMNED not in properties(tmp_path)


def test_a_topic_without_a_record_can_be_swept(tmp_path: Path) -> None:
    store = create(tmp_path)
    store.files.write_bytes(f"{store.data_location(TOPIC)}/partition=0/x.parquet", b"of an append that died")
    assert len(store.purge(TOPIC, clock_ms() + LATER_MS).deleted_orphans) == 1
    append_each(store, [("a", "1")])
    assert values(store) == [(0, 0, b"1")]


def test_an_older_keptlog_can_carry_out_the_journal_of_a_sweep(
    tmp_path: Path, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows snapshots, segments and metadata, and must find all three, with what is to be deleted."""
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    found: list[dict[str, object]] = []

    def look() -> None:
        journals = [json.loads(path.read_text()) for path in (tmp_path / "warehouse").rglob("gc/*.json")]
        found.extend(journal for journal in journals if journal["kind"] == "sweep")

    before_it_is_deleted(monkeypatch, outcome.added[0].path, look)
    store.purge(TOPIC, clock_ms() + LATER_MS)
    [journal] = found
    assert (journal["snapshots"], journal["segments"]) == ([], [])
    assert outcome.added[0].path in str(journal["metadata"])


def refused(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
    raise CommitFailedException("another commit came first")


def unanswered(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
    raise ConnectionError("no answer")


def answer_lost(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
    commit()
    raise ConnectionError("no answer")


@pytest.mark.parametrize("fault", [refused, unanswered, answer_lost])
def test_a_fence_that_gets_no_answer_is_made_once(
    tmp_path: Path, fault: Callable[[Callable[[], CommitTableResponse]], CommitTableResponse]
) -> None:
    store = create(tmp_path)
    store.files.write_bytes(f"{store.data_location(TOPIC)}/partition=0/x.parquet", b"of an append that died")
    catalog = FaultyCatalog(open_catalog(tmp_path))
    catalog.faults = [fault]
    assert len(store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS).deleted_orphans) == 1
    assert len(open_catalog(tmp_path).load_table(("keptlog", TOPIC)).metadata.snapshots) == 1
    assert paths_of_values(store) == set()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _after_the_journal() -> None:
    real = TableFiles.write_bytes

    def write_and_die(self: TableFiles, path: str, content: bytes) -> None:
        real(self, path, content)
        _die()

    TableFiles.write_bytes = write_and_die  # type: ignore[method-assign]


def _after_the_fence() -> None:
    real = FileChange.written

    def written_to_die(self: FileChange, table: Table) -> Callable[[], object]:
        commit = real(self, table)

        def land_and_die() -> None:
            commit()
            _die()

        return land_and_die

    FileChange.written = written_to_die  # type: ignore[method-assign]


def _after_the_answer() -> None:
    real = Committer.commit

    def commit_and_die(self: Committer, change: Change, prepare: Prepare) -> None:
        real(self, change, prepare)
        if change.commit_id:
            _die()

    Committer.commit = commit_and_die  # type: ignore[method-assign]


def _in_the_deletes() -> None:
    real = TableFiles.delete

    def delete_one(self: TableFiles, path: str) -> None:
        real(self, path)
        _die()

    TableFiles.delete = delete_one  # type: ignore[method-assign]


def _before_the_journal_goes() -> None:
    real = TableFiles.delete

    def delete_no_journal(self: TableFiles, path: str) -> None:
        if "/gc/" in path:
            _die()
        real(self, path)

    TableFiles.delete = delete_no_journal  # type: ignore[method-assign]


def _kill_at(home: Path, patch: Callable[[], None]) -> None:
    patch()
    store_at(home).purge(TOPIC, clock_ms() + LATER_MS)


@pytest.mark.parametrize(
    "moment", [_after_the_journal, _after_the_fence, _after_the_answer, _in_the_deletes, _before_the_journal_goes]
)
def test_a_sweep_that_was_killed_is_finished_by_the_next_purge(
    tmp_path: Path, store: LogStore, moment: Callable[[], None]
) -> None:
    clean(store)
    store.purge(TOPIC, clock_ms() + LATER_MS)  # so that nothing but the sweep is left to do
    live = live_paths(store)
    for name in ("x", "y"):
        store.files.write_bytes(f"{store.data_location(TOPIC)}/partition=0/{name}.parquet", b"staged")
    process = multiprocessing.get_context("spawn").Process(target=_kill_at, args=(tmp_path, moment))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    for _ in range(2):
        store_at(tmp_path).purge(TOPIC, clock_ms() + LATER_MS)
    assert paths_of_values(store) == live
    assert values(store_at(tmp_path)) == [(0, 1, b"2")]
    assert unreferenced(tmp_path) == set()
    assert not [path for path in stored_paths(tmp_path) if "/gc/" in path]
    append_each(store_at(tmp_path), [("a", "3")])


def test_a_purge_whose_commit_nobody_knows_of_says_to_purge_again(tmp_path: Path) -> None:
    """Without a run id, which a purge does not take."""

    def unknown(_: object) -> CommitTableResponse:
        raise CommitStateUnknownException("no answer")

    store = create(tmp_path)
    append_each(store, [("a", "1")])
    store.files.write_bytes(f"{store.data_location(TOPIC)}/partition=0/x.parquet", b"of an append that died")
    catalog = FaultyCatalog(open_catalog(tmp_path))
    catalog.faults = [unknown] * 1000
    with pytest.raises(CommitStateUnknown, match="purge again") as unsure:
        store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert "--run-id" not in str(unsure.value)
