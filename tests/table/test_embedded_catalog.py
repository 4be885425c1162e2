"""The embedded catalog: its commits are durable, and any number of processes may make one home at once."""

from __future__ import annotations

import multiprocessing
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from pyiceberg.exceptions import NamespaceAlreadyExistsError

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.table.catalogs import home_folder
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from tests.table.stores import COMPACTED, NOW_MS, append_each, create, new_id, new_records, store_at

PROCESSES = 6
EXTRA = 3


def test_every_connection_waits_until_a_commit_and_the_end_of_its_journal_are_on_the_disk(tmp_path: Path) -> None:
    append_each(create(tmp_path), [("k", "v")])
    catalog = EmbeddedCatalog(tmp_path)
    with ExitStack() as stack:
        connections = [stack.enter_context(closing(catalog.engine.raw_connection())) for _ in range(7)]
        asked = [connection.cursor().execute("pragma synchronous").fetchone()[0] for connection in connections]
        modes = [connection.cursor().execute("pragma journal_mode").fetchone()[0] for connection in connections]
    # With another mode of the journal, EXTRA would be no more than FULL.
    assert (asked, modes) == ([EXTRA] * 7, ["delete"] * 7)


def test_a_namespace_is_made_once(tmp_path: Path) -> None:
    catalog = EmbeddedCatalog(tmp_path)
    catalog.create_namespace("another", {"a": "1"})
    with pytest.raises(NamespaceAlreadyExistsError):
        EmbeddedCatalog(tmp_path).create_namespace("another", {"a": "2"})
    assert catalog.load_namespace_properties("another")["a"] == "1"


@pytest.mark.parametrize("left_behind", ["an empty file", "tables that nothing is in"])
def test_a_home_whose_making_was_killed_reads_as_empty_and_is_made_again(tmp_path: Path, left_behind: str) -> None:
    if left_behind == "an empty file":
        (tmp_path / "catalog.db").touch()
    else:
        create(tmp_path).delete_topic("shop.users-v2", NOW_MS)
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection:
            connection.execute("delete from iceberg_namespace_properties")
            connection.commit()
    assert store_at(tmp_path).topics() == []
    append_each(create(tmp_path), [("k", "v")])
    assert store_at(tmp_path).topics() == ["shop.users-v2"]


def _wait_for_all(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603  # how a pool's process gets what can't be sent to it
    _barrier = barrier


_barrier: Barrier


def _make_and_append(home: Path, number: int) -> str:
    """What one process does; the text of what went wrong."""
    _barrier.wait()
    try:
        store = store_at(home)
        own = f"own-{number}"
        store.topics()
        store.create_topic(own, 1, COMPACTED)
        try:
            store.create_topic("shared", 1, COMPACTED)
        except InvalidConfig as error:
            if "exists already" not in str(error):
                raise
        for topic in (own, "shared"):
            store.append(topic, new_records(("k", str(number))), new_id(), NOW_MS)
    except (KeptlogError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_six_processes_make_one_fresh_home_and_none_of_them_fails(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    barrier = context.Barrier(PROCESSES)
    failed: list[str] = []
    with ProcessPoolExecutor(PROCESSES, context, _wait_for_all, (barrier,)) as pool:
        for number in range(6):
            home = tmp_path / f"deep/home-{number}"
            failed += filter(None, pool.map(_make_and_append, [home] * PROCESSES, range(PROCESSES)))
            store = store_at(home)
            assert failed == []
            assert store.topics() == [*(f"own-{each}" for each in range(PROCESSES)), "shared"]
            assert store.logs("shared")[0].log_end_offset == PROCESSES


def test_a_catalog_that_is_made_while_one_looks_for_it_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process makes it, and a topic, between the look at the file and the look for files of topics."""
    home, real = tmp_path / "home", home_folder.topics_with_files

    def seen_late(of: Path) -> list[str]:
        monkeypatch.setattr(home_folder, "topics_with_files", real)
        append_each(create(of), [("a", "1")])
        return real(of)

    home.mkdir()
    monkeypatch.setattr(home_folder, "topics_with_files", seen_late)
    home_folder.require_catalog_not_lost(home)
    (home / "catalog.db").unlink()
    with pytest.raises(StorageUnavailable, match="has lost its catalog"):
        home_folder.require_catalog_not_lost(home)
