"""The embedded catalog, opened: a SQLite file in the home, that is made with the first topic."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from pyiceberg.catalog import WAREHOUSE_LOCATION
from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables, SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from sqlalchemy import URL, create_engine, event, inspect
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.schema import CreateTable
from typing_extensions import override

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.table.catalogs.configuration import FILE_IO, OWN_FILE_IO
from keptlog.table.catalogs.database_file import FileIdentity, follow_file, identity_of, is_blank
from keptlog.table.catalogs.embedded import DATABASE, LOCK_WAIT_SECONDS
from keptlog.table.catalogs.home_folder import is_made, lost_since, require_catalog_not_lost, topics_with_files
from keptlog.table.catalogs.home_location import (
    REMEMBER,
    remembered,
    warehouse_named,
    why_elsewhere,
    why_still_elsewhere,
)
from keptlog.table.catalogs.outlived_copy import why_not_there
from keptlog.table.catalogs.sql import failures_told
from keptlog.table.io.read_only import READ_ONLY
from keptlog.table.metadata.forward_in_time import ForwardInTime
from keptlog.table.namespaces import CATALOG_NAME, NAMESPACE
from keptlog.table.waiting.reach import tell_half_done
from keptlog.whole_file import make_folder, sync


class EmbeddedCatalog(ForwardInTime, SqlCatalog):
    """A SQLite catalog in a folder that need not exist before something is put into it.

    Whatever it is asked to change, it asks first whether its home is where it was made (``home_location``).
    """

    def __init__(self, home: Path, now_ms: Callable[[], int] | None = None) -> None:
        self._home = home
        self._database = home / DATABASE
        self._with_tables: FileIdentity | None = None
        """The last database in which tables were seen."""
        self._remembering: FileIdentity | None = None
        """The last one that was seen to know where it was made."""
        self.now_ms = now_ms
        elsewhere = why_elsewhere(home)
        super().__init__(
            CATALOG_NAME,
            **{
                "uri": "sqlite://",
                WAREHOUSE_LOCATION: warehouse_named(home),
                FILE_IO: OWN_FILE_IO,
            },
        )
        self.properties["uri"] = f"sqlite:///{self._database}?timeout={LOCK_WAIT_SECONDS}"
        if elsewhere:
            self.properties[READ_ONLY] = partial(why_still_elsewhere, home, elsewhere)

    @override
    def __reduce__(self) -> NoReturn:
        # Without it pickle tells of a local object of SQLAlchemy.
        raise TypeError("an opened home can't be pickled: open it in each process, with open_home(path)")

    @override
    def _init_catalog(self) -> None:
        # Not as a URI: what follows a question mark in the home's name would be taken for options.
        options = {"timeout": str(LOCK_WAIT_SECONDS)}
        self.engine = create_engine(URL.create("sqlite", database=str(self._database), query=options))
        event.listen(self.engine, "connect", _make_commits_durable)
        follow_file(self.engine, self._database)
        tell_half_done(self.engine, self._database)
        self._schema_version = "v1"
        if not self.is_empty:
            with failures_told(self.engine):
                super()._init_catalog()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever put into it; somebody may be just about to.

        Raises:
            StorageUnavailable: something was, and it is lost.
        """
        there = identity_of(self._database)
        if there and self._has_tables(there):
            self._with_tables = there
            return False
        require_catalog_not_lost(self._home)
        if self._with_tables:
            raise StorageUnavailable(lost_since(self._home))
        return True

    def _has_tables(self, there: FileIdentity) -> bool:
        is_known = there == self._with_tables and not is_blank(self._database)
        return is_known or inspect(self.engine).has_table(IcebergTables.__tablename__)

    @override
    def create_namespace(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        """Create a namespace, and home and database first if they are not there: all of it at once, or nothing."""
        if self.is_empty:
            make_folder(self._home)
            # SQLite would make one that only its owner can write, whatever the umask gives to a group.
            self._database.touch()
        self._require_where_it_was_made()
        name = self.namespace_to_string(namespace)
        home_rows = remembered(self._home)
        connection = self.engine.raw_connection()
        try:
            is_new = _add_namespace(connection.cursor(), name, {"exists": "true", **properties}, home_rows)
            connection.commit()
        finally:
            connection.close()
        sync(self._home)
        if not is_new:
            raise NamespaceAlreadyExistsError(f"Namespace {name} already exists")

    @override
    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Whether a namespace exists."""
        return not self.is_empty and super().namespace_exists(namespace)

    @override
    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables."""
        if self.is_empty:
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")
        return super().list_tables(namespace)

    @override
    def load_table(self, identifier: str | Identifier) -> Table:
        """Load a table as it is now.

        Raises:
            InvalidConfig: it is not where the catalog says: the home was moved, or the original outlived this copy.
        """
        if self.is_empty:
            raise NoSuchTableError(f"Table does not exist: {identifier}")
        try:
            return super().load_table(identifier)
        except FileNotFoundError:
            namespace, name = self.identifier_to_tuple(identifier)
            why = why_not_there(self._home, (namespace, name))
            if why:
                raise why from None
            raise

    @override
    def create_table(self, *args: Any, **kwargs: Any) -> Table:
        """Create a table."""
        self._require_where_it_was_made()
        return super().create_table(*args, **kwargs)

    @override
    def register_table(self, *args: Any, **kwargs: Any) -> Table:
        """Take in a table that has metadata already."""
        self._require_where_it_was_made()
        return super().register_table(*args, **kwargs)

    @override
    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates to a table."""
        self._require_where_it_was_made()
        return super().commit_table(table, requirements, updates)

    @override
    def rename_table(self, from_identifier: str | Identifier, to_identifier: str | Identifier) -> Table:
        """Give a table another name."""
        self._require_where_it_was_made()
        return super().rename_table(from_identifier, to_identifier)

    @override
    def drop_table(self, identifier: str | Identifier) -> None:
        """Take a table out of the catalog."""
        self._require_where_it_was_made()
        if self.is_empty:
            raise NoSuchTableError(f"Table does not exist: {identifier}")
        super().drop_table(identifier)

    @override
    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        # Another process may have made the home since this one opened it, by another path.
        self.properties[WAREHOUSE_LOCATION] = warehouse_named(self._home)
        return super()._get_default_warehouse_location(database_name, table_name)

    def _require_where_it_was_made(self) -> None:
        """Refuse to change anything through a home that is a copy, or was moved.

        An older home remembers from now on where it was made.

        Raises:
            InvalidConfig: with the place where it was made.
        """
        elsewhere = why_elsewhere(self._home)
        if elsewhere:
            raise InvalidConfig(elsewhere)
        there = identity_of(self._database)
        if there != self._remembering and not self.is_empty:
            rows = remembered(self._home)
            with self.engine.begin() as connection:
                connection.exec_driver_sql(REMEMBER, rows)
            self._remembering = there


def begin_anew(home: Path) -> None:
    """Make a catalog without topics in a home that has lost its own; what lies there can be registered then.

    Raises:
        InvalidConfig: it is not lost, or no file can be made in its place.
    """
    database = home / DATABASE
    if is_made(database) or not topics_with_files(home):
        todo = f"leave out --new-catalog, or move {database} away first if it is damaged"
        raise InvalidConfig(f"home {home} has not lost its catalog: {todo}")
    if database.exists() and not is_blank(database):
        raise InvalidConfig(f"{database} is no file of a catalog: move it away first")
    home_rows = remembered(home)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        _make_commits_durable(connection, None)
        _add_namespace(connection.cursor(), NAMESPACE, {"exists": "true"}, home_rows)
        connection.execute("commit")
    sync(home)


def _add_namespace(
    cursor: sqlite3.Cursor | DBAPICursor, name: str, properties: Mapping[str, str], home_rows: tuple[str | None, ...]
) -> bool:
    """Begin a transaction that adds a namespace, and all that a catalog needs; false if there was one of the name."""
    # Processes that make the same home wait for each other here, and the second one finds everything made.
    cursor.execute("begin immediate")
    for table in (IcebergTables, IcebergNamespaceProperties):
        cursor.execute(str(CreateTable(table.__table__, if_not_exists=True).compile(dialect=sqlite.dialect())))  # type: ignore[arg-type]  # it is one
    rows = [(CATALOG_NAME, name, *each) for each in properties.items()]
    cursor.executemany("insert or ignore into iceberg_namespace_properties values (?, ?, ?, ?)", rows)
    is_new = cursor.rowcount > 0
    cursor.execute(REMEMBER, home_rows)
    return is_new


def _make_commits_durable(connection: sqlite3.Connection, _: object) -> None:
    """A commit is acknowledged when its journal is off the disk too: after a power loss that would take it back."""
    connection.execute("pragma synchronous = extra")
