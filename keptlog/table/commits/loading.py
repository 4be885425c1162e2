"""The one way to the table of a topic, and to the names of all: what is not there, and what only seems so.

A catalog that finds no such table mostly means a topic that was deleted just now: nothing is wrong. A topic that is
there must not go unnoticed in the same way, so the catalog is asked what else it knows of the name:

    its entry names no metadata file             the topic is damaged
    it is in the list, and still can't be found    a right is missing, or the catalog contradicts itself
    it names no topic at all                       it was emptied, or is another one than is meant (``emptied``)

A metadata file that is gone or is none is damage too (``topic_table``).
"""

from __future__ import annotations

import contextlib

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
)
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.given.given import any_text
from keptlog.log.given.unknown_topic import unknown_topic
from keptlog.table.catalogs.embedded import unfinished_deletion
from keptlog.table.catalogs.emptied import emptied, require_not_emptied
from keptlog.table.metadata.format import format_of
from keptlog.table.metadata.lineage import same_topic
from keptlog.table.metadata.loaded import loaded_now, names_in
from keptlog.table.metadata.metadata_reading import unreadable
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.deletion import being_deleted
from keptlog.table.removal.topic_table import deleting, topic_table
from keptlog.table.waiting.reaching import reaching


def topic_names(catalog: Catalog) -> list[str]:
    """All topics, sorted."""
    return names_in(catalog, NAMESPACE)


def all_topics(catalog: Catalog) -> list[str]:
    """The same, for whoever looks at all of them, or is to do something with each.

    Raises:
        StorageUnavailable: none is known, and files of topics are there.
    """
    names = topic_names(catalog)
    if not names:
        require_not_emptied(catalog)
    return names


def load_topic_table(catalog: Catalog, name: str, namespace: str = NAMESPACE) -> Table:
    """The table of a topic as it is now: the one way to it for all who read or write the topic.

    In another namespace it is a table of keptlog's own, which is no topic, and has a format all the same.

    Raises:
        UnknownTopic: there is none.
        InvalidConfig: the name is no text.
        UnsupportedFormat: a newer keptlog has written it.
        LogCorrupt: its metadata file is damaged or gone, or its format is no version.
        StorageUnavailable: the catalog lists it and does not find it, or names no topic, and files of topics are there.
    """
    table = _table(catalog, any_text(name, "a topic's name"), namespace)
    format_of(name, table.properties)
    return table


def load_same_topic(catalog: Catalog, name: str, topic_id: str) -> Table:
    """The table of a topic that was looked at before, as it is now.

    Raises:
        StalePlan: it was deleted meanwhile, and there is another one of its name.
        UnknownTopic, UnsupportedFormat, LogCorrupt, StorageUnavailable: as for ``load_topic_table``.
    """
    return same_topic(load_topic_table(catalog, name), topic_id)


def id_to_delete(catalog: Catalog, name: str) -> str:
    """The id of the topic that a deletion of this name means: the topic's, or that of one whose deletion was begun.

    Raises:
        UnknownTopic: there is neither.
        UnsupportedFormat, LogCorrupt, StorageUnavailable: as for ``load_topic_table``.
    """
    with reaching(f"topic {name} can't be loaded"):
        try:
            table = load_topic_table(catalog, name)
        except UnknownTopic:
            going = deleting(catalog, name)
            if going is None:
                raise
            table = going
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
        table = topic_table(catalog, name, namespace)
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchPropertyException):
        raise _not_found(catalog, name, namespace) from None
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


def _not_found(catalog: Catalog, name: str, namespace: str) -> KeptlogError:
    """There is no such topic; what the others are called is worth no error of its own.

    Not of one that is in the list: nobody else would tell of it, as of no topic that was deleted just now.
    """
    known: list[str] | None = None
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
    # That there is no topic at all is believed no sooner of one name than of all.
    lost = emptied(catalog) if known == [] and namespace == NAMESPACE else None
    return lost or unknown_topic(name, known or ())


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
