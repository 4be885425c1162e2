"""Opens the catalog that holds the topics: the embedded one, or the one that PyIceberg's configuration names.

Without configuration, ``<home>/catalog.db`` is a SQLite catalog and ``<home>/warehouse`` holds the files. A catalog
named ``keptlog`` in ``.pyiceberg.yaml`` or in ``PYICEBERG_CATALOG__KEPTLOG__…`` takes its place. Then the home has
settings, keys and what is remembered, and no files of topics.

A home that is not there reads as one without topics, and is made with the first of them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pyiceberg.catalog import LOCATION, WAREHOUSE_LOCATION, Catalog, MetastoreCatalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NotInstalledError,
)
from sqlalchemy import ColumnElement, make_url, select
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError
from sqlalchemy.orm import Session

from keptlog.errors import InvalidConfig, StorageUnavailable, first_line
from keptlog.extras import missing_extra
from keptlog.settings import home_folder
from keptlog.table.catalogs.configuration import FILE_IO, OF_POSTGRES, OWN_FILE_IO, catalog_settings, kind_of
from keptlog.table.catalogs.embedded import DATABASE
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.catalogs.home_folder import RESTORE, require_folder
from keptlog.table.catalogs.loaded import loaded
from keptlog.table.catalogs.one_at_a_time import is_rest, one_at_a_time
from keptlog.table.catalogs.sql import PatientSqlCatalog
from keptlog.table.io.files import TableFiles
from keptlog.table.io.vending import VENDED
from keptlog.table.metadata.forward_in_time import forward_in_time
from keptlog.table.namespaces import CONFIGURED, NAMESPACE
from keptlog.table.waiting.database_answers import answer_in_time
from keptlog.table.waiting.patience import CONNECT_SECONDS
from keptlog.table.waiting.reach import connecting, tell_connections
from keptlog.table.waiting.reaching import one_line, reaching

_OWN = {
    "rest": "keptlog.table.catalogs.rest.PatientRestCatalog",
    "glue": "keptlog.table.catalogs.glue.PatientGlueCatalog",
    "sql": "keptlog.table.catalogs.sql.PatientSqlCatalog",
}
"""Types of PyIceberg's for which keptlog has a class of its own."""
_BY_LIBPQ = ("postgresql://", OF_POSTGRES, "postgresql+psycopg://")
HOME = "keptlog-home"
"""Of a configured catalog's properties: the home that is opened with it.

A dot in it would make it a property of the storage (``storage_properties``), which goes along to tasks.
"""
_PRE_PING = "pool_pre_ping"
"""Whether a connection is tried before it is used: after a restart of the database the first call finds a new one."""


def open_catalog(home: Path, now_ms: Callable[[], int] | None = None) -> Catalog:
    """Open the configured catalog, or the embedded one at ``home``; nothing is created yet.

    ``now_ms`` is the clock of its commits, by default PyIceberg's own.

    Raises:
        InvalidConfig: the configured catalog's settings are wrong, or the home is no folder.
        StorageUnavailable: it can't be opened.
    """
    configured = catalog_settings()
    if configured:
        _require_driver(configured)
        catalog = _configured(configured, now_ms)
        catalog.properties[HOME] = str(home_folder(home))
        return catalog
    home = home_folder(home)
    with reaching(f"home {home} can't be opened"):
        require_folder(home)
        try:
            return EmbeddedCatalog(home, now_ms)
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # its subclasses are about a lock, or a disk
                raise
            raise StorageUnavailable(
                f"home {home} can't be opened: its catalog {home / DATABASE} is damaged ({error}); {RESTORE}"
            ).of_damage() from None


