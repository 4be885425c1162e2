"""The columns of a topic's table by Iceberg's field ids, for whoever reads files of metadata and needs no schema."""

from __future__ import annotations

PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS, DELETE_HORIZON = range(1, 9)

SPEC_ID = 0
"""Of the only partitioning that a topic's table has, which is by ``partition``."""
PERSONAL = frozenset({KEY, VALUE, HEADERS, 9, 10, 11})
"""What is personal data; no bounds of it are written."""
