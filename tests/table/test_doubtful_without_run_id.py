"""A commit in doubt, of what takes no run id: it was advised to give one, to commands that have no such option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitStateUnknownException, ForbiddenError
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import SetPropertiesUpdate

from keptlog.errors import CommitStateUnknown, InvalidConfig, StorageUnavailable
from keptlog.passes.readers import Readers
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.commit import Land
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.without_snapshot import commit_without_snapshot
from keptlog.table.store import LogStore
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, FaultyCatalog, append_each, create, new_id, store_over

Commit = Callable[[], CommitTableResponse]


def lost_request(commit: Commit) -> CommitTableResponse:
    raise CommitStateUnknownException("the line was cut before the commit")


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    create(tmp_path, config=COMPACTED)
    return FaultyCatalog(open_catalog(tmp_path))


@pytest.fixture
def store(faulty: FaultyCatalog) -> LogStore:
    store = store_over(faulty)
    append_each(store, [("a", "1")])
    Readers(store, new_id).add(TOPIC, "known", now_ms=NOW_MS)
    return store


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.alter_topic(TOPIC, {"segment.ms": "5"}),
        lambda store: Readers(store, new_id).add(TOPIC, "new", now_ms=NOW_MS),
    ],
    ids=["alter", "reader add"],
)
def test_the_same_command_is_named_and_finds_out(
    store: LogStore, faulty: FaultyCatalog, change: Callable[[LogStore], object]
) -> None:
    faulty.faults = [lost_request] * 24
    with pytest.raises(CommitStateUnknown, match=r"; run the same command again, which finds out$"):
        change(store)
    change(store)


UNSET = (
    lambda store: store.alter_topic(TOPIC, {}, ["cleanup.policy"]),
    f"keptlog topic describe {TOPIC} says what is set",
    "cleanup.policy can't be unset: the topic does not set it",
)
REMOVED = (
    lambda store: Readers(store, new_id).remove(TOPIC, "known"),
    "run the same command again: if it says that there is no such reader, that one is removed",
    f"topic {TOPIC} has no reader 'known'",
)


@pytest.mark.parametrize(("change", "advice", "refused"), [UNSET, REMOVED], ids=["unset", "reader remove"])
def test_what_is_refused_once_it_landed_says_how_to_find_out(
    faulty: FaultyCatalog,
    store: LogStore,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[LogStore], object],
    *,
    advice: str,
    refused: str,
) -> None:
    """The same command was advised, and called bad input: as if nothing had been changed."""

    def cut(*_: object) -> CommitTableResponse:
        raise CommitStateUnknownException("the line was cut")

    with monkeypatch.context() as patch:

        def lost_answer(commit: Commit) -> CommitTableResponse:
            commit()
            patch.setattr(faulty, "load_table", cut)
            return cut()

        faulty.faults = [lost_answer]
        with pytest.raises(CommitStateUnknown, match=f"; {advice}$"):
            change(store)
    with pytest.raises(InvalidConfig, match=refused):
        change(store)


@pytest.mark.parametrize("error", [ForbiddenError, CommitStateUnknownException])
def test_nobody_says_that_nothing_landed_of_what_has_no_id(
    store: LogStore, faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """As the commits of a purge: it does no harm to make them twice."""

    def refuse(*_: object) -> CommitTableResponse:
        raise error("told by the proxy")

    def passed_on(commit: Commit) -> CommitTableResponse:
        commit()
        monkeypatch.setattr(faulty, "load_table", refuse)
        return refuse()

    def prepare(table: Table) -> Land:
        return lambda: commit_without_snapshot(faulty, table, SetPropertiesUpdate(updates={"a": "1"}))

    faulty.faults = [passed_on]
    with pytest.raises(StorageUnavailable, match="told by the proxy") as told:
        store.committer.commit(Change(TOPIC), prepare)
    assert "nothing landed" not in str(told.value)