def _configured(properties: dict[str, Any], now_ms: Callable[[], int] | None) -> Catalog:
    try:
        with reaching(f"{CONFIGURED} can't be opened"):
            with connecting():
                catalog = loaded({FILE_IO: OWN_FILE_IO} | _with_own_class(_in_time(properties)))
            if isinstance(catalog, SqlCatalog):
                _require_warehouse(catalog)
                # PyIceberg's name for it has underscores, which a variable of the environment can't say.
                catalog.properties.setdefault(_PRE_PING, properties.get(_PRE_PING.replace("_", "-"), "true"))
            catalog = forward_in_time(catalog, now_ms)
            if isinstance(catalog, SqlCatalog) and not isinstance(catalog, PatientSqlCatalog):
                tell_connections(catalog.engine)
                answer_in_time(catalog.engine)
            return one_at_a_time(catalog, fit=(TellsLocations,))
    except InvalidConfig:  # a ValueError that says it in words
        raise
    except (ValueError, NoSuchPropertyException, NotInstalledError) as error:
        why = missing_extra(error.__cause__) or one_line(error)
        raise InvalidConfig(f"{CONFIGURED} is not usable: {why}") from error
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise InvalidConfig(f"{CONFIGURED} is not usable: {missing}") from error
    except (TypeError, AttributeError) as error:
        if "auth" not in properties:
            raise
        # PyIceberg gives what is below it to whoever signs in, as it is.
        why = f"its auth can't be used ({one_line(error)}): give auth.type, and the settings below that name"
        raise InvalidConfig(f"{CONFIGURED}: {why}") from error


def _require_driver(properties: Mapping[str, Any]) -> None:
    """Refuse a database's address for which Python has no driver."""
    if kind_of(properties) != "sql":
        return
    uri = str(properties.get("uri", ""))
    begin = uri.partition("://")[0]
    try:
        make_url(uri).get_dialect().import_dbapi()
    except NoSuchModuleError:
        unknown = f"its uri begins with {begin}://, which is of no database that SQLAlchemy knows"
        why = f"{unknown}: that of PostgreSQL begins with {OF_POSTGRES}"
    except ModuleNotFoundError as error:
        # SQLAlchemy takes a bare postgresql:// for another driver than that of the extra.
        is_postgres = begin.startswith("postgresql")
        todo = f"write {OF_POSTGRES}, for which keptlog[postgres] is enough" if is_postgres else "install it"
        needs = f"its uri begins with {begin}://, which needs {error.name}, and that is not installed: {todo}"
        why = missing_extra(error) or needs
    except ImportError as error:
        why = f"the driver of its uri, which begins with {begin}://, can't be imported: {first_line(error)}"
    except (ArgumentError, ValueError):
        return  # whoever opens it says what is wrong
    else:
        return
    raise InvalidConfig(f"{CONFIGURED} is not usable: {why}")


def _in_time(properties: dict[str, Any]) -> dict[str, Any]:
    """The same settings, but libpq, which waits for ever where nobody answers, is told how long to wait."""
    uri = str(properties.get("uri", ""))
    if not uri.startswith(_BY_LIBPQ) or "connect_timeout" in uri or "PGCONNECT_TIMEOUT" in os.environ:
        return properties
    return properties | {"uri": f"{uri}{'&' if '?' in uri else '?'}connect_timeout={CONNECT_SECONDS:.0f}"}


def _require_warehouse(catalog: SqlCatalog) -> None:
    """A database does not know where tables are to lie, and PyIceberg finds that out when the first is made."""
    if catalog.properties.get(WAREHOUSE_LOCATION):
        return
    with suppress(NoSuchNamespaceError):
        if catalog.load_namespace_properties(NAMESPACE).get(LOCATION):
            return
    raise InvalidConfig(
        f"{CONFIGURED} has no warehouse, below which topics are to lie: set PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE, or "
        "warehouse beside its uri, to a place such as s3://BUCKET/PREFIX"
    )


def _with_own_class(properties: dict[str, Any]) -> dict[str, Any]:
    """The same settings, but where they mean a catalog of PyIceberg's that keptlog opens otherwise they name ours."""
    kind = kind_of(properties)
    # Who names a class wants that one. PyIceberg says itself what is missing for its own.
    if "py-catalog-impl" in properties or kind not in _OWN or (kind == "glue" and find_spec("boto3") is None):
        return properties
    return {name: value for name, value in properties.items() if name != "type"} | {"py-catalog-impl": _OWN[kind]}


