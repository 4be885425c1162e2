"""A database that stops in the middle of a session is given up in time, and a commit that it was asked for is found."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg2
import pytest

from examples.lake.postgres import USER, Postgres
from keptlog.errors import StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.catalogs.conftest import Configure
from tests.table.stores import COMPACTED, TOPIC, append_each, new_id, store_over, values

PATIENCE_SECONDS = 1.0


@pytest.fixture
def name() -> str:
    return f"db{new_id()}"


@pytest.fixture
def store(
    tmp_path: Path, configure: Configure, database: Postgres, name: str, monkeypatch: pytest.MonkeyPatch
) -> LogStore:
    """One with a record, whose connection is open."""
    monkeypatch.setattr("keptlog.table.catalogs.catalog.CONNECT_SECONDS", 2)
    configure(type="sql", uri=database.create(name), warehouse=f"file://{tmp_path / 'lake'}")
    made = store_over(open_catalog(tmp_path))
    made.create_topic(TOPIC, 1, COMPACTED)
    append_each(made, [("a", "1")])
    monkeypatch.setattr("keptlog.table.waiting.database_answers.DATABASE_SECONDS", PATIENCE_SECONDS)
    return made


@contextmanager
def stopped(database: Postgres, name: str) -> Iterator[None]:
    """The server's processes that serve a database, and the one that takes connections, are not run."""
    with closing(_session(database, "postgres")) as session, session.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [name])
        pids = [database.server.pid, *(pid for (pid,) in cursor.fetchall())]
    assert len(pids) > 1
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _session(database: Postgres, name: str) -> psycopg2.extensions.connection:
    return psycopg2.connect(host="127.0.0.1", port=database.port, user=USER, dbname=name)


def test_a_look_ends_with_one_line_where_the_server_was_stopped(store: LogStore, database: Postgres, name: str) -> None:
    begun = time.monotonic()
    with stopped(database, name), pytest.raises(StorageUnavailable, match="timeout expired"):
        store.topics()
    assert time.monotonic() - begun < 60
    assert store.topics() == [TOPIC]


def test_a_look_that_waits_for_a_lock_says_that_no_answer_came(store: LogStore, database: Postgres, name: str) -> None:
    with closing(_session(database, name)) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLE iceberg_tables")
        with pytest.raises(StorageUnavailable, match="the database did not answer within 1 s; check that"):
            store.topics()
    assert store.topics() == [TOPIC]


def test_what_is_appended_beside_a_lock_lands_once(store: LogStore, database: Postgres, name: str) -> None:
    with closing(_session(database, name)) as other, other.cursor() as cursor:
        cursor.execute("LOCK TABLE iceberg_tables IN EXCLUSIVE MODE")  # reads go on, writes wait
        ended = threading.Timer(3 * PATIENCE_SECONDS, other.rollback)
        ended.start()
        append_each(store, [("b", "2")])
        ended.join()
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]
