"""The Iceberg side of a topic's table: schema, partitioning, order, and the properties that keep it safe.

The field ids are those of ``keptlog.storage.schema``, which are those that ``create_table`` assigns. They must be
equal, because readers find a column by its id; a table that got others is refused when it is created.

Two properties are chosen against PyIceberg's defaults for safety:

- ``commit.retry.num-retries=0``: PyIceberg would repeat a refused commit by itself on the newer snapshot, with offsets
  and state properties that were computed from the older one. Without that, a commit that adds a snapshot lands only on
  the snapshot it was built from, so that each is a compare-and-swap over files and properties; the retry is ours.
- metrics ``counts``: the default copies the first 16 bytes of keys and values, personal data, into manifests.
"""

from __future__ import annotations

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from keptlog.table.metadata.columns import (
    DELETE_HORIZON,
    HEADERS,
    KEY,
    OFFSET,
    PARTITION,
    SPEC_ID,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)

_HEADER = StructType(
    NestedField(10, "key", StringType(), required=True),
    NestedField(11, "value", BinaryType(), required=False),
)

TABLE_SCHEMA = Schema(
    NestedField(PARTITION, "partition", IntegerType(), required=True),
    NestedField(OFFSET, "offset", LongType(), required=True),
    NestedField(TIMESTAMP, "timestamp", TimestamptzType(), required=True),
    NestedField(TIMESTAMP_TYPE, "timestamp_type", IntegerType(), required=True),
    NestedField(KEY, "key", BinaryType(), required=False),
    NestedField(VALUE, "value", BinaryType(), required=False),
    NestedField(HEADERS, "headers", ListType(9, _HEADER, element_required=True), required=True),
    NestedField(DELETE_HORIZON, "delete_horizon", TimestamptzType(), required=False),
)

PARTITION_SPEC = PartitionSpec(PartitionField(PARTITION, 1000, IdentityTransform(), "partition"), spec_id=SPEC_ID)
SORT_ORDER = SortOrder(SortField(OFFSET, IdentityTransform()))

GENERAL_PROPERTIES = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
    "write.delete.isolation-level": "snapshot",
    "write.update.isolation-level": "snapshot",
    "write.metadata.metrics.default": "counts",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
}
"""Of every table of keptlog's, whatever its columns: a REST catalog refuses properties that name others."""
TABLE_PROPERTIES = GENERAL_PROPERTIES | {
    "write.metadata.metrics.column.partition": "full",
    "write.metadata.metrics.column.offset": "full",
    "write.metadata.metrics.column.timestamp": "full",
    "write.metadata.metrics.column.delete_horizon": "full",
    "schema.name-mapping.default": TABLE_SCHEMA.name_mapping.model_dump_json(),
}
"""Of a topic's."""
