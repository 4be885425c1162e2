"""Values as views: which of them are kept is settled without copying one.

    read      [ value 1 | value 2 | value 3 ]             one buffer, as it was decoded
    views     ( 1 )  ( 2 )  ( 3 )                         16 bytes each: length, first bytes, place in the buffer
    kept      ( 1 )         ( 3 )                         the buffer stays as it is; the Parquet writer copies from it

A filter that copies the values costs a quarter of what writing them does. The price of views is memory: as long as one
of them waits to be written, so does the whole buffer. So where less than half of the records are kept, what is kept is
copied.

Arrow can't filter a column of views yet. It filters columns of 16 bytes, and that is what views are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from keptlog.storage.schema import SCHEMA

_COLUMN = SCHEMA.get_field_index("value")
_VIEW_BYTES = 16
VIEWED_SCHEMA = SCHEMA.set(_COLUMN, SCHEMA.field(_COLUMN).with_type(pa.binary_view()))
"""``SCHEMA``, with values as views. In a file there is no difference."""


def with_views(table: pa.Table) -> pa.Table:
    """Records of ``SCHEMA``, or of ``VIEWED_SCHEMA``, as records of ``VIEWED_SCHEMA``; no value is copied."""
    if table.schema.field(_COLUMN).type == pa.binary_view():
        return table
    return table.set_column(_COLUMN, VIEWED_SCHEMA.field(_COLUMN), table[_COLUMN].cast(pa.binary_view()))


def kept(table: pa.Table, mask: pa.ChunkedArray, count: int) -> pa.Table:
    """The ``count`` records of a table of ``SCHEMA``, or of ``VIEWED_SCHEMA``, for which ``mask`` is true.

    ``mask`` is bool without nulls, one element a record. What comes back is of ``VIEWED_SCHEMA``, and values are viewed
    where they are if at least half are kept.
    """
    if table[_COLUMN].num_chunks != 1:
        # Views name a place in the buffers of their own chunk: those of another chunk would name other places.
        return with_views(with_values(table).filter(mask))
    chunk = table[_COLUMN].chunk(0).cast(pa.binary_view())
    validity, views, *data = chunk.buffers()
    # Buffers begin where their array would without an offset, so the offset goes along with them.
    views_as_bytes = pa.Array.from_buffers(pa.binary(_VIEW_BYTES), len(chunk), [validity, views], offset=chunk.offset)
    filtered = table.set_column(_COLUMN, "value", views_as_bytes).filter(mask)
    chunks = [_as_views(chunk, data) for chunk in filtered[_COLUMN].chunks]
    viewed = filtered.set_column(_COLUMN, VIEWED_SCHEMA.field(_COLUMN), pa.chunked_array(chunks, pa.binary_view()))
    return viewed if count * 2 >= table.num_rows else with_views(with_values(viewed))


def with_values(table: pa.Table) -> pa.Table:
    """Records of ``VIEWED_SCHEMA``, or of ``SCHEMA``, as records of ``SCHEMA``: what was viewed is copied."""
    if table.schema.field(_COLUMN).type == pa.binary():
        return table
    return table.set_column(_COLUMN, SCHEMA.field(_COLUMN), table[_COLUMN].cast(pa.binary()))


def bytes_of(table: pa.Table) -> int:
    """Bytes of the records of a table of ``VIEWED_SCHEMA``: of the values those that are viewed, not their buffers.

    Of the other columns those of their buffers, or of the slice of them that this table is.
    """
    values = sum(_viewed_bytes(chunk) for chunk in table[_COLUMN].chunks)
    return int(values + table.remove_column(_COLUMN).nbytes)


def _as_views(chunk: pa.Array, data: list[pa.Buffer | None]) -> pa.Array:
    """Elements of 16 bytes as the views that they are, into the buffers ``data``; a null stays null."""
    validity, views = chunk.buffers()
    return pa.Array.from_buffers(pa.binary_view(), len(chunk), [validity, views, *data], offset=chunk.offset)


def _viewed_bytes(chunk: pa.Array) -> int:
    """Bytes of the values that are viewed, and of the views.

    A view is four int32, and the first is the length, whether the value lies in the view itself or in a buffer; that of
    a null is 0:

        length | value, up to 12 bytes
        length | first 4 bytes | number of the buffer | place in it
    """
    views = np.frombuffer(chunk.buffers()[1], np.int32).reshape(-1, _VIEW_BYTES // 4)
    lengths = views[chunk.offset : chunk.offset + len(chunk), 0]
    return int(lengths.sum(dtype=np.int64)) + len(chunk) * _VIEW_BYTES
