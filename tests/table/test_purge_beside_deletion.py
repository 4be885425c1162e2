"""A purge whose topic is deleted under it leaves nothing in the folder: who has emptied it never comes again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import StalePlan, UnknownTopic
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.doctor.unowned import unowned_folders
from keptlog.table.io.files import TableFiles
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms
from tests.table.stores import COMPACTED, TOPIC, append_each, store_at

JOURNAL, RUNS, HISTORY = "/metadata/gc/", "/metadata/receipts/runs/", "/metadata/receipts/history/"


def before_it_writes(monkeypatch: pytest.MonkeyPatch, where: str, happens: Callable[[], object]) -> None:
    """Let something happen just before the first file is written whose path has this in it."""
    real = TableFiles.write_bytes
    waiting = [happens]

    def write_bytes(files: TableFiles, path: str, content: bytes) -> None:
        if where in path and waiting:
            waiting.pop()()
        real(files, path, content)

    monkeypatch.setattr(TableFiles, "write_bytes", write_bytes)


def left(home: Path) -> list[str]:
    """All files in the topic's folder."""
    folder = home / "warehouse" / "keptlog" / TOPIC
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def drafts_aside(paths: list[str]) -> list[str]:
    """Without a chain the deletion's own receipts stay as drafts."""
    return [path for path in paths if not path.startswith("metadata/receipts/deletion-")]


def purge(store: LogStore, later_ms: int = 60 * MINUTE_MS) -> None:
    store.purge(TOPIC, clock_ms() + later_ms)


@pytest.mark.parametrize("where", [JOURNAL, RUNS, HISTORY])
def test_what_it_wrote_before_it_found_no_topic_any_more_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    store = cleaned(tmp_path)
    before_it_writes(monkeypatch, where, lambda: store_at(tmp_path).delete_topic(TOPIC, clock_ms()))
    with pytest.raises(UnknownTopic):
        purge(store)
    assert drafts_aside(left(tmp_path)) == []
    assert unowned_folders(store) == []


def test_so_is_the_journal_of_what_it_was_about_to_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = cleaned(tmp_path)
    purge(store)
    store.files.write_bytes(f"{store.data_location(TOPIC)}/orphan.parquet", b"x")
    before_it_writes(monkeypatch, JOURNAL, lambda: store_at(tmp_path).delete_topic(TOPIC, clock_ms()))
    with pytest.raises(UnknownTopic):
        purge(store, 2 * DAY_MS)
    # Also the draft of the purge before, which no chain has taken, is the deletion's to keep.
    assert [path for path in left(tmp_path) if not path.startswith("metadata/receipts/")] == []
    assert unowned_folders(store) == []


def test_nothing_of_it_is_left_among_the_files_of_a_topic_that_was_made_anew_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = cleaned(tmp_path), store_at(tmp_path)
    anew: list[str] = []

    def make_anew() -> None:
        other.delete_topic(TOPIC, clock_ms())
        other.create_topic(TOPIC, 1, COMPACTED)
        append_each(other, [("b", "1")])
        anew.extend(left(tmp_path))

    before_it_writes(monkeypatch, JOURNAL, make_anew)
    with pytest.raises(StalePlan, match="was deleted and created again meanwhile"):
        purge(store)
    assert left(tmp_path) == anew


def test_a_purge_that_looks_at_a_topic_that_was_made_anew_says_so_and_calls_nothing_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = cleaned(tmp_path), store_at(tmp_path)
    real, waiting = TableFiles.list, [True]

    def then_anew(files: TableFiles, folder: str) -> object:
        listed = list(real(files, folder))
        if waiting and waiting.pop():
            other.delete_topic(TOPIC, clock_ms())
            other.create_topic(TOPIC, 1, COMPACTED)
            append_each(other, [("b", "1")])
        return iter(listed)

    monkeypatch.setattr(TableFiles, "list", then_anew)
    with pytest.raises(StalePlan, match="was deleted and created again meanwhile"):
        purge(store)


@pytest.mark.parametrize("namespace", ["theirs", DELETING])
def test_it_stays_where_the_topic_may_come_back_or_is_still_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str
) -> None:
    store, catalog = cleaned(tmp_path), open_catalog(tmp_path)
    catalog.create_namespace(namespace)
    before_it_writes(monkeypatch, JOURNAL, lambda: catalog.rename_table((NAMESPACE, TOPIC), (namespace, TOPIC)))
    with pytest.raises(UnknownTopic):
        purge(store)
    assert [path for path in left(tmp_path) if path.startswith("metadata/gc/")]
