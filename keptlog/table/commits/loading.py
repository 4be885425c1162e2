"""The one way to the table of a topic, and to the names of all: what is not there, and what only seems so.

A catalog that finds no such table mostly means a topic that was deleted just now: nothing is wrong. A topic that is
there must not go unnoticed in the same way, so the catalog is asked what else it knows of the name:

    its entry names no metadata file             the topic is damaged
    it is in the list, and still can't be found    a right is missing, or the catalog contradicts itself

A metadata file that is gone or is none is damage too, unless the folder of all topics is away with its disk.
"""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    ValidationError,
)
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from keptlog.errors import Action, InvalidConfig, KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.folders import NOT_THERE
from keptlog.log.given.unknown_topic import unknown_topic
from keptlog.storage.disk import NO_FILE
from keptlog.table.catalogs.catalog import metadata_locations
from keptlog.table.catalogs.embedded import unfinished_deletion
from keptlog.table.io.files import local_path
from keptlog.table.metadata.format import format_of
from keptlog.table.metadata.loaded import deleting, entry_without_metadata, loaded_now, names_in
from keptlog.table.metadata.metadata_reading import unreadable
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.deletion import being_deleted
from keptlog.table.removal.own_folder import goes_on_as
from keptlog.table.waiting.reaching import reaching

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
)
"""What becomes of a metadata file that is none. A catalog loads it, whose client has other errors of its own."""


def topic_names(catalog: Catalog) -> list[str]:
    """All topics, sorted."""
    return names_in(catalog, NAMESPACE)


def load_topic_table(catalog: Catalog, name: str, namespace: str = NAMESPACE) -> Table:
    """The table of a topic as it is now: the one way to it for all who read or write the topic.

    In another namespace it is a table of keptlog's own, which is no topic, and has a format all the same.

    Raises:
        UnknownTopic: there is none.
        UnsupportedFormat: a newer keptlog has written it.
        LogCorrupt: its metadata file is damaged or gone, or its format is no version.
        StorageUnavailable: the catalog lists it and does not find it.
    """
    table = _table(catalog, name, namespace)
    format_of(name, table.properties)
    return table


def id_to_delete(catalog: Catalog, name: str) -> str:
    """The id of the topic that a deletion of this name means: the topic's, or that of one whose deletion was begun.

    Raises:
        UnknownTopic: there is neither.
        UnsupportedFormat, LogCorrupt, StorageUnavailable: as for ``load_topic_table``.
    """
    with reaching(f"topic {name} can't be loaded"):
        going = deleting(catalog, name)
        table = going if going and name not in topic_names(catalog) else load_topic_table(catalog, name)
    return str(table.metadata.table_uuid)


def metadata_location(catalog: Catalog, name: str) -> str:
    """Where a topic's current metadata lies, whatever its format.

    Raises:
        UnknownTopic: there is none.
        LogCorrupt, StorageUnavailable: as for ``load_topic_table``.
    """
    return _table(catalog, name).metadata_location


def _table(catalog: Catalog, name: str, namespace: str = NAMESPACE) -> Table:
    try:
        table = loaded_now(catalog, namespace, name)
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchPropertyException) as error:
        _require_location(catalog, name, namespace, error)
        raise _not_found(catalog, name, namespace) from None
    except _NOT_METADATA as error:
        is_outage = isinstance(error, NOT_THERE) and not _is_storage_there(catalog)
        if is_outage or isinstance(error, InvalidConfig):
            raise
        _require_location(catalog, name, namespace, error)
        _require_one_name(catalog, name, namespace, error)
        raise unreadable(name, _metadata_file(catalog, name, namespace), error) from error
    _require_main(name, table)
    return table


def _require_main(name: str, table: Table) -> None:
    """Refuse a table whose current snapshot is not its main branch's: PyIceberg builds on the one, and shows the other.

    An append would be all that is there. Iceberg's other programs read no such metadata.
    """
    main, current = table.metadata.refs.get(MAIN_BRANCH), table.metadata.current_snapshot_id
    if main and main.snapshot_id != current:
        told = f"main is at snapshot {main.snapshot_id}, and the current one is {current}"
        raise unreadable(name, f"metadata file {table.metadata_location}", ValueError(told))


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


def _not_found(catalog: Catalog, name: str, namespace: str) -> KeptlogError:
    """There is no such topic; what the others are called is worth no error of its own.

    Not of one that is in the list: nobody else would tell of it, as of no topic that was deleted just now.
    """
    known: list[str] = []
    is_hidden = False
    with contextlib.suppress(Exception):
        if name in being_deleted(catalog):
            return unfinished_deletion(name)
        known = topic_names(catalog)
        # A database lists the rows that it looks in: only a name that is no text is listed and not found, and is told.
        is_listed = namespace == NAMESPACE and name in known and not isinstance(catalog, SqlCatalog)
        is_hidden = is_listed and _is_hidden(catalog, name)
    if is_hidden:
        return StorageUnavailable(
            f"topic {name}: the catalog lists it, and says that there is no such table: the right to load it is "
            "missing, or its entry is damaged. Ask who runs the catalog"
        ).for_good()
    return unknown_topic(name, known)


def _is_hidden(catalog: Catalog, name: str) -> bool:
    """Asked of a topic that was not found before it was listed: it may have been created between."""
    try:
        loaded_now(catalog, NAMESPACE, name)
    except NoSuchIcebergTableError:
        return True
    except NoSuchTableError:
        return not _lists_late(catalog)
    return False


def _lists_late(catalog: Catalog) -> bool:
    """Whether its list may still have a table that is gone. DynamoDB's does: it asks an index, which follows later."""
    return any(each.__name__ == "DynamoDbCatalog" for each in type(catalog).__mro__)  # to import it takes boto3


def _metadata_file(catalog: Catalog, name: str, namespace: str) -> str:
    """What the catalog names as a table's metadata file, in words; some catalogs keep that to themselves."""
    location = metadata_locations(catalog, namespace).get(name) if isinstance(catalog, SqlCatalog) else None
    return f"metadata file {location}" if location else "the metadata file that the catalog names"


def _is_storage_there(catalog: Catalog) -> bool:
    """Whether the folder of all topics is there: it is not while a disk is not mounted, or while a file is there."""
    local = local_path(catalog.properties.get("warehouse", ""))
    return not local or Path(local).is_dir()
