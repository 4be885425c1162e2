"""Opens the catalog that holds the topics: the embedded one, or the one that PyIceberg's configuration names.

Without configuration, ``<home>/catalog.db`` is a SQLite catalog and ``<home>/warehouse`` holds the files. A catalog
named ``keptlog`` in ``.pyiceberg.yaml`` or in ``PYICEBERG_CATALOG__KEPTLOG__…`` takes its place, home unused.

A home that is not there reads as one without topics, and is made with the first of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier, Properties
from pyiceberg.utils.config import Config
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from keptlog.errors import InvalidConfig
from keptlog.extras import missing_extra
from keptlog.table.embedded import CATALOG_NAME, DATABASE, LOCK_WAIT_SECONDS, NAMESPACE
from keptlog.table.files import make_folder
from keptlog.table.reach import one_line, reaching

_FILE_IO = "keptlog.table.file_io.DurableFileIO"


class EmbeddedCatalog(SqlCatalog):
    """A SQLite catalog in a folder that need not exist before something is put into it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._database = home / DATABASE
        super().__init__(
            CATALOG_NAME,
            **{
                "uri": f"sqlite:///{self._database}?timeout={LOCK_WAIT_SECONDS}",
                "warehouse": f"file://{home / 'warehouse'}",
                "py-io-impl": _FILE_IO,
            },
        )

    def _init_catalog(self) -> None:
        self._schema_version = "v1"
        if not self.is_empty:
            super()._init_catalog()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever put into it."""
        return not self._database.exists()

    def create_namespace(self, namespace: str | Identifier, properties: Properties | None = None) -> None:
        """Create a namespace, and home and database first if they are not there."""
        make_folder(self._home)
        try:
            self.create_tables()
        except OperationalError:
            # Two processes that make the same home meet here; the second one finds the tables made.
            self.create_tables()
        super().create_namespace(namespace, properties or {})

    def namespace_exists(self, identifier: str | Identifier) -> bool:
        """Whether a namespace exists."""
        return not self.is_empty and super().namespace_exists(identifier)

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables."""
        if self.is_empty:
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")
        return super().list_tables(namespace)

    def load_table(self, identifier: str | Identifier) -> Table:
        """Load a table as it is now."""
        if self.is_empty:
            raise NoSuchTableError(f"Table does not exist: {identifier}")
        return super().load_table(identifier)


def open_catalog(home: Path) -> Catalog:
    """Open the configured catalog, or the embedded one at ``home``; nothing is created yet.

    Raises:
        InvalidConfig: the configured catalog's settings are wrong.
        StorageUnavailable: it can't be opened.
    """
    configured = Config().get_catalog_config(CATALOG_NAME)
    if configured:
        return _configured(configured)
    home = home.expanduser().absolute()
    with reaching(f"home {home} can't be opened"):
        if home.exists() and not home.is_dir():
            raise NotADirectoryError(f"{home} is not a folder")
        return EmbeddedCatalog(home)


def _configured(properties: dict[str, Any]) -> Catalog:
    try:
        with reaching(f"the configured catalog {CATALOG_NAME!r} can't be opened"):
            return load_catalog(CATALOG_NAME, **{"py-io-impl": _FILE_IO} | properties)
    except (ValueError, NoSuchPropertyException, NotInstalledError) as error:
        why = missing_extra(error.__cause__) or one_line(error)
        raise InvalidConfig(f"the configured catalog {CATALOG_NAME!r} is not usable: {why}") from error


def metadata_locations(catalog: SqlCatalog) -> dict[str, str]:
    """Table to the location of its current metadata, in one query."""
    if isinstance(catalog, EmbeddedCatalog) and catalog.is_empty:
        return {}
    query = select(IcebergTables.table_name, IcebergTables.metadata_location).where(
        IcebergTables.catalog_name == catalog.name, IcebergTables.table_namespace == NAMESPACE
    )
    with Session(catalog.engine) as session:
        return {name: location for name, location in session.execute(query) if location}
