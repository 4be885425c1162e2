"""What was staged for a change that did not land: deleted at once where that is sure, and only there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    RESTError,
    TooManyRequestsError,
)
from pyiceberg.table import CommitTableResponse

from keptlog.errors import CommitStateUnknown, InvalidConfig, KeptlogError, StalePlan, StorageUnavailable, UnknownTopic
from keptlog.log.record import NewRecord
from keptlog.log.result import RewriteResult
from keptlog.log.source import SourceIdentity
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    create,
    files_below,
    new_id,
    new_records,
    rewritten,
    step_for,
    store_at,
    store_over,
    values,
)

Commit = Callable[[], CommitTableResponse]


def refused(commit: Commit) -> CommitTableResponse:
    raise CommitFailedException("another process was faster")


def lost_request(commit: Commit) -> CommitTableResponse:
    raise CommitStateUnknownException("the line was cut before the commit")


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    create(tmp_path)
    return FaultyCatalog(open_catalog(tmp_path))


@pytest.fixture
def store(faulty: FaultyCatalog) -> LogStore:
    return store_over(faulty)


def test_an_append_that_lost_every_race_leaves_no_file(store: LogStore, faulty: FaultyCatalog, tmp_path: Path) -> None:
    faulty.faults = [refused] * 1000
    with pytest.raises(StalePlan):
        store.append(TOPIC, new_records(("a", "secret")), "run", NOW_MS)
    assert files_below(tmp_path) == set()


def _gets_a_source(store: LogStore) -> None:
    store.ingest(TOPIC, [], SourceIdentity("users"), 1, "run")


def _is_deleted(store: LogStore) -> None:
    store.delete_topic(TOPIC, NOW_MS)


@pytest.mark.parametrize(("meanwhile", "error"), [(_gets_a_source, InvalidConfig), (_is_deleted, UnknownTopic)])
def test_an_append_that_is_refused_leaves_no_file(
    store: LogStore, tmp_path: Path, meanwhile: Callable[[LogStore], None], error: type[KeptlogError]
) -> None:
    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "1"))
        meanwhile(store_at(tmp_path))

    with pytest.raises(error):
        store.append(TOPIC, overtaken(), "run", NOW_MS)
    assert files_below(tmp_path) == set()


def test_an_append_whose_catalog_is_away_before_anything_was_sent_leaves_no_file(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken() -> Iterator[NewRecord]:
        yield from new_records(("a", "1"))
        monkeypatch.setattr(faulty, "load_table", unreachable)

    def unreachable(identifier: object) -> object:
        raise ConnectionRefusedError("connection refused")

    with pytest.raises(StorageUnavailable):
        store.append(TOPIC, overtaken(), "run", NOW_MS)
    assert files_below(tmp_path) == set()


def test_an_append_that_may_have_landed_keeps_its_file(store: LogStore, faulty: FaultyCatalog, tmp_path: Path) -> None:
    faulty.faults = [lost_request] * 1000
    with pytest.raises(CommitStateUnknown, match=r"--run-id run-7$"):
        store.append(TOPIC, new_records(("a", "1")), "run-7", NOW_MS)
    assert len(files_below(tmp_path)) == 1


def test_an_append_that_may_have_landed_and_then_finds_no_catalog_keeps_its_file(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is believed only after a look at the table."""

    def refused_and_away(commit: Commit) -> CommitTableResponse:
        commit()
        monkeypatch.setattr(faulty, "load_table", unreachable)
        raise CommitFailedException("Requirement failed: branch main has changed")

    def unreachable(identifier: object) -> object:
        raise ConnectionRefusedError("connection refused")

    faulty.faults = [refused_and_away]
    with pytest.raises(CommitStateUnknown):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert values(store_at(tmp_path)) == [(0, 0, b"1")]


@pytest.mark.parametrize("error", [ForbiddenError, BadRequestError, TooManyRequestsError])
def test_an_append_that_a_proxy_says_no_to_after_it_has_passed_it_on_keeps_its_file(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[RESTError]
) -> None:
    """Where the look after it is refused too, nobody has said that it did not land."""

    def passed_on_and_refused(commit: Commit) -> CommitTableResponse:
        commit()
        monkeypatch.setattr(faulty, "load_table", refuse)
        return refuse()

    def refuse(*_: object) -> CommitTableResponse:
        raise error("told by the proxy")

    faulty.faults = [passed_on_and_refused]
    with pytest.raises(CommitStateUnknown, match=r"told by the proxy.*--run-id run-7$"):
        store.append(TOPIC, new_records(("a", "1")), "run-7", NOW_MS)
    assert values(store_at(tmp_path)) == [(0, 0, b"1")]
    assert store_at(tmp_path).append(TOPIC, new_records(("a", "1")), "run-7", NOW_MS).records == 1
    assert values(store_at(tmp_path)) == [(0, 0, b"1")]


