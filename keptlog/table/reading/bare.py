"""A table as its files say, read without PyIceberg: for commands that look and go, whose time is what they import.

Iceberg's files are JSON and Avro. What looking needs of them is little, and reading it takes a millisecond; to import
what reads all of Iceberg takes more than half a second. So a bare table is as much of PyIceberg's ``Table`` as those
need who only look, under the same names: they take either, and need not know which one it is. Nobody can commit to it.

    who changes something       PyIceberg's Table, through the catalog
    who looks                   a bare table, if it is like all that keptlog makes, on a disk of this machine
                                PyIceberg's Table otherwise

Whatever is unusual is left to PyIceberg: another version of the format, a file that is not there, or not as it was
written. So there is one place that says what is wrong with a table, and it says the same to everybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keptlog.errors import KeptlogError
from keptlog.foreign_json import json_value
from keptlog.regular_file import read_file
from keptlog.table.io.avro import records_in
from keptlog.table.io.files import local_path
from keptlog.table.io.metadata_checksums import has_checksum, without_checksum
from keptlog.table.metadata.format import format_of
from keptlog.table.metadata.plain_location import plain_location

if TYPE_CHECKING:
    from pyiceberg.io import FileIO, InputFile
    from pyiceberg.manifest import ManifestEntry, ManifestFile
    from pyiceberg.table import Table

_FORMAT = 2
"""Of Iceberg's: that of all tables that keptlog makes."""
_DELETED = 2
"""The status of an entry of a file that was removed."""


class _Files:
    """As much of PyIceberg's access to files as it takes to read manifests; nothing is imported until it does."""

    def new_input(self, location: str) -> InputFile:
        """A file to be read."""
        from keptlog.table.io.file_io import DurableFileIO  # noqa: PLC0415  # only once something is wrong

        return DurableFileIO().new_input(location)


@dataclass(frozen=True, slots=True)
class _Named:
    """A word that PyIceberg has an enumeration for."""

    value: str


@dataclass(frozen=True, slots=True)
class _Summary:
    operation: _Named
    additional_properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Reference:
    snapshot_id: int
    snapshot_ref_type: _Named
    max_ref_age_ms: int | None


@dataclass(frozen=True, slots=True)
class _DataFile:
    content: int
    spec_id: int
    file_path: str
    file_format: str
    partition: Sequence[Any]
    record_count: int
    file_size_in_bytes: int
    null_value_counts: Mapping[int, int] | None
    lower_bounds: Mapping[int, bytes] | None
    upper_bounds: Mapping[int, bytes] | None


@dataclass(frozen=True, slots=True)
class _Entry:
    status: int
    snapshot_id: int | None
    data_file: _DataFile


@dataclass(frozen=True, slots=True)
class _Manifest:
    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    added_snapshot_id: int | None
    added_files_count: int | None
    existing_files_count: int | None
    snapshot: _Snapshot

    def has_added_files(self) -> bool:
        return self.added_files_count is None or self.added_files_count > 0

    def has_existing_files(self) -> bool:
        return self.existing_files_count is None or self.existing_files_count > 0

    def fetch_manifest_entry(
        self,
        io: _Files,
        discard_deleted: bool = True,  # noqa: FBT001, FBT002  # PyIceberg's signature
    ) -> Sequence[_Entry | ManifestEntry]:
        """What it says of files."""
        try:
            entries = [_entry(each, self.partition_spec_id) for each in records_in(_content(self.manifest_path))]
        except Exception:  # noqa: BLE001  # what is wrong, PyIceberg says
            (theirs,) = (each for each in self.snapshot.theirs(io) if each.manifest_path == self.manifest_path)
            return theirs.fetch_manifest_entry(_theirs(io), discard_deleted)
        return [each for each in entries if not discard_deleted or each.status != _DELETED]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int | None
    timestamp_ms: int
    manifest_list: str
    summary: _Summary | None

    def manifests(self, io: _Files) -> Sequence[_Manifest | ManifestFile]:
        """Those that it is made of."""
        try:
            return [_manifest(each, self) for each in records_in(_content(self.manifest_list))]
        except Exception:  # noqa: BLE001  # what is wrong, PyIceberg says
            return self.theirs(io)

    def theirs(self, io: _Files) -> list[ManifestFile]:
        """The same, read by PyIceberg."""
        from pyiceberg.table.snapshots import Snapshot  # noqa: PLC0415  # only once something is wrong

        stored: Any = {"snapshot-id": self.snapshot_id, "timestamp-ms": 0, "manifest-list": self.manifest_list}
        return Snapshot(**stored).manifests(_theirs(io))


