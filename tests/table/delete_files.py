"""A delete file in a table, as engines that merge on read leave it; PyIceberg writes none itself."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record

from tests.table.foreign import table_of


class _DeletesWriter(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _AddsDeletes(_FastAppendFiles):
    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        table = self._transaction.table_metadata
        return _DeletesWriter(spec, table.schema(), self.new_manifest_output(), self._snapshot_id, "deflate")


def delete_by_position(home: Path, topic: str, branch: str = MAIN_BRANCH) -> str:
    """Commit a delete file for a row of partition 0; gives its path."""
    table = table_of(home, topic)
    path = f"{table.location()}/data/partition=0/{uuid4()}-deletes.parquet"
    Path(path.removeprefix("file://")).write_bytes(b"PAR1")
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(0),
        record_count=1,
        file_size_in_bytes=4,
    )
    file.spec_id = table.spec().spec_id
    with table.transaction() as transaction:
        producer = _AddsDeletes(Operation.DELETE, transaction, table.io, branch=branch)
        producer.append_data_file(file)
        producer.commit()
    return path