def test_an_append_that_is_refused_and_looked_for_in_vain_leaves_no_file(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    def forbidden(commit: Commit) -> CommitTableResponse:
        raise ForbiddenError("no right to write")

    faulty.faults = [forbidden]
    with pytest.raises(StorageUnavailable, match="nothing landed"):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert files_below(tmp_path) == set()


def test_an_unanswered_append_is_no_longer_in_doubt_once_the_table_has_moved_on(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    """It was sent on a snapshot that is no longer the current one, so it can't land any more."""

    def lost_and_given_a_source(commit: Commit) -> CommitTableResponse:
        _gets_a_source(store_at(tmp_path))
        raise CommitStateUnknownException("the line was cut before the commit")

    faulty.faults = [lost_and_given_a_source]
    with pytest.raises(InvalidConfig):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert files_below(tmp_path) == set()


def _begin_to_delete(home: Path) -> None:
    catalog = open_catalog(home)
    catalog.create_namespace_if_not_exists((DELETING,))
    catalog.rename_table((NAMESPACE, TOPIC), (DELETING, TOPIC))


def _unanswered() -> None:
    raise CommitStateUnknownException("the line was cut")


def _said_to_be_refused() -> None:
    raise CommitFailedException("Requirement failed: branch main has changed")


@pytest.mark.parametrize("told", [_unanswered, _said_to_be_refused])
def test_an_append_that_landed_in_a_topic_that_is_being_deleted_since_is_told_in_its_receipt(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path, told: Callable[[], None]
) -> None:
    def landed_and_deleted(commit: Commit) -> CommitTableResponse:
        response = commit()
        _begin_to_delete(tmp_path)
        told()
        return response

    faulty.faults = [landed_and_deleted]
    assert store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS).records == 1
    [segment] = files_below(tmp_path)
    deleted = store_at(tmp_path).delete_topic(TOPIC, NOW_MS).deleted_files
    assert [(file.path, file.first_offset) for file in deleted if "/data/" in file.path] == [(f"file://{segment}", 0)]


@pytest.mark.parametrize("told", [_unanswered, _said_to_be_refused])
def test_an_append_that_came_too_late_for_a_topic_that_is_being_deleted_leaves_no_file(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path, told: Callable[[], None]
) -> None:
    def deleted_before(commit: Commit) -> CommitTableResponse:
        _begin_to_delete(tmp_path)
        told()
        raise AssertionError

    faulty.faults = [deleted_before]
    with pytest.raises(UnknownTopic):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert files_below(tmp_path) == set()


def _two_cleans(store: LogStore) -> tuple[RewriteResult, RewriteResult]:
    """Of one log, both with new watermarks."""
    append_each(store, [("a", "1")], [("a", "2")])
    step = step_for(store.logs(TOPIC)[0])
    outcomes = []
    for number in range(2):
        path = f"{store.data_location(TOPIC)}/watermarks/{number}.arrow"
        store.files.write_bytes(path, b"")
        outcomes.append(replace(rewritten(store, step), watermarks_path=path))
    return outcomes[0], outcomes[1]


def test_a_clean_that_lost_its_race_leaves_neither_segment_nor_watermarks(store: LogStore, tmp_path: Path) -> None:
    fast, slow = _two_cleans(store)
    store.swap(TOPIC, [fast], "fast")
    before = files_below(tmp_path)
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [slow], "slow")
    assert files_below(tmp_path) == before - {Path(slow.added[0].path.removeprefix("file://"))}
    assert [path.name for path in tmp_path.rglob("*.arrow")] == ["0.arrow"]
    assert values(store) == [(0, 1, b"2")]


def test_a_clean_that_landed_so_long_ago_that_nobody_remembers_loses_no_file_when_it_is_committed_again(
    store: LogStore, tmp_path: Path
) -> None:
    fast, _ = _two_cleans(store)
    store.swap(TOPIC, [fast], "run")
    append_each(store, [("b", "3")])
    store.purge(TOPIC, 2**45, 2**50)
    append_each(store, [("b", "4")])
    store.purge(TOPIC, 2**46, 2**50)
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [fast], "run")
    assert [value for _, _, value in values(store)] == [b"2", b"3", b"4"]
    assert (tmp_path / "warehouse").exists()


def _damage_what_is_remembered(home: Path) -> None:
    [path] = (home / "warehouse").rglob("receipts/runs/*.json")
    path.write_bytes(b"\0\0{")


def test_a_clean_that_lost_its_race_is_stale_also_where_nobody_can_read_what_has_landed_before(
    store: LogStore, tmp_path: Path
) -> None:
    fast, slow = _two_cleans(store)
    store.purge(TOPIC, 2**45, 2**50)
    _damage_what_is_remembered(tmp_path)
    store.swap(TOPIC, [fast], "fast")
    with pytest.raises(StalePlan, match="changed since it was planned"):
        store.swap(TOPIC, [slow], "slow")
    assert not Path(slow.added[0].path.removeprefix("file://")).exists()
    assert [path.name for path in tmp_path.rglob("*.arrow")] == ["0.arrow"]


def test_a_clean_that_landed_loses_no_file_where_the_file_that_remembers_it_is_damaged(
    store: LogStore, tmp_path: Path
) -> None:
    fast, _ = _two_cleans(store)
    store.swap(TOPIC, [fast], "run")
    append_each(store, [("b", "3")])
    store.purge(TOPIC, 2**45, 2**50)
    _damage_what_is_remembered(tmp_path)
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [fast], "run")
    assert [value for _, _, value in values(store)] == [b"2", b"3"]


def test_a_clean_that_could_still_land_keeps_its_files(store: LogStore, tmp_path: Path) -> None:
    """Another process may hold the same outcomes: Dagster hands them on."""
    fast, _ = _two_cleans(store)
    store.alter_topic(TOPIC, {"cleanup.policy": "delete"})
    with pytest.raises(StalePlan, match="no longer compacted"):
        store.swap(TOPIC, [fast], "run")
    store.alter_topic(TOPIC, {"cleanup.policy": "compact"})
    store.swap(TOPIC, [fast], "run")
    assert values(store) == [(0, 1, b"2")]


def test_a_clean_of_a_topic_that_was_deleted_leaves_no_file(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    step = step_for(store.logs(TOPIC)[0])
    outcome = rewritten(store, step)
    path = Path(outcome.added[0].path.removeprefix("file://"))
    content = path.read_bytes()
    store.delete_topic(TOPIC, NOW_MS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)  # a task that was slower than the deletion
    with pytest.raises(StalePlan):
        store.swap(TOPIC, [outcome], new_id())
    assert not path.exists()