@dataclass(frozen=True, slots=True)
class _StatisticsFile:
    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int


@dataclass(frozen=True, slots=True)
class _LogEntry:
    metadata_file: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class _SnapshotLogEntry:
    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class _Metadata:
    table_uuid: str
    location: str
    properties: Mapping[str, str]
    last_updated_ms: int
    last_sequence_number: int
    current_snapshot_id: int | None
    snapshots: Sequence[_Snapshot]
    refs: Mapping[str, _Reference]
    snapshot_log: Sequence[_SnapshotLogEntry]
    metadata_log: Sequence[_LogEntry]
    statistics: Sequence[_StatisticsFile]
    partition_statistics: Sequence[_StatisticsFile]


@dataclass(frozen=True, slots=True)
class BareTable:
    """What a metadata file says, under the names of PyIceberg's ``Table``."""

    identifier: tuple[str, ...]
    metadata: _Metadata
    metadata_location: str
    io: _Files

    def name(self) -> tuple[str, ...]:
        return self.identifier

    def location(self) -> str:
        return self.metadata.location

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.properties

    @property
    def last_sequence_number(self) -> int:
        return self.metadata.last_sequence_number

    def current_snapshot(self) -> _Snapshot | None:
        current = self.metadata.current_snapshot_id
        return next((each for each in self.metadata.snapshots if each.snapshot_id == current), None)


def bare_table(identifier: tuple[str, ...], metadata_location: str) -> BareTable | None:
    """The table whose metadata lies there; null if PyIceberg is to be asked."""
    if local_path(metadata_location) is None or not has_checksum(metadata_location):
        return None
    try:
        stored = json_value(_content(metadata_location))
        if not _is_usual(stored):
            return None
        table = BareTable(identifier, _metadata(stored), metadata_location, _Files())
        format_of(identifier[-1], table.properties)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, KeptlogError):
        return None
    return table


def _is_usual(stored: Mapping[str, Any]) -> bool:
    """Whether it is a table as keptlog makes them; that it is whole is asked as PyIceberg asks it."""
    schemas = {each["schema-id"] for each in stored["schemas"]}
    specs = {each["spec-id"] for each in stored["partition-specs"]}
    orders = {each["order-id"] for each in stored["sort-orders"]}
    main = (stored.get("refs") or {}).get("main")
    return (
        stored["format-version"] == _FORMAT
        # Another program has changed what has another number (``lineage.require_columns``).
        and stored["current-schema-id"] == 0 in schemas
        and stored["default-spec-id"] == 0 in specs
        and stored["default-sort-order-id"] in orders | {0}
        and (main is None or main["snapshot-id"] == stored["current-snapshot-id"])
    )


def as_table(table: BareTable) -> Table:
    """The same, for those who look at either kind: they take no more of it than is there."""
    either: Any = table
    found: Table = either
    return found


def _theirs(files: _Files) -> FileIO:
    either: Any = files
    found: FileIO = either
    return found


def _content(location: str) -> bytes:
    """A file of a table's, whole, and as it was written."""
    return without_checksum(location, read_file(Path(local_path(location) or "")))


