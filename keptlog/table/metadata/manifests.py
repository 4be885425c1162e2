"""One commit that changes which files a table holds: some leave, some come, properties move with them.

A table's files stand in manifests, and manifests are immutable: to take a file out, its manifest is written again
without it. So what a commit costs is the number of entries in the manifests that it touches, and all that is here keeps
that number small:

    manifests    [ 1000 ][ 1000 ][ 700 ][ 3 ][ 20 ][ 1 ]     removed: one file of the second
    touched                 ^
    afterwards   [ 1000 ][  999 ][ 700 ][ 3 ][ 20 ][ 1 ][ added ][ removed ]

1. A manifest has at most ``MANIFEST_ENTRIES`` entries, of neighbouring partitions and offsets; a larger one, of another
   program, is cut up when it is touched.
2. Only manifests that hold a removed file are written again, from the entries that were read when the log was judged.
3. Small manifests, the traces of small appends, are put together once there are ``SMALL_MANIFESTS`` of them.

PyIceberg's own overwrite decodes every manifest twice, rewrites manifests of any size, and compresses each entry apart,
four times the time at 10,000 files. Its commit is used, and lands only on the snapshot that was built from (ADR 1), but
for what it does after a refusal: try again by itself, with properties that are stale by then, and delete the manifests
that it wrote. A refusal may be wrong. A client that sends a request again, because the answer to the first was lost, is
told that the snapshot has changed: by itself. So what was written for a commit that was sent is left to the purge.
It deletes in the table's own folder alone, so manifests lie there, wherever other programs want metadata to be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.exceptions import ValidationException
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.table.update.snapshot import _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.utils.concurrent import ExecutorFactory
from typing_extensions import override

from keptlog.table.metadata.file_metrics import LiveFile
from keptlog.table.metadata.format import raised_format
from keptlog.table.metadata.metadata_reading import entries_of, manifests_of
from keptlog.table.metadata.segment_metrics import partition_of
from keptlog.table.metadata.state import SNAPSHOT_ID
from keptlog.table.metadata.usable_properties import require_usable_for_snapshots
from keptlog.table.metadata.without_snapshot import removal_of

MANIFEST_ENTRIES = 1_000
SMALL_MANIFESTS = 20
_SMALL_ENTRIES = MANIFEST_ENTRIES // 2


@dataclass(frozen=True, slots=True)
class OtherBase:
    """Another snapshot whose files a commit begins with, instead of those of the current one: a repair's way.

    ``came`` and ``went`` are what that changes for a reader, from the current snapshot's files to the new one's, as far
    as these are known; ``unread`` are manifests of that, or its manifest list, which can't be read.
    """

    manifests: Sequence[ManifestFile]
    came: Sequence[DataFile]
    went: Sequence[DataFile]
    unread: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FileChange:
    """What one commit changes. ``removed`` are of ``live``, all files of the snapshot that is built on."""

    summary: Mapping[str, str]
    """Properties of the new snapshot."""
    properties: Mapping[str, str]
    """Properties of the table."""
    added: Sequence[DataFile] = ()
    removed: Sequence[LiveFile] = ()
    live: Mapping[int, Sequence[LiveFile]] = field(default_factory=dict)
    """By partition; only needed where files are removed."""
    base: OtherBase | None = None
    removed_properties: Sequence[str] = ()
    """Of the table."""
    expired_snapshots: Sequence[int] = ()
    """That leave the table with this commit; their files are the caller's business."""

    def written(self, table: Table) -> Callable[[], object]:
        """Write the manifests of a commit on exactly the table's current snapshot; what comes back commits.

        The state belongs to the new one then. CommitFailedException is raised there if another one is current by then.

        Raises:
            ValidationException: a file that is to be removed is not in it.
            LogCorrupt: another program has set a property that no snapshot can be made with.
        """
        require_usable_for_snapshots(table)
        transaction = _Transaction(table)
        producer = _Producer(transaction, table, self)
        try:
            producer.commit()
        except BaseException:
            producer.take_back()
            raise
        belongs_to = {SNAPSHOT_ID: str(producer.snapshot_id)}
        transaction.set_properties(
            dict(self.properties) | belongs_to | raised_format(table.name()[-1], table.properties)
        )
        if self.removed_properties:
            transaction.remove_properties(*self.removed_properties)
        if self.expired_snapshots:
            removal = removal_of(table.metadata, self.expired_snapshots)
            transaction._apply(removal)  # noqa: SLF001  # PyIceberg's own expiry commits by itself
        return transaction.commit_transaction

    def land(self, table: Table) -> None:
        """Write and commit, both at once."""
        self.written(table)()


