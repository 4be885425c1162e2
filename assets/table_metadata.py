"""A topic's table under the names that Dagster's metadata has for tables, so that its pages show it as one."""

from __future__ import annotations

from functools import cache

import dagster as dg

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.numbers import Metadata
from keptlog.storage.schema import SCHEMA
from keptlog.table.namespaces import NAMESPACE

_MEANING = {
    "partition": "Number of the topic-partition. With `offset` it names a record, for good.",
    "offset": "Position in the log, as in Kafka; a clean leaves gaps.",
    "timestamp": "When the record was made or appended, see `timestamp_type`; whole milliseconds.",
    "timestamp_type": "0 is Kafka's CreateTime, 1 is LogAppendTime.",
    "key": "Bytes; text is `CAST(key AS STRING)` in Spark, `decode(key)` in DuckDB. The latest record of a key stays.",
    "value": "Bytes, as `key`. Null is a tombstone: the key is deleted.",
    "headers": "Kafka's headers, never null; a name may come more than once.",
    "delete_horizon": "Of a tombstone that a clean has seen: from this time on it may go. Null otherwise.",
}
"""What somebody needs to know who sees the columns for the first time."""


def table_metadata(topic: AssetTopic) -> Metadata:
    """Where the table is, what it is called, and its columns."""
    return {
        "dagster/table_name": f"{NAMESPACE}.{topic.name}",
        "dagster/uri": topic.location,
        "dagster/storage_kind": "iceberg",
        "dagster/column_schema": _columns(),
    }


@cache
def _columns() -> dg.TableSchemaMetadataValue:
    """The same of all topics."""
    columns = [
        dg.TableColumn(
            field.name,
            str(field.type),
            description=_MEANING[field.name],
            constraints=dg.TableColumnConstraints(nullable=field.nullable),
        )
        for field in SCHEMA
    ]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns))
