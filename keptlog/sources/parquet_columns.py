"""What columns of many types are as the fields of records: types are checked once for a file, rows one batch at a time.

The result is a batch of ``ROWS``, with null where a row says nothing of its partition or offset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import InvalidRecord
from keptlog.log.record import LARGEST_TIMESTAMP_MS
from keptlog.sources.row_fields import ROW_FIELDS
from keptlog.storage.schema import SCHEMA

_HEADERS = SCHEMA.field("headers").type
_TYPES = (pa.binary(), pa.binary(), pa.int64(), _HEADERS, pa.int64(), pa.int64())
ROWS = pa.schema(list(zip(ROW_FIELDS, _TYPES, strict=True)))
"""``timestamp`` is in milliseconds; ``headers`` are never null."""

_PER_MS = {"ms": 1, "us": 1000, "ns": 1_000_000}
"""The units of time that Parquet has."""

_OF_SEVERAL_FORMS = {"arrow.uuid", "arrow.bool8"}
"""A UUID is sixteen bytes, and a text too; a truth value is a number, and a word."""

Longs = npt.NDArray[np.int64]
_LONG = np.iinfo(np.int64)
_LARGEST = int(_LONG.max) - 1
"""The largest offset: the log ends behind it, and that is a long too."""


class BadRow(Exception):
    """A row that is no record; ``index`` is its place in the batch."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index, self.why = index, why


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file that holds a field of records."""

    name: str
    kind: pa.DataType

    @property
    def what(self) -> str:
        """For a message."""
        return f"column {self.name!r} is {self.kind}"


def columns_for(schema: pa.Schema, named: Mapping[str, str]) -> dict[str, Column]:
    """Field to column, for the fields that the file has.

    Raises:
        InvalidRecord: a column that is needed or named is not there, or its type holds no such field.
    """
    has = f"it has the columns {', '.join(schema.names)}" if schema.names else "it has no columns"
    columns: dict[str, Column] = {}
    for field in ROWS.names:
        name = named.get(field, field if field != "offset" else "")
        count = schema.names.count(name) if name else 0  # a column without a name is none that was asked for
        if count > 1:
            raise InvalidRecord(f"it has several columns {name!r}: write it with one of that name")
        if count:
            columns[field] = Column(name, schema.field(name).type)
            wanted = _WANTED[field](columns[field].kind)
            if wanted:
                hint = "" if field in {"key", "value", "offset"} else f" (--column {field}= leaves it out)"
                raise InvalidRecord(f"{columns[field].what}, and {field} must be {wanted}{hint}")
        elif named.get(field) or field == "value" or (field == "key" and field not in named):
            none = "" if field == "value" else f", or --column {field}= for none"
            raise InvalidRecord(
                f"it has no column {(name or field)!r} for {field}: name it with --column {field}=NAME{none}; {has}"
            )
    return columns


def to_rows(raw: pa.RecordBatch, columns: Mapping[str, Column], now_ms: int) -> pa.RecordBatch:
    """A batch of a file as a batch of ``ROWS``.

    Raises:
        BadRow: the first row of which one field is bad; another field may be bad in an earlier one.
    """
    given = {field: _plain(raw.column(column.name)) for field, column in columns.items()}
    count = raw.num_rows
    return pa.RecordBatch.from_arrays(
        [
            _bytes(given["key"]) if "key" in given else pa.nulls(count, pa.binary()),
            _bytes(given["value"]),
            _times(given["timestamp"], now_ms) if "timestamp" in given else pa.repeat(pa.scalar(now_ms), count),
            _headers(given["headers"]) if "headers" in given else _no_headers(count),
            _numbers(given["partition"], "partition") if "partition" in given else pa.nulls(count, pa.int64()),
            _numbers(given["offset"], "offset", is_needed=True) if "offset" in given else pa.nulls(count, pa.int64()),
        ],
        schema=ROWS,
    )


def _plain(column: pa.Array) -> pa.Array:
    """Without what only says how the values are kept."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _plain_kind(kind: pa.DataType) -> pa.DataType:
    """As ``_plain``; a type that says more than how its values are kept stays, so that none takes it for bytes."""
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name not in _OF_SEVERAL_FORMS:
        kind = kind.storage_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return _is_text(kind) or bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _wants_bytes(kind: pa.DataType) -> str:
    plain = _plain_kind(kind)
    if _is_bytes(plain) or pa.types.is_integer(plain) or pa.types.is_null(plain):
        return ""
    form = "JSON (to_json)" if pa.types.is_nested(plain) else "text or bytes"
    return f"text, bytes or a whole number: write the file with that column as {form}, in the form that readers expect"


def _wants_time(kind: pa.DataType) -> str:
    plain = _plain_kind(kind)
    is_time = pa.types.is_timestamp(plain) or pa.types.is_integer(plain) or pa.types.is_null(plain)
    return "" if is_time else "a timestamp, or whole milliseconds since 1970: write the file with it cast to one"


