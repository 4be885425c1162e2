"""The table that a catalog has under the name of a topic, or what is wrong with its metadata file.

A file that is gone or is none is damage, unless the folder of all topics is away with its disk. That holds for a topic
that is being deleted as well: without the file nobody knows what is to go.
"""

from __future__ import annotations

import zlib
from gzip import BadGzipFile
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    ValidationError,
)
from pyiceberg.table import Table

from keptlog.disk import NO_FILE
from keptlog.errors import Action, InvalidConfig, LogCorrupt
from keptlog.folders import NOT_THERE
from keptlog.table.catalogs.catalog import metadata_locations
from keptlog.table.io.files import local_path
from keptlog.table.metadata.loaded import entry_without_metadata, loaded_now
from keptlog.table.metadata.metadata_reading import unreadable
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.own_folder import goes_on_as

_NOT_METADATA: tuple[type[Exception], ...] = (
    *NO_FILE,
    LogCorrupt,
    ValidationError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    MemoryError,
    zlib.error,
    BadGzipFile,
)
"""What becomes of a metadata file that is none. A catalog loads it, whose client has other errors of its own."""


def topic_table(catalog: Catalog, name: str, namespace: str = NAMESPACE) -> Table:
    """A table of a topic, or of keptlog's own.

    Raises:
        NoSuchTableError, NoSuchNamespaceError, NoSuchPropertyException: the catalog does not find it.
        LogCorrupt: its metadata file is damaged or gone, or its entry names none.
    """
    try:
        return loaded_now(catalog, namespace, name)
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchPropertyException) as error:
        _require_location(catalog, name, namespace, error)
        raise
    except _NOT_METADATA as error:
        is_outage = isinstance(error, NOT_THERE) and not _is_storage_there(catalog)
        if is_outage or isinstance(error, InvalidConfig):
            raise
        _require_location(catalog, name, namespace, error)
        _require_one_name(catalog, name, namespace, error)
        raise unreadable(name, _metadata_file(catalog, name, namespace), error) from error


def deleting(catalog: Catalog, name: str) -> Table | None:
    """The table of a topic that is being deleted; null if that is over.

    Raises:
        LogCorrupt: its metadata file is damaged or gone; says how the topic is forgotten without.
    """
    try:
        return topic_table(catalog, name, DELETING)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except LogCorrupt as error:
        raise _not_deletable(name, error) from error


def _not_deletable(name: str, damage: LogCorrupt) -> LogCorrupt:
    """The error to raise where the deletion of a topic can't go on; a file of which there is no copy ends nothing."""
    if damage.is_of_property or damage.action is not LogCorrupt.action:
        return damage
    forget = f"PyIceberg's catalog.drop_table({(DELETING, name)!r})"
    return LogCorrupt(
        f"{damage}. Its deletion can't go on without: if there is no copy, take the topic out of the catalog with "
        f"{forget}; keptlog doctor names its folder then, which is to be deleted by hand"
    )


def _require_location(catalog: Catalog, name: str, namespace: str, error: Exception) -> None:
    """Refuse to call a table unknown that is there, and whose entry in the catalog leads to no metadata file.

    Raises:
        LogCorrupt: it does not.
    """
    if isinstance(error, NoSuchPropertyException) and (damage := entry_without_metadata(name, error)):
        raise damage from error
    if isinstance(catalog, SqlCatalog) and metadata_locations(catalog, namespace).get(name) == "":
        raise LogCorrupt(
            f"topic {name}: its row in the catalog names no metadata file; take the row out with PyIceberg's "
            f"catalog.drop_table({(namespace, name)!r}), and keptlog doctor names the file from which to put it back"
        ).of_property() from error


def _require_one_name(catalog: Catalog, name: str, namespace: str, error: Exception) -> None:
    """Refuse to call a metadata file lost that commits under another name of the same table have deleted.

    Raises:
        LogCorrupt: they have; a copy of the file or of the catalog would bring back what is older.
    """
    if not (isinstance(error, FileNotFoundError) and isinstance(catalog, SqlCatalog)):
        return
    path = metadata_locations(catalog, namespace).get(name, "")
    other = goes_on_as(catalog, (namespace, name), path)
    if other:
        told = LogCorrupt(
            f"topic {name}: its metadata file {path} is gone, and the table {other} has its files too: commits there "
            f"delete old metadata. Unless something was written to {name} since it has two names, take it out of the "
            f"catalog and leave the files, as PyIceberg's catalog.drop_table({(namespace, name)!r}) does"
        )
        told.action = Action.FIX_CONFIG  # put back, the file would be of an older time
        raise told from error


def _metadata_file(catalog: Catalog, name: str, namespace: str) -> str:
    """What the catalog names as a table's metadata file, in words; some catalogs keep that to themselves."""
    location = metadata_locations(catalog, namespace).get(name) if isinstance(catalog, SqlCatalog) else None
    return f"metadata file {location}" if location else "the metadata file that the catalog names"


def _is_storage_there(catalog: Catalog) -> bool:
    """Whether the folder of all topics is there: it is not while a disk is not mounted, or while a file is there."""
    local = local_path(catalog.properties.get("warehouse", ""))
    return not local or Path(local).is_dir()