class _Transaction(Transaction):
    """PyIceberg's transaction, which copies the whole metadata at each look, also while nothing is changed yet."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._table = _InOwnFolder(table.name(), table.metadata, table.metadata_location, table.io, table.catalog)
        self._given = table

    @property
    @override
    def table_metadata(self) -> TableMetadata:
        return super().table_metadata if self._updates else self._table.metadata

    @override
    def commit_transaction(self) -> Table:
        """Send it once, whatever the table says of retries: other programs set that, for themselves."""
        requirements = (*self._requirements, AssertTableUUID(uuid=self._given.metadata.table_uuid))
        self._given._do_commit(updates=self._updates, requirements=requirements)  # noqa: SLF001
        return self._given


class _InOwnFolder(Table):
    """A table whose manifests are written below its folder, also where ``write.metadata.path`` names another."""

    @override
    def location_provider(self) -> LocationProvider:
        own = {name: value for name, value in self.properties.items() if name != TableProperties.WRITE_METADATA_PATH}
        return load_location_provider(self.location(), own)


class _Producer(_SnapshotProducer["_Producer"]):
    """Writes the manifests of the new snapshot."""

    def __init__(self, transaction: Transaction, table: Table, change: FileChange) -> None:
        base = change.base
        came = base.came if base else change.added
        went = base.went if base else [file.entry.data_file for file in change.removed]
        operation = Operation.OVERWRITE if went or (base and base.unread) else Operation.APPEND
        super().__init__(operation, transaction, table.io, snapshot_properties=dict(change.summary))
        self._compression = "deflate"  # the table may name what only other programs can write
        self._base = base
        self._added = change.added
        self._topic = table.name()[-1]
        self._removed = {file.segment.path for file in change.removed}
        self._touched: dict[str, list[ManifestEntry]] = {file.manifest_path: [] for file in change.removed}
        self._live = [file for files in change.live.values() for file in files]
        for file in self._live:
            if file.manifest_path in self._touched:
                self._touched[file.manifest_path].append(file.entry)
        for data_file in came:
            self.append_data_file(data_file)
        for data_file in went:
            self.delete_data_file(data_file)

    @override
    def commit(self) -> None:
        """Give the new snapshot to the transaction, which is not told who made it: it would delete and try again."""
        super(_SnapshotProducer, self).commit()

    def take_back(self) -> None:
        """Delete what was written for a commit that was never sent: nobody can refer to it."""
        for path in (*self._written_manifests, *self._written_manifest_lists):
            with suppress(OSError):
                self._io.delete(path)

    @override
    def _manifests(self) -> list[ManifestFile]:
        deleted = self._deleted_entries()
        kept, again = self._kept_and_rewritten()
        added = [self._entry(ManifestEntryStatus.ADDED, data_file) for data_file in self._added]
        pieces = [piece for entries in (added, deleted, again) for piece in _pieces(entries)]
        # All at once, because each waits until it is on the disk.
        return list(ExecutorFactory.get_or_create().map(self._written, pieces)) + kept

    @override
    def _existing_manifests(self) -> list[ManifestFile]:
        if self._base:
            manifests = list(self._base.manifests)  # those of the current snapshot may be damaged
        else:
            snapshot = self._transaction.table_metadata.snapshot_by_name(self._target_branch)
            manifests = manifests_of(self._topic, snapshot, self._io) if snapshot else []
        return [each for each in manifests if each.has_added_files() or each.has_existing_files()]

    @override
    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        summary = super()._summary(snapshot_properties)
        if self._base:
            # Counted on from the current snapshot's, of which not all may be known, and which may have delete files.
            stays = (file.entry.data_file for file in self._live if file.segment.path not in self._removed)
            held = [*self._added, *stays]
            summary["total-data-files"] = str(len(held))
            summary["total-records"] = str(sum(each.record_count for each in held))
            summary["total-files-size"] = str(sum(each.file_size_in_bytes for each in held))
            for kind in ("delete-files", "position-deletes", "equality-deletes"):
                summary[f"total-{kind}"] = "0"
        return summary

    @override
    def _deleted_entries(self) -> list[ManifestEntry]:
        entries = [entry for entries in self._touched.values() for entry in entries]
        return [
            self._entry(ManifestEntryStatus.DELETED, entry.data_file, entry)
            for entry in entries
            if entry.data_file.file_path in self._removed
        ]

    def _kept_and_rewritten(self) -> tuple[list[ManifestFile], list[ManifestEntry]]:
        """The manifests that stay as they are, and the live entries of the others.

        Raises:
            ValidationException: a touched manifest is not in the snapshot.
        """
        kept: list[ManifestFile] = []
        small: list[ManifestFile] = []
        again: list[ManifestEntry] = []
        found = 0
        for manifest in self._existing_manifests():
            if manifest.manifest_path in self._touched:
                found += 1
                again += self._remaining(self._touched[manifest.manifest_path])
            elif manifest.content == ManifestContent.DATA and _live_count(manifest) < _SMALL_ENTRIES:
                small.append(manifest)
            else:
                kept.append(manifest)
        if found < len(self._touched):
            raise ValidationException("a manifest with files to remove is not in the snapshot that is built on")
        if len(small) < SMALL_MANIFESTS:
            return kept + small, again
        for manifest in small:
            again += self._remaining(entries_of(self._topic, manifest, self._io))
        return kept, again

    def _remaining(self, entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
        for entry in entries:
            if entry.data_file.file_path not in self._removed:
                yield self._entry(ManifestEntryStatus.EXISTING, entry.data_file, entry)

    def _entry(
        self, status: ManifestEntryStatus, data_file: DataFile, earlier: ManifestEntry | None = None
    ) -> ManifestEntry:
        """An entry as the new snapshot sees it: a file keeps the sequence numbers with which it came."""
        came = earlier if earlier and status is ManifestEntryStatus.EXISTING else None
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=came.snapshot_id if came else self.snapshot_id,
            sequence_number=earlier.sequence_number if earlier else None,
            file_sequence_number=earlier.file_sequence_number if earlier else None,
            data_file=data_file,
        )

    def _written(self, entries: Sequence[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(entries[0].data_file.spec_id)) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    @override
    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriterV2:
        return _ManifestWriter(spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression)


class _ManifestWriter(ManifestWriterV2):
    """PyIceberg's writer, but for all entries in one block, compressed together."""

    @override
    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        return _OneBlock(
            output_file=self._output_file,
            file_schema=self._with_partition(self.version),
            record_schema=self._with_partition(DEFAULT_READ_VERSION),
            schema_name="manifest_entry",
            metadata=self._meta,
        )


