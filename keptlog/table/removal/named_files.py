"""What a journal tells of each file that is about to go, as far as it can be had cheaply while the file is there.

Partition and offsets stand in the manifests; the checksums in the footer, one look at the file's end for each segment.
Afterwards nobody could tell, and a receipt says which bytes are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keptlog.storage.segment_reader import stored_checksums
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.segment_metrics import RecordRange
from keptlog.table.removal.journal import DeletedFile

_SEGMENT = ".parquet"


@dataclass(frozen=True)
class NamedFiles:
    """Looks at each file once, however often it has to be written down."""

    files: TableFiles
    _checksums: dict[str, str | None] = field(default_factory=dict)

    def of(
        self, size_bytes: Mapping[str, int], ranges: Mapping[str, RecordRange] | None = None
    ) -> tuple[DeletedFile, ...]:
        """Paths with their sizes as a journal names them, sorted; ``ranges`` is by path."""
        known = ranges or {}
        named = sorted(size_bytes.items())
        return tuple(_described(path, size, known.get(path), self._checksums_of(path)) for path, size in named)

    def _checksums_of(self, path: str) -> str | None:
        if path not in self._checksums:
            self._checksums[path] = stored_checksums(self.files, path) if path.endswith(_SEGMENT) else None
        return self._checksums[path]


def _described(path: str, size: int, records: RecordRange | None, checksums: str | None) -> DeletedFile:
    if records is None:
        return DeletedFile(path, size, crc32=checksums)
    return DeletedFile(path, size, records.partition, records.first_offset, records.last_offset, checksums)