def _metadata(stored: Mapping[str, Any]) -> _Metadata:
    current = stored.get("current-snapshot-id")
    return _Metadata(
        table_uuid=_text(stored["table-uuid"]),
        location=plain_location(_text(stored["location"])),
        properties={_text(name): _text(value) for name, value in stored.get("properties", {}).items()},
        last_updated_ms=_number(stored["last-updated-ms"]),
        last_sequence_number=_number(stored["last-sequence-number"]),
        current_snapshot_id=None if current in {None, -1} else _number(current),
        snapshots=[_snapshot(each) for each in stored.get("snapshots") or ()],
        refs={name: _reference(each) for name, each in (stored.get("refs") or {}).items()},
        snapshot_log=[_snapshot_log_entry(each) for each in stored.get("snapshot-log") or ()],
        metadata_log=[_log_entry(each) for each in stored.get("metadata-log") or ()],
        statistics=[_statistics(each) for each in stored.get("statistics") or ()],
        partition_statistics=[_statistics(each) for each in stored.get("partition-statistics") or ()],
    )


def _snapshot(stored: Mapping[str, Any]) -> _Snapshot:
    summary = stored.get("summary")
    parent = stored.get("parent-snapshot-id")
    return _Snapshot(
        snapshot_id=_number(stored["snapshot-id"]),
        parent_snapshot_id=None if parent is None else _number(parent),
        sequence_number=_number(stored["sequence-number"]),
        timestamp_ms=_number(stored["timestamp-ms"]),
        manifest_list=_text(stored["manifest-list"]),
        summary=None if summary is None else _summary(summary),
    )


def _summary(stored: Mapping[str, Any]) -> _Summary:
    properties = {name: _text(value) for name, value in stored.items()}
    return _Summary(_Named(properties.pop("operation")), properties)


def _reference(stored: Mapping[str, Any]) -> _Reference:
    max_age_ms = stored.get("max-ref-age-ms")
    return _Reference(
        snapshot_id=_number(stored["snapshot-id"]),
        snapshot_ref_type=_Named(_text(stored["type"])),
        max_ref_age_ms=None if max_age_ms is None else _number(max_age_ms),
    )


def _log_entry(stored: Mapping[str, Any]) -> _LogEntry:
    return _LogEntry(_text(stored["metadata-file"]), _number(stored["timestamp-ms"]))


def _snapshot_log_entry(stored: Mapping[str, Any]) -> _SnapshotLogEntry:
    return _SnapshotLogEntry(_number(stored["snapshot-id"]), _number(stored["timestamp-ms"]))


def _statistics(stored: Mapping[str, Any]) -> _StatisticsFile:
    size_bytes = _number(stored["file-size-in-bytes"])
    return _StatisticsFile(_number(stored["snapshot-id"]), _text(stored["statistics-path"]), size_bytes)


def _manifest(stored: Mapping[int, Any], snapshot: _Snapshot) -> _Manifest:
    """By Iceberg's numbers of the fields."""
    return _Manifest(
        manifest_path=stored[500],
        manifest_length=stored[501],
        partition_spec_id=_number(stored[502]),
        content=stored.get(517, 0),
        added_snapshot_id=stored[503],
        added_files_count=stored.get(504),
        existing_files_count=stored.get(505),
        snapshot=snapshot,
    )


def _entry(stored: Mapping[int, Any], spec_id: int) -> _Entry:
    """By which spec a file is partitioned, its manifest says: its partition need not be that of a topic."""
    file = stored[2]
    data_file = _DataFile(
        content=file.get(134, 0),
        spec_id=spec_id,
        file_path=file[100],
        file_format=_text(file[101]),
        partition=list(file[102].values()),
        record_count=file[103],
        file_size_in_bytes=file[104],
        null_value_counts=file.get(110),
        lower_bounds=file.get(125),
        upper_bounds=file.get(128),
    )
    return _Entry(stored[0], stored.get(1), data_file)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value
