"""Whether the table of a topic that is not found under its name may be somewhere else, and go on with its files there.

    deleted by keptlog                 all of its files are gone, its metadata too, unless it was killed just before
    being deleted                      it waits in another namespace, and all of its files go
    renamed by another program         it has its files where they were, under another name
    dropped by one, the files left     it may be registered again, with the files that it had (``unowned``)

So metadata that names its id, where it lay, tells that it may. What is not known is no reason to delete anything.
"""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.loaded import loaded_if_there
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.metadata_json import metadata_json
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.waiting.reach import OUT_OF_REACH

_DATA = "/data/"
_NOT_KNOWN = (KeptlogError, ValueError, LookupError, TypeError)
_NO_ANSWER: tuple[type[Exception], ...] = (*OUT_OF_REACH, *_NOT_KNOWN)


def may_be_elsewhere(
    catalog: Catalog, files: TableFiles, topic: str, topic_id: str | None, metadata_folder: str | None
) -> bool:
    """Whether a topic that is not there any more may be; of a folder that is not known, null, nobody can tell.

    Raises one of ``OUT_OF_REACH`` if catalog or storage did not answer: that is no reason to delete anything either.
    """
    try:
        if _is_being_deleted(catalog, topic, topic_id):
            return False
        return metadata_folder is None or _has_metadata(files, metadata_folder, topic_id)
    except _NOT_KNOWN:
        return True


def is_wholly_gone(catalog: Catalog, files: TableFiles, seen: Table) -> bool:
    """Whether a topic that was seen is deleted, wholly and for good; false if nobody knows."""
    topic, topic_id = seen.name()[-1], str(seen.metadata.table_uuid)
    try:
        # In the order in which a deletion moves it.
        for namespace in (NAMESPACE, DELETING):
            there = loaded_if_there(catalog, namespace, topic)
            if there is not None and str(there.metadata.table_uuid) == topic_id:
                return False
        return not _has_metadata(files, seen.metadata_location.rpartition("/")[0], topic_id)
    except _NO_ANSWER:
        return False


def metadata_folder_of(data_path: str) -> str | None:
    """Where the metadata of a topic lies of which this is a data file, there or not; null if that can't be told."""
    location, is_known, _ = data_path.rpartition(_DATA)
    return f"{location}/metadata" if is_known else None


def _is_being_deleted(catalog: Catalog, topic: str, topic_id: str | None) -> bool:
    try:
        table = load_topic_table(catalog, topic, DELETING)
    except UnknownTopic:
        return False
    return topic_id in {None, str(table.metadata.table_uuid)}


def _has_metadata(files: TableFiles, folder: str, topic_id: str | None) -> bool:
    paths = [file.path for file in files.list(folder) if file.path.endswith(METADATA_ENDINGS)]
    return any(topic_id in {None, _id_in(files, path)} for path in paths)


def _id_in(files: TableFiles, path: str) -> str:
    return str(metadata_json(files.read_bytes(path))["table-uuid"])
