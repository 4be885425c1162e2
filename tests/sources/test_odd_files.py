"""Files that hold something else than JSON lines are recognised: read where that is safe, else named."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import InvalidRecord
from keptlog.sources.files import FileSet, Reading
from keptlog.sources.formats import Format

LINE = b'{"key": "a", "value": "\xc3\xa4"}\n'


def read(tmp_path: Path, content: bytes, name: str = "records.jsonl") -> list[bytes | None]:
    path = tmp_path / name
    path.write_bytes(content)
    return [record.value for record in FileSet([str(path)], Reading(0)).records()]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.jsonl", LINE),
        ("packed.jsonl", gzip.compress(LINE)),
        ("packed.jsonl.gz", gzip.compress(LINE)),
        ("plain.jsonl.gz", LINE),
        ("mark.jsonl", b"\xef\xbb\xbf" + LINE),
        ("mark.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + LINE)),
    ],
)
def test_gzip_and_a_byte_order_mark_are_seen_by_their_bytes(tmp_path: Path, name: str, content: bytes) -> None:
    assert read(tmp_path, content + (b"" if content.startswith(b"\x1f") else LINE), name)[0] == b"\xc3\xa4"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINE.decode().encode("utf-16"), "it is UTF-16: write it as UTF-8"),
        (LINE.decode().encode("utf-16-le"), "it is UTF-16"),
        (LINE.decode().encode("utf-16-be"), "it is UTF-16"),
        (b"PAR1\x15\x00", "it is Parquet: say --format parquet"),
        (b"\x28\xb5\x2f\xfd\x00", "it is compressed with zstd: unpack it"),
        (bz2.compress(LINE), "it is compressed with bzip2"),
        (lzma.compress(LINE), "it is compressed with xz"),
        (b"PK\x03\x04rest", "it is a zip archive"),
        (b'{\n  "key": "a",\n  "value": "b"\n}\n', "this one does not end in it: write each in one (jq -c . FILE)"),
        (b'[\n  {"key": "a", "value": "b"}\n]\n', "this one does not end in it"),
        (b'[{"key": "a", "value": "b"}]', "not a list: write its elements as lines (jq -c '.[]' FILE)"),
        (b"key,value\na,b\n", "as in CSV: JSON lines or Parquet are taken"),
        (b"key\tvalue\na\tb\n", "as in CSV"),
        (b'{"key": "a", "value": "1", "value": "2"}', "'value' is there twice, and only one can be meant"),
        (b'{"key": "a", "value": "1", "timestamp": NaN}', "JSON has no NaN"),
        (b'{"key": "a", "value": "cut off', "not JSON: Unterminated string"),
        (b'{"key": "a", "value": ""}{"key": "b", "value": ""}', "write each in its own (jq -c . FILE)"),
        (b'{"id": 1}\t{"name": "Ada"}\n', "if a key stands before its value, write both in one object (kcat -J does)"),
        (b'"a"\tnull\n', "if a key stands before its value"),
        (b'user-7\t{"id": 1, "name": "Ada"}\n', "if a key stands before its value"),
        (b'1f3b-9c\t{"id": 1}\n', "if a key stands before its value"),
        (b"user-7\tnull\n", "if a key stands before its value"),
        (b'CreateTime:1600000000000\tuser-7\t{"id": 1}\n', "if a key stands before its value"),
        (b"CreateTime:1600000000000\tuser-7\tnull\n", "if a key stands before its value"),
        (b'CreateTime:-1\tuser-7\t{"id": 1}\n', "if a key stands before its value"),
        (b'Partition:0\tOffset:5\tuser-7\t{"id": 1}\n', "if a key stands before its value"),
        (b'NO_TIMESTAMP\tuser-7\t{"id": 1}\n', "if a key stands before its value"),
        (b'Partition:a\tAda\t{"id": 1}\n', "if these are columns, as in CSV"),
        (b'1f3b-9c\tAda\t{"id": 1}\n', "if these are columns, as in CSV"),
        (b'7\tAda\t{"id": 1}\n', "if these are columns, as in CSV"),
        (b'"Ada\t{"\n', "not JSON: Invalid control character at at column 5; nothing was appended"),
    ],
)
def test_what_is_no_file_of_lines_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)
    assert str(caught.value).endswith("; nothing was appended")


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    assert read(tmp_path, b"") == []


def test_parquet_has_no_change_events(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1\x15\x00")
    with pytest.raises(InvalidRecord, match="it is Parquet, and change events are read from JSON lines only"):
        list(FileSet([str(tmp_path / "a.parquet")], Reading(0, format=Format.DEBEZIUM)).records())


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_parquet_file_that_was_packed_as_a_whole_is_to_be_unpacked(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(InvalidRecord, match=r"it is no Parquet file \(it is compressed with .*: unpack it"):
        read(tmp_path, compress(b"PAR1"), "a.parquet.gz")