def _wants_number(kind: pa.DataType) -> str:
    plain = _plain_kind(kind)
    is_number = pa.types.is_integer(plain) or pa.types.is_null(plain)
    return "" if is_number else "a whole number: name another column"


def _wants_headers(kind: pa.DataType) -> str:
    form = "a map of text to bytes, or a list of structs of key (or name) and value"
    pairs = _pair_kinds(_plain_kind(kind))
    if pairs is None:
        return "" if pa.types.is_null(kind) else form
    name, value = (_plain_kind(each) for each in pairs)
    is_value = _is_bytes(value) or pa.types.is_null(value)
    return "" if _is_text(name) and is_value else form


_WANTED: dict[str, Callable[[pa.DataType], str]] = {
    "key": _wants_bytes,
    "value": _wants_bytes,
    "timestamp": _wants_time,
    "headers": _wants_headers,
    "partition": _wants_number,
    "offset": _wants_number,
}
"""What a column for each field must hold, if this type does not."""


def _pair_kinds(kind: pa.DataType) -> tuple[pa.DataType, pa.DataType] | None:
    """The types of name and value of a column of headers; null if it is none."""
    if pa.types.is_map(kind):
        return kind.key_type, kind.item_type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return None
    fields = {each.name: each.type for each in kind.value_type}
    name = fields.get("key", fields.get("name"))
    return (name, fields["value"]) if name is not None and "value" in fields else None


def _bytes(column: pa.Array) -> pa.Array:
    return (column.cast(pa.string()) if pa.types.is_integer(column.type) else column).cast(pa.binary())


def _times(column: pa.Array, now_ms: int) -> pa.Array:
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    numbers = _longs(column)
    is_time = pa.types.is_timestamp(column.type)
    times_ms = numbers // _PER_MS[column.type.unit if is_time else "ms"]
    # Only as a number -1 is none: as a time it is the last moment of 1969.
    bad = np.flatnonzero(~is_null & ((times_ms < (0 if is_time else -1)) | (times_ms > LARGEST_TIMESTAMP_MS)))
    if len(bad):
        why = f"timestamp {_as_text(column, bad[0])} is no time in ms between 1970 and 9999, nor -1 for none"
        raise BadRow(int(bad[0]), why)
    return pa.array(np.where(is_null, now_ms, times_ms))


def _numbers(column: pa.Array, field: str, *, is_needed: bool = False) -> pa.Array:
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    numbers = _longs(column)
    is_wrong = (numbers < 0) | (numbers > _LARGEST)
    bad = np.flatnonzero(is_null if is_needed and is_null.any() else ~is_null & is_wrong)
    if len(bad):
        found = column[int(bad[0])].as_py()
        raise BadRow(
            int(bad[0]),
            f"{field} {'is null' if found is None else found}: it must be 0 or more, and at most {_LARGEST}",
        )
    return pa.array(numbers, mask=is_null)


def _longs(column: pa.Array) -> Longs:
    """Whole numbers, 0 for null; those beyond the range become the least there is."""
    if pa.types.is_uint64(column.type):
        unsigned = column.fill_null(0).to_numpy()
        return np.where(unsigned > _LONG.max, _LONG.min, unsigned.astype(np.int64))
    numbers: Longs = column.cast(pa.int64(), safe=False).fill_null(0).to_numpy()
    return numbers


def _as_text(column: pa.Array, index: int) -> str:
    return str(column.slice(index, 1).cast(pa.string())[0].as_py())


def _no_headers(count: int) -> pa.Array:
    return _list_of(np.zeros(count, np.int64), pa.array([], pa.string()), pa.array([], pa.binary()))


def _headers(column: pa.Array) -> pa.Array:
    if pa.types.is_null(column.type):
        return _no_headers(len(column))
    if pa.types.is_map(column.type):
        pair = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
        column = column.cast(pa.list_(pair))
    counts: Longs = pc.list_value_length(column).fill_null(0).cast(pa.int64()).to_numpy()
    pairs = column.flatten()
    named = "key" if pairs.type.get_field_index("key") >= 0 else "name"
    ends = np.cumsum(counts)
    names = _names(_plain(pc.struct_field(pairs, named)), ends)
    return _list_of(counts, names, _bytes(_plain(pc.struct_field(pairs, "value"))))


def _names(names: pa.Array, ends: Longs) -> pa.Array:
    """Names of headers, in text; ``ends`` are where each row's headers end among all."""
    if names.null_count:
        first = int(np.flatnonzero(names.is_null().to_numpy(zero_copy_only=False))[0])
        raise BadRow(int(np.searchsorted(ends, first, side="right")), "a header has no name")
    raw = names.cast(pa.binary())
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        first = next(index for index, name in enumerate(raw.to_pylist()) if not _is_utf8(name))
        row = int(np.searchsorted(ends, first, side="right"))
        raise BadRow(row, "a header's name is not UTF-8") from None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _list_of(counts: Longs, names: pa.Array, values: pa.Array) -> pa.Array:
    starts = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=starts[1:])
    pairs = pa.StructArray.from_arrays([names, values], fields=list(_HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(starts), pairs, type=_HEADERS)
