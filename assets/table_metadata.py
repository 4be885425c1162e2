"""A topic's table under the names that Dagster's metadata has for tables, so that its pages show it as one."""

from __future__ import annotations

from functools import cache

import dagster as dg

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.numbers import Metadata
from keptlog.storage.schema import SCHEMA
from keptlog.table.namespaces import NAMESPACE


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
        dg.TableColumn(field.name, str(field.type), constraints=dg.TableColumnConstraints(nullable=field.nullable))
        for field in SCHEMA
    ]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns))
