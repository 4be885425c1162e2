"""Deletes a topic for good. A kill may come at any moment; the same call again finishes what it left.

    catalog                        files
    keptlog.users                  segments, metadata        before
    keptlog_deleting.users         segments, metadata        one change of the catalog: nobody finds the topic any more
    keptlog_deleting.users         the current metadata
    -                              the current metadata
    -                              -                         gone

A topic leaves its namespace first, so that no writer, of whatever version, lands in a topic that is half deleted. It
stays in the second one until its files are gone, because afterwards nobody would know where they lie. Until then no
topic of this name is created, which could get the same folder. A kill just before the last step leaves one file of
metadata, without a record in it.
"""

from __future__ import annotations

import contextlib

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from keptlog.errors import UnknownTopic
from keptlog.table.embedded import DELETING, NAMESPACE
from keptlog.table.files import TableFiles
from keptlog.table.references import comparable


def being_deleted(catalog: Catalog) -> list[str]:
    """Topics whose deletion was begun and is not finished, sorted; somebody may be at it just now."""
    try:
        return sorted(identifier[-1] for identifier in catalog.list_tables((DELETING,)))
    except NoSuchNamespaceError:
        return []


def delete_topic(catalog: Catalog, files: TableFiles, name: str) -> int:
    """Delete a topic, and finish an earlier deletion of this name; gives the number of files deleted.

    Raises:
        UnknownTopic: there is nothing to delete.
    """
    unfinished = name in being_deleted(catalog)
    count = _delete_files(catalog, files, name) if unfinished else 0
    with contextlib.suppress(NamespaceAlreadyExistsError):
        if not catalog.namespace_exists((DELETING,)):
            catalog.create_namespace((DELETING,))
    try:
        catalog.rename_table((NAMESPACE, name), (DELETING, name))
    except (NoSuchTableError, NoSuchNamespaceError):
        if unfinished:
            return count
        raise UnknownTopic(f"there is no topic {name!r}: see keptlog topic list") from None
    return count + _delete_files(catalog, files, name)


def _delete_files(catalog: Catalog, files: TableFiles, name: str) -> int:
    table = _deleting(catalog, name)
    if table is None:
        return 0
    last = table.metadata_location
    listed = [file.path for file in files.list(table.location()) if comparable(file.path) != comparable(last)]
    # Looked at again once it was listed: as long as it stands there, no topic of its name gets the folder. If another
    # call has finished the deletion, a new topic may have got it, and be what was listed.
    again = _deleting(catalog, name)
    if again is None or again.metadata.table_uuid != table.metadata.table_uuid:
        return 0
    paths = [] if _is_location_of(catalog, name, table.location()) else listed
    for path in paths:
        files.delete(path)
    with contextlib.suppress(NoSuchTableError):  # somebody else was at it too
        catalog.drop_table((DELETING, name))
    files.delete(last)
    return len(paths) + 1


def _deleting(catalog: Catalog, name: str) -> Table | None:
    """The table of a topic that is being deleted; null if that is over."""
    try:
        return catalog.load_table((DELETING, name))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None


def _is_location_of(catalog: Catalog, name: str, location: str) -> bool:
    """Whether a topic that an older keptlog made meanwhile has got the folder; then its purge sweeps what is left."""
    try:
        return comparable(catalog.load_table((NAMESPACE, name)).location()) == comparable(location)
    except (NoSuchTableError, NoSuchNamespaceError):
        return False