@runtime_checkable
class TellsLocations(Protocol):
    """A catalog that tells where the metadata of many tables lies in one answer."""

    def location_page(self, namespace: str, page: str | None) -> tuple[dict[str, str], str | None]:
        """Table to the location of its current metadata, and the page that follows; null is the first, and the end."""


def metadata_locations(catalog: SqlCatalog, namespace: str = NAMESPACE) -> dict[str, str]:
    """Table to the location of its current metadata, in one query; empty where the row of a table names none."""
    if isinstance(catalog, EmbeddedCatalog) and catalog.is_empty:
        return {}
    query = select(IcebergTables.table_name, IcebergTables.metadata_location).where(*_in(catalog, namespace))
    are_tables = catalog._iceberg_type_filter()  # noqa: SLF001  # the rule of list_tables
    with Session(catalog.engine) as session:
        found = session.execute(query if are_tables is None else query.where(are_tables))
        return {str(name): location if isinstance(location, str) else "" for name, location in found}


def tables_like(catalog: SqlCatalog, folder: str) -> dict[str, list[tuple[str, ...]]]:
    """Where metadata lies in some folder of such a name, to the tables that it is of: catalog, namespace, name of each.

    Those of other catalogs in the same database too: each program calls its catalog as it likes.
    """
    if isinstance(catalog, EmbeddedCatalog) and catalog.is_empty:
        return {}
    table = IcebergTables
    columns = (table.metadata_location, table.catalog_name, table.table_namespace, table.table_name)
    # The database looks: a purge of thousands of topics asks for each, and would read them all each time.
    query = select(*columns).where(table.metadata_location.contains(f"/{folder}/", autoescape=True))
    found: dict[str, list[tuple[str, ...]]] = {}
    with Session(catalog.engine) as session:
        for location, in_catalog, namespace, name in session.execute(query):
            found.setdefault(str(location), []).append((in_catalog, *namespace.split("."), name))
    return found


def views_in(catalog: SqlCatalog, namespace: str = NAMESPACE) -> list[str]:
    """What another engine has among the tables: their names are taken, and they are none."""
    are_tables = catalog._iceberg_type_filter()  # noqa: SLF001  # as above
    if are_tables is None or (isinstance(catalog, EmbeddedCatalog) and catalog.is_empty):
        return []
    query = select(IcebergTables.table_name).where(*_in(catalog, namespace), ~are_tables)
    with Session(catalog.engine) as session:
        return list(session.scalars(query))


def _in(catalog: SqlCatalog, namespace: str) -> tuple[ColumnElement[bool], ...]:
    return IcebergTables.catalog_name == catalog.name, IcebergTables.table_namespace == namespace


def make_namespace(catalog: Catalog, namespace: str) -> bool:
    """Make a namespace, unless it is there or somebody else is faster; whether it was made."""
    if catalog.namespace_exists((namespace,)):
        return False
    try:
        catalog.create_namespace((namespace,))
    except NamespaceAlreadyExistsError:
        return False
    except IntegrityError:
        # PyIceberg only asks a database before; whose row came between is told by the database alone.
        if catalog.namespace_exists((namespace,)):
            return False
        raise
    return True


def usual_location(catalog: Catalog, namespace: str, name: str) -> str | None:
    """Where a catalog puts a table of this name, also one that is not there; null where only its server knows.

    Null too if it has no such namespace, or no warehouse.
    """
    if not isinstance(catalog, MetastoreCatalog):
        return None
    try:
        return catalog._resolve_table_location(None, namespace, name)  # noqa: SLF001  # the rule of create_table
    except (NoSuchNamespaceError, ValueError):
        return None


def files_of(catalog: Catalog) -> TableFiles:
    """The storage behind a catalog, with the credentials that it gives for each table, if it does."""
    properties: dict[str, Any] = dict(catalog.properties)
    if is_rest(catalog):
        from keptlog.table.catalogs.rest import PatientRestCatalog  # noqa: PLC0415  # as in is_rest

        if isinstance(catalog, PatientRestCatalog):
            properties[VENDED] = catalog.vended
    return TableFiles(tuple(sorted(properties.items())))
