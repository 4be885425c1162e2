"""A place in a catalog to try things in, and the means to try them: two namespaces that nobody else uses.

    keptlog_doctor_1700000000000_3f2a9c01         tables, made and thrown away by probes
    keptlog_doctor_1700000000000_3f2a9c01_away    where a table is renamed to

Their names say when they were made. Who made them takes them away at the end; if it was killed, the next one does, once
they are older than anybody's probes take. So two that probe at once never meet.

A kill may also leave a file of metadata that the catalog has not heard of yet. It lies in a folder that has the name of
a namespace, so whoever takes the namespace away finds out where the catalog puts its tables, and empties that.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Identifier

from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.segment_path import partition_folder
from keptlog.storage.schema import to_arrow
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.metadata.change import OPERATION, RUN_ID, Change
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.lineage import COMMIT_ID
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.schema import PARTITION_SPEC, SORT_ORDER, TABLE_PROPERTIES, TABLE_SCHEMA
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.waiting.patience import within
from keptlog.table.waiting.reach import OUT_OF_REACH
from keptlog.table.waiting.reaching import one_line

OpenCatalog = Callable[[], Catalog]
"""Opens one catalog, each time anew."""
PREFIX = "keptlog_doctor_"
LEFT_AFTER_MS = 15 * 60_000
"""Longer than all probes take where every request has to wait; what is older was left by one that was killed."""
_NAME = re.compile(rf"{PREFIX}(\d+)_\w+")
_PLACE = "place"
"""A table that tells by its location where others would lie."""
_SEGMENT_BYTES = 2**20
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Scratch:
    """Two namespaces of one catalog, and what is needed to commit there as keptlog does."""

    catalog: Catalog
    open_another: OpenCatalog
    """Opens the same catalog once more: another program's connection."""
    namespace: str
    new_id: Callable[[], str]
    sleep: Callable[[float], None]
    left: list[str] = field(default_factory=list)
    """What could not be taken away, a line each."""
    _locations: set[str] = field(default_factory=set)
    """Where its tables lay: a writer who knows no better may have staged files there afterwards."""

    @property
    def files(self) -> TableFiles:
        """The storage behind the catalog."""
        return TableFiles(tuple(sorted(self.catalog.properties.items())))

    @property
    def away(self) -> str:
        """The other namespace."""
        return f"{self.namespace}_away"

    def create(self, name: str) -> Table:
        """Create a table as a topic's is made; ``name`` is free."""
        table = self.catalog.create_table(
            (self.namespace, name),
            TABLE_SCHEMA,
            partition_spec=PARTITION_SPEC,
            sort_order=SORT_ORDER,
            properties=TABLE_PROPERTIES,
        )
        self._locations.add(table.location())
        return table

    def drop(self, name: str) -> None:
        """Drop a table, with its files."""
        _remove_table(self.catalog, self.files, (self.namespace, name))

    def load(self, name: str, catalog: Catalog | None = None) -> Table:
        """A table as the catalog shows it now, through this connection or another one."""
        return (catalog or self.catalog).load_table((self.namespace, name))

    def removed(self) -> bool:
        """Take away all that is there; ``left`` says what could not be."""
        self.left.clear()
        for namespace in (self.namespace, self.away):
            try:
                remove_namespace(self.catalog, self.files, namespace)
            except NoSuchNamespaceError:
                continue
            except Exception as error:  # noqa: BLE001  # whatever keeps it: the answers are known by then
                self.left.append(f"namespace {namespace} ({one_line(error)}); a later doctor takes it away")
        # Of a table that the catalog still knows the metadata must stay: whoever comes later finds it by that.
        for location in () if self.left else self._locations:
            try:
                self.files.delete_many(file.path for file in self.files.list(location))
            except OUT_OF_REACH as error:
                self.left.append(f"files below {location} ({one_line(error)}); delete them by hand")
            _remove_folders(location)
        return True

    def committer(self, catalog: Catalog) -> Committer:
        """What lands changes of keptlog's own."""
        return Committer(catalog, self.sleep, self.files)

    def staged(self, table: Table, offset: int) -> Segment:
        """A segment of one record, written and not live."""
        folder = partition_folder(f"{table.location()}/data", 0)
        writer = SegmentWriter(self.files, lambda base: f"{folder}/{base:020d}-{self.new_id()}.parquet", _SEGMENT_BYTES)
        writer.write(to_arrow(0, [Record(offset, b"probe", b"", 0)]))
        return writer.finish()[0]

    def change(self, table: Table, offset: int, properties: Mapping[str, str] | None = None) -> FileChange:
        """A single attempt at the same, which is to land on exactly this table."""
        return FileChange(self.new_summary(), properties or {}, [data_file_of(0, self.staged(table, offset))])

    def new_summary(self) -> Mapping[str, str]:
        """What tells a snapshot from any other."""
        return {RUN_ID: "probe", COMMIT_ID: f"probe/{self.new_id()}", OPERATION: "probe"}

    def append(
        self,
        name: str,
        offset: int,
        properties: Mapping[str, str] | None = None,
        *,
        expired: Sequence[int] = (),
        catalog: Catalog | None = None,
    ) -> Mapping[str, str]:
        """Land a record and properties as keptlog does, again and again if there is no answer.

        Returns:
            What is in the summary of its snapshot.

        Raises:
            StorageUnavailable, CommitStateUnknown: the catalog can't be reached.
        """
        summary = self.new_summary()

        def prepare(table: Table) -> Land:
            added = [data_file_of(0, self.staged(table, offset))]
            return FileChange(summary, properties or {}, added, expired_snapshots=expired).written(table)

        change = Change(name, commit_id=summary[COMMIT_ID], namespace=self.namespace)
        self.committer(catalog or self.catalog).commit(change, prepare)
        return summary


