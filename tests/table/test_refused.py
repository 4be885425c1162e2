"""Who refuses for good is asked once; who was not there has got nothing; only a lost answer leaves a doubt."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import CommitTableResponse
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError

from examples.ports import free_port
from keptlog.errors import CommitStateUnknown, StalePlan, StorageUnavailable, UnknownTopic
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.rest import PatientRestCatalog
from keptlog.table.commits.commit import MAX_OUTAGES
from keptlog.table.store import LogStore
from keptlog.table.waiting.reach import FailureKind, NotConnected, failure_of, tell_connections, unavailable
from tests.table.rest_server import Answer, RestServer
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    create,
    files_below,
    new_id,
    new_records,
    store_over,
    values,
)


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def store(server: RestServer, pauses: list[float]) -> LogStore:
    catalog = PatientRestCatalog("rest", uri=server.uri, **{"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"})
    return LogStore(catalog, {}, pauses.append, new_id)


def append(store: LogStore) -> None:
    store.append(TOPIC, new_records(("b", "2")), "run", NOW_MS)


_ALLOW = "see to its permissions and credentials"


@pytest.mark.parametrize("status", [400, 401, 403, 419])
def test_a_commit_that_is_refused_for_good_is_sent_once_and_nothing_landed(
    store: LogStore, server: RestServer, pauses: list[float], tmp_path: Path, status: int
) -> None:
    before = files_below(tmp_path)
    todo = "it does not take this request; its message says why" if status == 400 else _ALLOW
    server.answers["commit"] = [Answer(status)] * 50
    with pytest.raises(StorageUnavailable, match=rf"refuses .*nothing landed: {todo}"):
        append(store)
    # PyIceberg asks a second time with a new token where the old one may have expired.
    assert server.asked["commit"] == (2 if status in {401, 419} else 1)
    assert pauses == []
    assert values(store) == [(0, 0, b"1")]
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, "UnsupportedOperationException"), (406, "UnsupportedOperationException"), (501, "NotImplementedException")],
)
def test_what_a_catalog_says_it_can_t_do_is_asked_once_and_nothing_landed(
    store: LogStore, server: RestServer, pauses: list[float], status: int, kind: str
) -> None:
    server.answers["commit"] = [Answer(status, kind=kind)] * 50
    with pytest.raises(StorageUnavailable, match=rf"refuses \(.*{kind}.*\); nothing landed: this catalog can't do it"):
        append(store)
    assert (server.asked["commit"], pauses) == (1, [])
    assert values(store) == [(0, 0, b"1")]


def test_what_landed_although_the_catalog_says_it_can_t_do_it_is_found(store: LogStore, server: RestServer) -> None:
    server.answers["commit"] = [Answer(500, lands=True, kind="UnsupportedOperationException")]
    append(store)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]


def test_a_topic_that_is_deleted_just_before_the_commit_is_unknown(tmp_path: Path) -> None:
    catalog = FaultyCatalog(open_catalog(tmp_path))
    store = store_over(catalog)

    def is_gone(_: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        store_over(catalog.real).delete_topic(TOPIC, NOW_MS)
        raise NoSuchTableError("as Glue says it")

    create(tmp_path)
    catalog.faults = [is_gone]
    with pytest.raises(UnknownTopic):
        append(store)


def test_a_load_that_is_refused_for_good_is_asked_once(
    store: LogStore, server: RestServer, pauses: list[float]
) -> None:
    server.asked.clear()
    server.answers["load"] = [Answer(403)] * 50
    with pytest.raises(StorageUnavailable, match="see to its permissions and credentials"):
        store.load_table(TOPIC)
    with pytest.raises(StorageUnavailable, match=r"refuses .*nothing landed"):
        store.mark_uncleanable(TOPIC, [], NOW_MS, None)  # type: ignore[arg-type]  # it comes only to the load
    assert server.asked["load"] == 2
    assert pauses == []


@pytest.mark.parametrize("status", [400, 403])
def test_a_commit_that_landed_and_is_called_refused_has_landed(
    store: LogStore, server: RestServer, status: int
) -> None:
    server.answers["commit"] = [Answer(status, lands=True)]
    append(store)
    assert server.asked["commit"] == 1
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]


@pytest.mark.parametrize("status", [500, 502, 503, 504, None])
@pytest.mark.parametrize("lands", [True, False])
def test_a_commit_without_an_answer_lands_once(
    store: LogStore, server: RestServer, status: int | None, *, lands: bool
) -> None:
    server.answers["commit"] = [Answer(status, lands=lands)]
    append(store)
    assert server.asked["commit"] == (1 if lands else 2)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]


def test_a_catalog_that_never_answers_is_given_up_after_three_waits(
    store: LogStore, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.topics() == [TOPIC]
    table = store.load_table(TOPIC)
    monkeypatch.setattr("keptlog.table.catalogs.rest.ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(store, "load_table", lambda _: table)
    server.asked.clear()
    server.delay_seconds = 0.5
    with pytest.raises(StorageUnavailable, match=r"ReadTimeout.*nothing landed, try again"):
        append(store)
    until = time.monotonic() + 60  # the server counts a question once it has read it
    while server.asked["load"] < 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert server.asked == {"load": 3}


def test_a_deletion_that_meets_any_conflict_is_refused_and_the_same_call_again_deletes(
    store: LogStore, server: RestServer
) -> None:
    """PyIceberg takes each 409 of a rename for a table that has the new name already."""
    server.answers["rename"] = [Answer(409)]
    with pytest.raises(StalePlan, match=rf"topic {TOPIC} was not deleted: .* refused .*; nothing is lost, try again"):
        store.delete_topic(TOPIC, NOW_MS)
    assert store.topics() == [TOPIC]
    assert values(store) == [(0, 0, b"1")]
    store.delete_topic(TOPIC, NOW_MS)
    assert store.topics() == []


def test_a_catalog_that_is_too_busy_is_asked_again(store: LogStore, server: RestServer) -> None:
    server.answers["commit"] = [Answer(429)] * 3
    append(store)
    assert server.asked["commit"] == 4


def test_a_catalog_that_is_too_busy_is_there_and_wants_patience(store: LogStore, server: RestServer) -> None:
    server.answers["load"] = [Answer(429)] * 50
    with pytest.raises(StorageUnavailable, match=r"TooManyRequests.*; it can't do that now: try again in a while"):
        store.load_table(TOPIC)


def test_a_refused_look_after_a_lost_race_leaves_the_doubt(store: LogStore, server: RestServer) -> None:
    """Who sends a request twice may be told about the first one: a lost race is sure once somebody has looked."""
    server.answers["commit"] = [Answer(409)]

    def then_refuse(_: float) -> None:
        server.answers["load"] = [Answer(403)] * 50

    with pytest.raises(CommitStateUnknown, match="--run-id run"):
        append(LogStore(store.committer.catalog, {}, then_refuse, new_id))


def test_a_refusal_after_a_lost_answer_leaves_the_doubt(store: LogStore, server: RestServer) -> None:
    server.answers["commit"] = [Answer(None)]

    def then_refuse(_: float) -> None:
        server.answers["load"] = [Answer(403)] * 50

    doubtful = LogStore(store.committer.catalog, {}, then_refuse, new_id)
    with pytest.raises(CommitStateUnknown, match="--run-id run"):
        append(doubtful)


def test_a_catalog_that_goes_away_before_a_commit_is_sent_leaves_no_doubt(
    store: LogStore, server: RestServer, tmp_path: Path
) -> None:
    before = files_below(tmp_path)
    faulty = FaultyCatalog(store.committer.catalog)

    def gone(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        # From now on nobody listens there.
        faulty.real.uri = f"http://127.0.0.1:{free_port()}"  # type: ignore[attr-defined]
        return commit()

    faulty.faults = [gone]
    with pytest.raises(StorageUnavailable, match="nothing landed, try again"):
        append(store_over(faulty))
    assert faulty.commits == 1
    assert server.asked["commit"] == 0
    assert files_below(tmp_path) == before


def test_a_storage_that_refuses_a_manifest_is_asked_once(tmp_path: Path, pauses: list[float]) -> None:
    create(tmp_path)
    faulty = FaultyCatalog(open_catalog(tmp_path))

    def denied(_: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        raise OSError("When writing … : AWS Error ACCESS_DENIED during PutObject operation: Access Denied")

    faulty.faults = [denied] * MAX_OUTAGES
    with pytest.raises(StorageUnavailable, match=r"AccessDenied\); allow it .*nothing landed"):
        append(LogStore(faulty, {}, pauses.append, new_id))
    assert faulty.commits == 1
    assert pauses == []


def test_a_file_in_the_place_of_a_folder_is_met_once_and_told(tmp_path: Path, pauses: list[float]) -> None:
    create(tmp_path)
    store = LogStore(open_catalog(tmp_path), {}, pauses.append, new_id)
    append(store)
    store.append(TOPIC, new_records(("c", "3")), "next", NOW_MS)
    [metadata] = (tmp_path / "warehouse").rglob(f"{TOPIC}/metadata")
    (metadata / "receipts").write_bytes(b"")
    with pytest.raises(StorageUnavailable, match=r"receipts.*something else has the place .*: move it away"):
        store.purge(TOPIC, 2**45)
    assert pauses == []
    (metadata / "receipts").unlink()
    assert store.purge(TOPIC, 2**45).expired_snapshots


def test_a_database_that_is_not_there_was_not_asked() -> None:
    pytest.importorskip("psycopg2")
    engine = create_engine(f"postgresql+psycopg2://someone:secret@127.0.0.1:{free_port()}/db")
    tell_connections(engine)
    with pytest.raises(NotConnected) as told:
        engine.connect()
    assert failure_of(told.value) is FailureKind.NOT_SENT
    assert isinstance(told.value, DBAPIError)


@pytest.mark.parametrize(
    "words",
    [
        "sorry, too many clients already",
        'too many connections for role "keptlog"',
        'too many connections for database "lake"',
        "no more connections allowed (max_client_conn)",
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "the database system is starting up",
        "the database system is in recovery mode",
        "the database system is shutting down",
    ],
)
def test_a_database_that_takes_no_connection_now_is_to_be_asked_in_a_while(words: str) -> None:
    error = NotConnected(None, None, Exception(f'connection to server at "db", port 5432 failed: FATAL:  {words}'))
    assert str(unavailable("append", error)).endswith("; it can't do that now: try again in a while")
