"""The state that a table format leaves, as the log that a clean would have left: for comparing alone, off the clock.

    rows by key, in no order, tombstones as they came  ->  by offset, tombstones with horizons, none that has expired

So a table is right if its rows are those that a clean keeps, and all that is in them. It has to fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.log.steps import Compact
from keptlog.storage.schema import SCHEMA, US_PER_MS

_SLICE_ROWS = 100_000


def as_cleaned(tables: Iterable[pa.Table], steps: Sequence[Compact]) -> Iterator[pa.Table]:
    """The log of each step, which has a topic-partition for itself, a slice after the other."""
    rows = pa.concat_tables(tables)
    order = pc.sort_indices(rows, [("partition", "ascending"), ("offset", "ascending")])
    partitions = rows["partition"].to_numpy()[order.to_numpy()]
    for step in steps:
        partition = step.topic_partition.partition
        start, end = np.searchsorted(partitions, [partition, partition + 1]).tolist()
        for first in range(start, end, _SLICE_ROWS):
            yield _with_horizons(rows.take(order[first : min(first + _SLICE_ROWS, end)]), step)


def _with_horizons(rows: pa.Table, step: Compact) -> pa.Table:
    kind = SCHEMA.field("delete_horizon").type
    now = pa.scalar(step.now_ms * US_PER_MS, pa.int64()).cast(kind)
    horizon = rows["delete_horizon"].cast(kind)
    rows = rows.filter(pc.fill_null(pc.greater(horizon, now), fill_value=True))
    horizon = rows["delete_horizon"].cast(kind)
    is_new = pc.and_(pc.is_null(rows["value"]), pc.is_null(horizon))
    new = pa.scalar(step.bounds.new_delete_horizon_ms * US_PER_MS, pa.int64()).cast(kind)
    at = rows.schema.get_field_index("delete_horizon")
    return rows.set_column(at, "delete_horizon", pc.if_else(is_new, new, horizon))
