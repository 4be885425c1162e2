"""What a PostgreSQL says it has not done is not done: nobody is told that it may have landed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pytest

from examples.lake.postgres import USER, Postgres
from keptlog.errors import StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.catalogs.conftest import Configure
from tests.table.stores import COMPACTED, TOPIC, append_each, new_id, store_over, values

AT_ONCE, AT_COMMIT = "at once", "at the commit"
FULL = "53100"
CODES = ("25006", "40001", "40P01", FULL, "53200", "55P03", "57014")


@dataclass(frozen=True)
class Database:
    """The catalog's database."""

    server: Postgres
    name: str

    def execute(self, statement: str) -> None:
        """Ask it something besides."""
        address = {"host": "127.0.0.1", "port": self.server.port, "user": USER, "dbname": self.name}
        with closing(psycopg2.connect(**address)) as session, session, session.cursor() as cursor:
            cursor.execute(statement)

    def refuse(self, code: str, timing: str) -> None:
        """Let every change of a row end with this code: at once, or at the commit."""
        self.execute(
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'told by the test' USING ERRCODE = '{code}'; END $$"
        )
        kind = "CONSTRAINT TRIGGER t AFTER" if timing == AT_COMMIT else "TRIGGER t BEFORE"
        late = "DEFERRABLE INITIALLY DEFERRED" if timing == AT_COMMIT else ""
        self.execute(f"CREATE {kind} INSERT OR UPDATE ON iceberg_tables {late} FOR EACH ROW EXECUTE FUNCTION refuse()")


@pytest.fixture
def behind(database: Postgres) -> Database:
    name = f"db{new_id()}"
    database.create(name)
    return Database(database, name)


@pytest.fixture
def store(tmp_path: Path, configure: Configure, behind: Database) -> LogStore:
    """One with a record."""
    configure(type="sql", uri=behind.server.uri(behind.name), warehouse=f"file://{tmp_path / 'lake'}")
    made = store_over(open_catalog(tmp_path))
    made.create_topic(TOPIC, 1, COMPACTED)
    append_each(made, [("a", "1")])
    return made


@pytest.mark.parametrize("timing", [AT_ONCE, AT_COMMIT])
@pytest.mark.parametrize("code", CODES)
def test_nothing_landed_is_what_is_said_and_what_is_true(
    store: LogStore, behind: Database, code: str, timing: str
) -> None:
    behind.refuse(code, timing)
    with pytest.raises(StorageUnavailable, match=r"told by the test\); nothing landed"):
        append_each(store, [("b", "2")])
    assert values(store) == [(0, 0, b"1")]
    behind.execute("DROP FUNCTION refuse CASCADE")
    append_each(store, [("b", "2")])
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]


def test_a_database_that_became_a_read_only_one_is_named_as_that(store: LogStore, behind: Database) -> None:
    behind.execute(f"ALTER DATABASE {behind.name} SET default_transaction_read_only = on")
    behind.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()"
    )
    with pytest.raises(StorageUnavailable, match=r"read-only transaction.*; its database takes no writes"):
        store.create_topic("other", 1, COMPACTED)
    with pytest.raises(StorageUnavailable, match=r"read-only transaction\); nothing landed, try again"):
        append_each(store, [("b", "2")])
    assert values(store) == [(0, 0, b"1")]


def test_a_full_disk_of_the_database_is_not_asked_again(store: LogStore, behind: Database) -> None:
    behind.refuse(FULL, AT_ONCE)
    with pytest.raises(StorageUnavailable, match="make room on the disk of its database"):
        append_each(store, [("b", "2")])
