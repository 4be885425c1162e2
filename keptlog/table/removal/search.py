"""Which files a search for keys has to look through, and how manifests are read for it.

All that lies below a topic's location, from one listing: what is live, what was replaced, what nobody refers to. What
the table refers to and lies elsewhere comes besides: another program may have brought it in from anywhere. So does what
a journal names there: a purge has taken its snapshots, and leaves it to be deleted by hand. Nothing is left out, for
whoever looks for a key knows what a file is only when it was opened. What the table needs and is not there comes
besides: nobody knows what is in it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import InputFile, InputStream
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import StructType

from keptlog.errors import LogCorrupt
from keptlog.kernels.key_search import Bound
from keptlog.log.search import SearchedFile
from keptlog.storage.object_version import ObjectVersion
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.history import is_history
from keptlog.table.metadata.metadata_files import own_metadata
from keptlog.table.metadata.metadata_reading import looked_at
from keptlog.table.metadata.references import References, all_references, comparable, comparable_forms
from keptlog.table.metadata.runs import remembered_ms
from keptlog.table.metadata.schema import PARTITION_SPEC, TABLE_SCHEMA
from keptlog.table.reading.readers import is_position
from keptlog.table.removal.drafts import read_draft
from keptlog.table.removal.erasure_register import is_register
from keptlog.table.removal.journal import (
    erasures_folder,
    journal_folder,
    read_journal,
    read_journals,
    receipt_folder,
    taken_back_folder,
    unreadable_folder,
)
from keptlog.table.removal.own_json import is_own_json
from keptlog.table.removal.summary_bounds import HOLD_NOTHING, PARTITION_VALUE, bounds_in_summaries
from keptlog.table.removal.topic_storage import lost_links_below
from keptlog.whole_file import is_unfinished

_NOT_OWN = "neither keptlog nor Iceberg writes such JSON; look at it, and move it out of the topic's folder"
_TABLE_METADATA = re.compile(r"/metadata/[^/]+\.metadata\.json(\.gz)?$")


def searched_files(load: Callable[[], Table], files: TableFiles) -> list[SearchedFile]:
    """Every file of a topic, each once; what a bucket keeps besides is told by ``searched_versions``.

    Raises:
        LogCorrupt: what the table refers to can't be read.
        OSError: the storage can't be listed.
    """
    return looked_at(load, lambda table: _files_of(table, files))


def _files_of(table: Table, files: TableFiles) -> list[SearchedFile]:
    location = table.location()
    # They are no files of this moment, and nobody can look through what they may lead to another time.
    stored = [*files.list(location), *lost_links_below(location)]
    paths = [file.path for file in stored]
    journals, unreadable = read_journals(files, location, paths)
    strange = unreadable.keys() | {path for path in paths if _is_strange_or_unread(files, location, path, path)}
    references = all_references(table)
    # A purge deletes nothing elsewhere: what its journal names there is left, and no snapshot names it any more.
    left = {file.path: file.bytes for journal in journals.values() for file in journal.segments + journal.metadata}
    sizes = left | references.data_bytes | references.metadata_bytes
    own = own_metadata(table)
    forms = comparable_forms([*paths, *sizes, *own])
    here, own_forms = {forms[path] for path in paths}, {forms[path] for path in own}
    needed = {forms[path] for path in _needed(references)} - own_forms
    listed = [
        SearchedFile(
            file.path,
            file.size_bytes,
            (_is_metadata(location, file.path) or forms[file.path] in own_forms) and file.path not in strange,
            is_needed=forms[file.path] in needed,
            is_stray=forms[file.path] not in needed,
        )
        for file in stored
    ]
    below = comparable(location) + "/"
    elsewhere = [
        SearchedFile(
            path,
            size_bytes,
            _is_metadata(location, path) or forms[path] in own_forms,
            is_needed=forms[path] in needed,
            is_elsewhere=not forms[path].startswith(below),
        )
        for path, size_bytes in sizes.items()
        if forms[path] not in here and (forms[path] in needed or not forms[path].startswith(below))
    ]
    return [*listed, *elsewhere]


def _needed(references: References) -> list[str]:
    """What may have a key in it, and is there as long as the table names it."""
    metadata = [path for path in references.metadata_bytes if not _TABLE_METADATA.search(path)]
    return [*references.data_bytes, *metadata]


def searched_versions(
    location: str, versions: Iterable[ObjectVersion], files: Iterable[SearchedFile], storage: TableFiles
) -> list[SearchedFile]:
    """Versions of files below a topic's location, as a search takes them; a delete marker has nothing in it.

    ``files`` are those of ``searched_files``: a version of what the table does not refer to is as stray as the file.
    """
    with_bytes = [each for each in versions if not each.is_delete_marker]
    if not with_bytes:
        return []
    needed = set(comparable_forms(each.path for each in files if each.is_needed).values())
    forms = comparable_forms(each.path for each in with_bytes)
    return [
        SearchedFile(
            each.location,
            each.size_bytes,
            _is_metadata(location, each.path) and not _is_strange_version(storage, location, each),
            is_stray=forms[each.path] not in needed,
        )
        for each in with_bytes
    ]


def bounds_of(content: bytes) -> Iterator[Bound]:
    """The bounds that a manifest has of columns of bytes or text, delete files' included, and what stands beside them.

    Another program may have partitioned a table by key: then values of keys are in manifests, in their lists, and
    perhaps in the table's metadata files.

    Raises:
        ValueError: it is none of these, or is damaged.
    """
    if content.startswith((b"{", b"[")):
        if not is_own_json(content):
            raise ValueError(_NOT_OWN)
        yield from bounds_in_summaries(content)
        return
    try:
        with AvroFile[Record](_Content(content)) as opened:
            fields = {field.name: place for place, field in enumerate(opened.schema.fields)}
            is_manifest, is_list = "data_file" in fields, "manifest_path" in fields
            if is_manifest:
                place = fields["data_file"]
                for entry in opened:
                    kind = opened.schema.fields[place].field_type
                    yield from _bounds_in(entry[place], kind) if isinstance(kind, StructType) else ()
            elif is_list:
                for entry in opened:
                    yield from _bounds_in_list(entry, fields)
    except Exception as error:
        # PyIceberg raises anything at all over bytes that are no Avro.
        raise ValueError(f"it is no whole manifest ({type(error).__name__}: {error})") from error
    if not is_manifest and not is_list:
        raise ValueError(f"it is no manifest, but has {', '.join(fields)}")


def _bounds_in(data_file: Record, kind: StructType) -> Iterator[Bound]:
    columns = {field.name: place for place, field in enumerate(kind.fields)}
    for name in ("lower_bounds", "upper_bounds"):
        for field_id, bound in (data_file[columns[name]] or {}).items() if name in columns else ():
            if field_id not in HOLD_NOTHING:
                yield Bound(TABLE_SCHEMA.find_column_name(field_id) or f"column {field_id}", bound)
    if "partition" not in columns:
        return
    values = columns["partition"]
    partitioning = kind.fields[values].field_type
    for place, field in enumerate(partitioning.fields if isinstance(partitioning, StructType) else ()):
        value = data_file[values][place]
        if isinstance(value, str | bytes):
            named = "key" if field.name == "key" else PARTITION_VALUE
            yield Bound(named, value.encode() if isinstance(value, str) else value)


def _bounds_in_list(manifest: Record, fields: Mapping[str, int]) -> Iterator[Bound]:
    """What a list says of the partitions in a manifest, if those are not ours: of these it is their numbers."""
    if "partitions" not in fields or manifest[fields["partition_spec_id"]] == PARTITION_SPEC.spec_id:
        return
    for summary in manifest[fields["partitions"]] or ():
        values = (summary[place] for place in range(len(summary)))
        yield from (Bound(PARTITION_VALUE, each) for each in values if isinstance(each, bytes))


def _is_strange(files: TableFiles, location: str, path: str, opened_by: str) -> bool:
    """Whether it lies where receipts wait, or what a topic remembers, and is none of that: nobody knows what is in it.

    ``opened_by`` leads to its content, which may be that of an older version.
    """
    name = path.removeprefix(receipt_folder(location))
    if name == path:
        return False
    if "/" not in name:
        return not is_unfinished(path) and not _is_read_by(read_draft, files, opened_by)
    if remembered_ms(path, location) is not None or is_history(path, location) or is_position(path, location):
        return False
    if path.startswith(taken_back_folder(location)):
        return not _is_read_by(read_journal, files, opened_by)
    with suppress(FileNotFoundError):
        return not path.startswith(erasures_folder(location)) or not is_register(files, opened_by)
    return False


def _is_strange_or_unread(files: TableFiles, location: str, path: str, opened_by: str) -> bool:
    try:
        return _is_strange(files, location, path, opened_by)
    except OSError:  # as without the right to read it: whoever looks through it names it, and why
        return True


def _is_strange_version(files: TableFiles, location: str, version: ObjectVersion) -> bool:
    if not version.path.startswith(journal_folder(location)):
        return _is_strange_or_unread(files, location, version.path, version.location)
    try:
        return not _is_read_by(read_journal, files, version.location)
    except OSError:  # as above
        return True


def _is_read_by(read: Callable[[TableFiles, str], object], files: TableFiles, path: str) -> bool:
    """Whether it is what this reads; what is gone is told by whoever looks through it."""
    try:
        with suppress(FileNotFoundError):
            read(files, path)
    except LogCorrupt:
        return False
    return True


def _is_metadata(location: str, path: str) -> bool:
    """Whether only keptlog and Iceberg write JSON at such a place."""
    if path.startswith(unreadable_folder(location)):
        return False
    if path.startswith((journal_folder(location), receipt_folder(location))):
        return path.endswith(".json")
    return path.startswith(location) and bool(_TABLE_METADATA.search(path))


class _Content(InputFile):
    """Bytes, as PyIceberg reads files."""

    def __init__(self, content: bytes) -> None:
        super().__init__("")
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> InputStream:  # noqa: FBT001, FBT002, ARG002  # PyIceberg's
        return io.BytesIO(self._content)
