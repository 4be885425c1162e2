"""The embedded catalog, seen from outside: one SQLite file in the home, in which each table's metadata is found.

For those who only look, this takes the place of opening the catalog, whose libraries take longer to import than a
thousand topics to look at. Whoever can't be told so cheaply where the topics are opens the catalog.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from keptlog.errors import InvalidConfig, StorageUnavailable, UnknownTopic
from keptlog.log.words.counted import counted, some_of
from keptlog.settings import home_folder
from keptlog.table.namespaces import CATALOG_NAME, NAMESPACE
from keptlog.table.waiting.half_done import half_done
from keptlog.table.waiting.reaching import HELD

DATABASE = "catalog.db"
LOCK_WAIT_SECONDS = 30
"""How long a commit waits for those of others."""
_LOOK_WAIT_SECONDS = 10
"""How long a look does: it is kept out only while one lands."""
_CONFIGURATION = ".pyiceberg.yaml"
_SHOWN = 3
OWN_CATALOG = "this home's own catalog"
"""How it is called where another one is configured."""
_TABLES = "select table_name, metadata_location from iceberg_tables where catalog_name = ? and table_namespace = ?"
_NO_VIEWS = " and ifnull(iceberg_type, 'TABLE') = 'TABLE'"
"""Spark keeps its views among the tables. A database from before there were views lacks the column."""


def embedded_locations(
    home: Path, environment: Mapping[str, str] = os.environ, namespace: str = NAMESPACE
) -> dict[str, str] | None:
    """Topic to the location of its current metadata, empty if it names none; null if only the opened catalog can tell.

    That is so where there is no embedded catalog yet, where another one may be configured, and where it can't be read.

    Raises:
        StorageUnavailable: another process holds it.
    """
    rows = _rows(home, environment, _TABLES, (CATALOG_NAME, namespace))
    # SQLite keeps whatever it is given, and another program may have given bytes.
    return None if rows is None else {str(topic): where if isinstance(where, str) else "" for topic, where in rows}


def embedded_location(home: Path, topic: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The same for one topic, without a look at the others; null also if there is no such topic.

    Raises:
        StorageUnavailable: another process holds the catalog.
    """
    rows = _rows(home, environment, f"{_TABLES} and table_name = ?", (CATALOG_NAME, NAMESPACE, topic))
    return next((where for _, where in rows or [] if isinstance(where, str)), None)


def _rows(
    home: Path, environment: Mapping[str, str], query: str, values: tuple[str, ...]
) -> list[tuple[object, object]] | None:
    """What the embedded catalog answers; null if only the opened one can tell."""
    return None if may_be_configured(environment) else _own_rows(home_folder(home) / DATABASE, query, values)


def own_topics_told(home: Path) -> str | None:
    """What is said of the home's own catalog, where another is configured; null if it has no topic, or can't be read.

    Raises:
        StorageUnavailable: another process holds it.
    """
    names = sorted(str(name) for name, _ in _own_rows(home / DATABASE, _TABLES, (CATALOG_NAME, NAMESPACE)) or ())
    if not names:
        return None
    return f"{OWN_CATALOG} {home / DATABASE} names {counted(len(names), 'topic')} ({some_of(names, _SHOWN)})"


def own_location(home: Path, table: tuple[str, str]) -> str | None:
    """Where the home's own catalog says that a table, by namespace and name, is, whatever is configured.

    Empty if it has no such table; null if it can't be read.

    Raises:
        StorageUnavailable: another process holds it.
    """
    rows = _own_rows(home / DATABASE, f"{_TABLES} and table_name = ?", (CATALOG_NAME, *table))
    return None if rows is None else next((where for _, where in rows if isinstance(where, str)), "")


def _own_rows(database: Path, query: str, values: tuple[str, ...]) -> list[tuple[object, object]] | None:
    """What an embedded catalog answers; null if there is none, or it can't be read."""
    if not database.is_file():
        return None
    try:
        with looking_into(database) as connection:
            columns = [name for (name,) in connection.execute("select name from pragma_table_info('iceberg_tables')")]
            return connection.execute(query + (_NO_VIEWS if "iceberg_type" in columns else ""), values).fetchall()
    except (sqlite3.Error, UnicodeEncodeError):  # the second one is for a name that was given in no encoding
        return None


@contextlib.contextmanager
def looking_into(database: Path, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    """A connection to an embedded catalog for one look, that imports little.

    Raises:
        StorageUnavailable: another process holds it for longer than a commit takes.
        sqlite3.Error: it can't be read; ``HalfDone`` where a writer has died in a commit of it.
    """
    where = f"{database.as_uri()}?mode={mode}"
    try:
        with contextlib.closing(sqlite3.connect(where, timeout=_LOOK_WAIT_SECONDS, uri=True)) as connection:
            yield connection
    except sqlite3.OperationalError as error:
        if found := half_done(error, database):
            raise found from error
        if "database is locked" not in str(error):
            raise
        raise StorageUnavailable(f"home {database.parent} can't be looked into: {HELD}") from None


def damage_in(database: Path) -> str | None:
    """What SQLite finds wrong inside of an embedded catalog, in one line; null if nothing is, or there is none.

    A look at the tables alone may not meet it: where an index is damaged they are read without an error, and in part.

    Raises:
        StorageUnavailable: another process holds it.
    """
    if not database.is_file():
        return None
    try:
        with looking_into(database) as connection:
            [(found,), *_] = connection.execute("pragma integrity_check(1)").fetchall()
    except sqlite3.Error as error:
        found = str(error)
    return None if found == "ok" else " ".join(found.split())


def warehouse_of(home: Path) -> str:
    """Below which location the embedded catalog of a home puts all tables."""
    return f"file://{home / 'warehouse'}"


def existing_topic(name: str) -> InvalidConfig:
    """What is said of a topic that is to be made, and is there."""
    return InvalidConfig(f"topic {name!r} exists already: alter it, or choose another name")


def unfinished_deletion(topic: str) -> UnknownTopic:
    """What is said of a topic that is among those being deleted."""
    return UnknownTopic(
        f"{topic}: its deletion was begun and is not finished; if nobody is at it, keptlog topic delete {topic} "
        "finishes it"
    )


def may_be_configured(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether there is anything of PyIceberg's configuration, whatever it says."""
    # A user without an entry in passwd has no folder of his own, and that is no error.
    folders = [Path(os.path.expanduser("~")), Path.cwd()]  # noqa: PTH111
    return any(name.upper().startswith("PYICEBERG_") for name in environment) or any(
        (folder / _CONFIGURATION).is_file() for folder in folders
    )
