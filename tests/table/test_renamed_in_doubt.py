"""A change lands, its answer is lost, and another program takes the name away before it is looked: no file goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import CommitTableResponse

from keptlog.errors import CommitStateUnknown, StalePlan, UnknownTopic
from keptlog.log.record import Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureRequest
from keptlog.storage.files import StoredFile
from keptlog.storage.key_hash import KeyHasher
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.chain.sealed_receipts import CHAIN
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.staged import discarded_if_refused
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import all_references
from keptlog.table.namespaces import DELETING, NAMESPACE, RECEIPTS
from keptlog.table.removal.removal import Removal
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.table.receipt_chains import chain_over, draft, require_sound, stored
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    append_each,
    create,
    files_below,
    new_id,
    new_records,
    rewritten,
    staged,
    step_for,
    store_over,
)

TakeAway = Callable[[Catalog, str, str], str]
"""Takes a table's name away; gives where its metadata file is."""
OTHER = "elsewhere"
SOURCED = "sourced"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    create(tmp_path)
    return open_catalog(tmp_path)


@pytest.fixture
def store(catalog: Catalog) -> LogStore:
    return store_over(catalog)


def renamed(catalog: Catalog, namespace: str, name: str) -> str:
    metadata = catalog.load_table((namespace, name)).metadata_location
    catalog.rename_table((namespace, name), (namespace, OTHER))
    return metadata


def renamed_and_made_anew(catalog: Catalog, namespace: str, name: str) -> str:
    metadata = renamed(catalog, namespace, name)
    store_over(catalog).create_topic(name, 1, {})
    return metadata


def dropped(catalog: Catalog, namespace: str, name: str) -> str:
    metadata = catalog.load_table((namespace, name)).metadata_location
    catalog.drop_table((namespace, name))
    return metadata


def append(store: LogStore) -> None:
    store.append(TOPIC, new_records(("z", "9")), "run", NOW_MS)


def swap(store: LogStore) -> None:
    store.swap(TOPIC, [rewritten(store, step_for(store.logs(TOPIC)[0]))], "run")


def ingest(store: LogStore) -> None:
    """As every ingest lands what it has staged."""
    segments = staged(store, SOURCED, 0, [Record(7, b"a", b"1", NOW_MS)])
    arrival = Arrival(OffsetRange(0, None, 5, 9), tuple(segments))
    with discarded_if_refused(store.files, lambda: [segment.path for segment in segments]):
        store.ingest(SOURCED, [arrival], SourceIdentity("users"), 1, "run")


def erase(store: LogStore, request_id: str = "r1") -> None:
    eraser = Eraser(store, in_process_engine(store.files), lambda **_: KeyHasher(bytes(32)), new_id)
    proposal = eraser.propose(ErasureRequest(request_id, (TOPIC,), (b"a",)), now_ms=NOW_MS)
    for error in eraser.request(proposal, now_ms=NOW_MS).failed.values():
        raise error


CHANGES: dict[Callable[[LogStore], None], str] = {append: TOPIC, swap: TOPIC, ingest: SOURCED, erase: TOPIC}


def lost_answer(monkeypatch: pytest.MonkeyPatch, catalog: Catalog, meanwhile: Callable[[], object]) -> None:
    """The next commit lands, and its answer is lost; that is done before anybody asks again."""
    really = catalog.commit_table

    def landed(*args: Any) -> CommitTableResponse:
        monkeypatch.setattr(catalog, "commit_table", really)
        really(*args)
        meanwhile()
        raise OSError("the line was cut")

    monkeypatch.setattr(catalog, "commit_table", landed)


@pytest.mark.parametrize("take_away", [renamed, renamed_and_made_anew, dropped])
@pytest.mark.parametrize("change", CHANGES)
def test_a_topic_goes_on_with_what_has_landed(
    store: LogStore,
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[LogStore], None],
    take_away: TakeAway,
) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    store.create_topic(SOURCED, 1, {})
    taken: list[str] = []
    lost_answer(monkeypatch, catalog, lambda: taken.append(take_away(catalog, NAMESPACE, CHANGES[change])))
    with pytest.raises(
        CommitStateUnknown, match="its table was deleted, or has another name: if so, name it back first"
    ):
        change(store)
    if take_away is dropped:
        catalog.register_table((NAMESPACE, OTHER), taken[0])
    assert not _gone(catalog, NAMESPACE)


def test_so_does_the_chain_of_receipts(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_over(catalog)
    chain.append([draft("1")])
    lost_answer(monkeypatch, catalog, lambda: renamed(catalog, RECEIPTS, CHAIN))
    with pytest.raises(CommitStateUnknown, match="its table was deleted, or has another name"):
        chain.append([draft("2")])
    assert not _gone(catalog, RECEIPTS)
    catalog.rename_table((RECEIPTS, OTHER), (RECEIPTS, CHAIN))
    assert len(stored(chain)) == 2
    require_sound(chain)


def test_what_was_sent_to_a_topic_that_keptlog_has_deleted_meanwhile_is_no_doubt(
    store: LogStore, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(store, [("a", "1")])
    lost_answer(monkeypatch, catalog, lambda: store_over(catalog).delete_topic(TOPIC, NOW_MS))
    with pytest.raises(UnknownTopic):
        append(store)
    assert files_below(tmp_path) == set()


def test_a_deletion_that_is_killed_before_its_last_file_may_be_one_and_the_next_run_is_sure(
    store: LogStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(store, [("a", "1")])
    really = Removal.delete_file

    def killed(removal: Removal, path: str) -> bool:
        if path.endswith(".metadata.json") and not catalog.list_tables((DELETING,)):
            raise KeyboardInterrupt
        return really(removal, path)

    def delete() -> None:
        monkeypatch.setattr(Removal, "delete_file", killed)
        with pytest.raises(KeyboardInterrupt):
            store_over(catalog).delete_topic(TOPIC, NOW_MS)

    lost_answer(monkeypatch, catalog, delete)
    with pytest.raises(CommitStateUnknown, match="was deleted, or has another name"):
        append(store)
    with pytest.raises(UnknownTopic):
        append(store)


def test_a_storage_that_does_not_answer_once_is_asked_again_whether_the_table_is_there(
    store: LogStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(store, [("a", "1")])
    really = TableFiles.list

    def silent(files: TableFiles, folder: str) -> Iterator[StoredFile]:
        monkeypatch.setattr(TableFiles, "list", really)
        raise OSError("no route to host")

    def delete() -> None:
        store_over(catalog).delete_topic(TOPIC, NOW_MS)
        monkeypatch.setattr(TableFiles, "list", silent)

    lost_answer(monkeypatch, catalog, delete)
    with pytest.raises(UnknownTopic):
        append(store)


def test_a_clean_of_a_topic_that_is_gone_says_so_while_nobody_answers_whether_its_table_is_elsewhere(
    store: LogStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    catalog.drop_table((NAMESPACE, TOPIC))

    def silent(files: TableFiles, folder: str) -> Iterator[StoredFile]:
        raise OSError("no route to host")

    monkeypatch.setattr(TableFiles, "list", silent)
    with pytest.raises(StalePlan, match="was deleted while it was cleaned"):
        store.swap(TOPIC, [outcome], "run")
    assert all(Path(segment.path.removeprefix("file://")).exists() for segment in outcome.added)


def _gone(catalog: Catalog, namespace: str) -> list[str]:
    """Files that the table refers to under its other name, and that are not there."""
    referenced = all_references(load_topic_table(catalog, OTHER, namespace)).keys()
    return [path for path in referenced if not Path(path).exists()]
