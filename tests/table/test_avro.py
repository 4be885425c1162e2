"""Manifests are read here as PyIceberg reads them; what is no whole file of Avro is not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from keptlog.table.io.avro import header_of, records_in

_INNER = StructType(NestedField(20, "x", LongType(), required=True), NestedField(21, "y", StringType(), required=False))
SCHEMA = Schema(
    NestedField(1, "bool", BooleanType(), required=True),
    NestedField(2, "int", IntegerType(), required=True),
    NestedField(3, "long", LongType(), required=True),
    NestedField(4, "float", FloatType(), required=True),
    NestedField(5, "double", DoubleType(), required=True),
    NestedField(6, "bytes", BinaryType(), required=True),
    NestedField(7, "text", StringType(), required=False),
    NestedField(8, "fixed", FixedType(3), required=True),
    NestedField(9, "inner", _INNER, required=False),
    NestedField(10, "list", ListType(30, LongType(), element_required=True), required=True),
    NestedField(11, "by_number", MapType(40, IntegerType(), 41, BinaryType(), value_required=True), required=False),
    NestedField(12, "by_text", MapType(50, StringType(), 51, LongType(), value_required=True), required=True),
)
ROWS: list[tuple[Any, ...]] = [
    (True, -1, 2**63 - 1, 0.5, -0.25, b"\x00\xff", "é", b"abc", (7, None), [1, -(2**63)], {-3: b"x", 4: b""}, {"a": 1}),
    (False, 64, -(2**31), 0.0, 1e300, b"", None, b"\x00\x00\x00", None, [], None, {}),
]


def written(path: Path, rows: list[tuple[Any, ...]], codec: str = "null") -> bytes:
    output = PyArrowFileIO().new_output(str(path))
    with AvroOutputFile[Record](output, SCHEMA, "example", metadata={"avro.codec": codec}) as file:
        file.write_block(
            [Record(*(Record(*each) if isinstance(each, tuple) else each for each in row)) for row in rows]
        )
    return path.read_bytes()


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_each_kind_of_value_is_read_as_it_was_written(tmp_path: Path, codec: str) -> None:
    inner = [{20: 7, 21: None}, None]
    wanted = [dict(enumerate((*row[:8], inside, *row[9:]), 1)) for row, inside in zip(ROWS, inner, strict=True)]
    assert list(records_in(written(tmp_path / "file", ROWS, codec))) == wanted


def test_what_is_cut_off_anywhere_is_not_read(tmp_path: Path) -> None:
    content = written(tmp_path / "file", ROWS)
    header_bytes = content.index(content[-16:]) + 16
    for length in range(len(content)):
        if length == header_bytes:
            continue  # a file without a block: its marker is where it should be, and checksums tell
        with pytest.raises((EOFError, ValueError, LookupError)):
            list(records_in(content[:length]))


def test_a_block_that_does_not_end_with_the_marker_is_not_read(tmp_path: Path) -> None:
    content = written(tmp_path / "file", ROWS)
    with pytest.raises(ValueError, match="marker"):
        list(records_in(content[:-1] + bytes([content[-1] ^ 1])))


def test_a_codec_that_is_not_known_is_left_to_others(tmp_path: Path) -> None:
    content = written(tmp_path / "file", ROWS, "deflate")
    with pytest.raises(ValueError, match="codec"):
        list(records_in(content.replace(b"deflate", b"unknown", 1)))


def test_the_header_says_what_blocks_end_with_and_what_the_writer_told(tmp_path: Path) -> None:
    content = written(tmp_path / "file", ROWS)
    header = header_of(content)
    assert header is not None
    assert header.marker == content[-16:]
    assert header.meta["avro.codec"] in {b"null", b"deflate"}
    assert header_of(content[:100]) is None
    assert header_of(b"PAR1") is None
