"""A clean that landed, and is committed again after another program has taken its topic's name away, loses no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import StalePlan
from keptlog.log.result import RewriteResult
from keptlog.table.store import LogStore
from tests.table.stores import NOW_MS, TOPIC, append_each, create, files_below, rewritten, step_for

OTHER = "renamed"


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    # A folder above that of the table may be called as the one of its data is.
    return create(tmp_path / "data" / "home")


@pytest.fixture
def landed(store: LogStore) -> RewriteResult:
    """A clean that has landed; Dagster has kept its outcome, and hands it on when the run is executed again."""
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    store.swap(TOPIC, [outcome], "run")
    return outcome


def _renamed(store: LogStore) -> None:
    store._catalog.rename_table(("keptlog", TOPIC), ("keptlog", OTHER))


def _begun_to_be_deleted(store: LogStore) -> None:
    store._catalog.create_namespace_if_not_exists("keptlog_deleting")
    store._catalog.rename_table(("keptlog", TOPIC), ("keptlog_deleting", TOPIC))


def _records(store: LogStore) -> list[bytes | None]:
    return [record.value for _, record in store.read(OTHER)]


def test_the_topic_was_renamed(store: LogStore, landed: RewriteResult) -> None:
    _renamed(store)
    with pytest.raises(StalePlan, match="was deleted while it was cleaned"):
        store.swap(TOPIC, [landed], "run")
    assert _records(store) == [b"2"]


def test_it_was_renamed_and_what_the_clean_replaced_is_purged(store: LogStore, landed: RewriteResult) -> None:
    append_each(store, [("a", "3")])
    store.purge(TOPIC, 2**45, 2**50)
    _renamed(store)
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [landed], "run")
    assert _records(store) == [b"2", b"3"]


def test_it_was_renamed_and_another_one_has_its_name(store: LogStore, landed: RewriteResult) -> None:
    _renamed(store)
    store.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    with pytest.raises(StalePlan, match="created again"):
        store.swap(TOPIC, [landed], "run")
    assert _records(store) == [b"2"]


def test_its_table_was_dropped_and_is_registered_again(store: LogStore, landed: RewriteResult) -> None:
    metadata = store.metadata_locations()[TOPIC]
    store._catalog.drop_table(("keptlog", TOPIC))
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [landed], "run")
    store._catalog.register_table(("keptlog", OTHER), metadata)
    assert _records(store) == [b"2"]


def test_of_a_topic_whose_deletion_has_begun_nothing_is_kept(store: LogStore, landed: RewriteResult) -> None:
    _begun_to_be_deleted(store)
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [landed], "run")
    assert not Path(landed.added[0].path.removeprefix("file://")).exists()


@pytest.mark.parametrize("is_made_anew", [False, True], ids=["deleted", "deleted and made anew"])
def test_of_a_topic_that_keptlog_has_deleted_nothing_is_left(
    store: LogStore, tmp_path: Path, *, is_made_anew: bool
) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    path = Path(outcome.added[0].path.removeprefix("file://"))
    content = path.read_bytes()
    store.delete_topic(TOPIC, NOW_MS)
    if is_made_anew:
        store.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)  # a task that was slower than the deletion
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [outcome], "run")
    assert files_below(tmp_path) == set()