class _OneBlock(AvroOutputFile[ManifestEntry]):
    """Holds what is written until the end; a manifest is small."""

    _held: list[ManifestEntry]

    @override
    def __enter__(self) -> AvroOutputFile[ManifestEntry]:
        self._held = []
        return super().__enter__()

    @override
    def write_block(self, objects: list[ManifestEntry]) -> None:
        self._held += objects

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            super().write_block(self._held)
        super().__exit__(kind, error, trace)


def _pieces(entries: Iterable[ManifestEntry]) -> Iterator[Sequence[ManifestEntry]]:
    """The entries of one manifest each: none has too many, neighbours stand together."""
    by_spec: dict[int, list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        by_spec[entry.data_file.spec_id].append(entry)
    for of_spec in by_spec.values():
        of_spec.sort(key=lambda entry: _place(entry.data_file))
        count = -(-len(of_spec) // MANIFEST_ENTRIES)
        for number in range(count):
            yield of_spec[len(of_spec) * number // count : len(of_spec) * (number + 1) // count]


def _place(data_file: DataFile) -> tuple[int, str]:
    """Where a file stands among others; -1 as its partition if it does not tell it, as another program's may not."""
    partition = partition_of(data_file)
    return (-1 if partition is None else partition, data_file.file_path)


def _live_count(manifest: ManifestFile) -> int:
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