def offsets_in(table: Table, snapshot: Snapshot | None = None) -> list[int]:
    """Which records a snapshot (default: the current one) shows, by the offsets in its manifests, in their order."""
    return [file.segment.base_offset for files in LiveFiles().of(table, snapshot).values() for file in files]


@contextlib.contextmanager
def scratch_at(scratch: Scratch) -> Iterator[Scratch]:
    """Make the namespaces, and take them away again with all that is in them."""
    try:
        scratch.catalog.create_namespace((scratch.namespace,))
        scratch.catalog.create_namespace((scratch.away,))
        yield scratch
    finally:
        if not within(scratch.removed, _PATIENCE_SECONDS):
            scratch.left.append(f"namespaces {scratch.namespace} and {scratch.away}; a later doctor takes them away")


def is_not_made_yet(catalog: Catalog) -> bool:
    """Whether to look at the catalog would make it."""
    return isinstance(catalog, EmbeddedCatalog) and catalog.is_empty


def topics_folder(scratch: Scratch) -> str:
    """Where the catalog puts topics, as far as the place of a table here tells."""
    return scratch.create(_PLACE).location().rpartition("/")[0].replace(scratch.namespace, NAMESPACE)


def scratch_name(now_ms: int, name: str) -> str:
    """The namespace of one that begins now; ``name`` tells it from another one."""
    return f"{PREFIX}{now_ms}_{name[:8]}"


def left_over(catalog: Catalog) -> dict[str, int]:
    """Namespaces of those who are at it, or were killed, and when they were made, in ms since 1970 UTC."""
    names = [namespace[-1] for namespace in catalog.list_namespaces()]
    return {name: int(found[1]) for name in names if (found := _NAME.fullmatch(name))}


def sweep(catalog: Catalog, files: TableFiles, now_ms: int) -> tuple[list[str], list[str]]:
    """Take away what those have left who were killed.

    Returns:
        The namespaces that are gone now; and a line for each that is still there, with why.
    """
    gone: list[str] = []
    left: list[str] = []
    # A table that was renamed away still lies in the folder of the other namespace.
    for name, made_ms in sorted(left_over(catalog).items(), reverse=True):
        if now_ms - made_ms < LEFT_AFTER_MS:
            left.append(f"namespace {name} is another doctor's, or was left a moment ago: the next one takes it away")
            continue
        try:
            _remove_unheard_of(catalog, files, name)
            remove_namespace(catalog, files, name)
            gone.insert(0, name)
        except NoSuchNamespaceError:
            continue
        except Exception as error:  # noqa: BLE001  # what was left is no reason to look at nothing
            left.append(f"namespace {name} can't be taken away ({one_line(error)}): drop it by hand")
    return gone, left


def _remove_unheard_of(catalog: Catalog, files: TableFiles, namespace: str) -> None:
    """Delete files in a namespace's folder that belong to no table which the catalog knows there.

    Raises:
        NoSuchNamespaceError: it is gone already.
    """
    place = catalog.create_table_if_not_exists((namespace, _PLACE), TABLE_SCHEMA).location()
    folder = place.rpartition("/")[0]
    if not folder.endswith(f"/{namespace}"):
        # The catalog gives places of another kind, of which it alone knows.
        return
    tables = [f"{folder}/{name}/" for *_, name in catalog.list_tables((namespace,))]
    files.delete_many(file.path for file in files.list(folder) if not file.path.startswith(tuple(tables)))
    _remove_empty_folders(folder)


def remove_namespace(catalog: Catalog, files: TableFiles, namespace: str) -> None:
    """Delete a namespace, its tables and their files.

    Raises:
        NoSuchNamespaceError: it is gone already.
    """
    for identifier in catalog.list_tables((namespace,)):
        try:
            _remove_table(catalog, files, identifier)
        except (NoSuchTableError, FileNotFoundError):
            # Somebody else was at it, or its metadata is gone.
            with contextlib.suppress(NoSuchTableError):
                catalog.drop_table(identifier)
    catalog.drop_namespace((namespace,))


def _remove_table(catalog: Catalog, files: TableFiles, identifier: Identifier) -> None:
    table = catalog.load_table(identifier)
    # Its metadata says where it lies, so it goes when the catalog has forgotten it.
    last = table.metadata_location
    files.delete_many(file.path for file in files.list(table.location()) if file.path != last)
    catalog.drop_table(identifier)
    files.delete(last)
    _remove_folders(table.location())


def _remove_folders(location: str) -> None:
    """On a disk empty folders are left: the table's, and that of its namespace."""
    _remove_empty_folders(location)
    local = local_path(location)
    if local is not None:
        with contextlib.suppress(OSError):
            Path(local).parent.rmdir()


def _remove_empty_folders(location: str) -> None:
    local = local_path(location)
    for folder, _, _ in os.walk(local, topdown=False) if local else ():
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
