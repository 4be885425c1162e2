"""Looks for bytes, as somebody would who has the disks and much time: whoever wrote a file, and whatever it is.

    as it is            every file, every member of what is packed, and the names of all files
    in other clothes    hex, upper and lower; base64, wherever in it the bytes begin
    inside of Parquet   every column, decompressed
    inside of Arrow     every column, decompressed

It knows nothing of keptlog. Needles are of 8 bytes and more: shorter ones occur anywhere by chance.
"""

from __future__ import annotations

import base64
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.table.buckets import ABucket

_LEAST_BYTES = 8


def forms_of(needle: bytes) -> set[bytes]:
    """The ways in which bytes may stand somewhere."""
    assert len(needle) >= _LEAST_BYTES, f"{needle!r} is too short to be looked for"
    hexed = needle.hex().encode()
    forms = {needle, hexed, hexed.upper(), repr(needle)[2:-1].encode()}
    for before in range(3):
        # What stands for the bytes alone, without what is shared with those before and after.
        encoded = base64.b64encode(bytes(before) + needle)
        first, last = (8 * before + 5) // 6, 8 * (before + len(needle)) // 6
        forms |= {encoded[first:last], encoded[first:last].translate(bytes.maketrans(b"+/", b"-_"))}
    return forms


def contents_in(name: str, content: bytes) -> Iterator[bytes]:
    """Of a file its name, its bytes, and what they hold packed."""
    yield name.encode(errors="surrogateescape")
    yield content
    if content.startswith(b"PAR1"):
        yield from _columns_of_parquet(content)
    elif content.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        yield from _columns_of_arrow(content)
    elif content.startswith(b"\x1f\x8b"):
        yield gzip.decompress(content)
    elif content.startswith(b"Obj\x01"):
        yield from _blocks_of_avro(content)


def is_in(name: str, content: bytes, forms: Iterable[bytes]) -> bool:
    """Whether one of these forms is in a file."""
    wanted = list(forms)
    return any(form in each for each in contents_in(name, content) for form in wanted)


def files_with(roots: Sequence[Path], needles: Sequence[bytes]) -> list[Path]:
    """The files below some folders that hold one of the needles, in content or name, in whatever form."""
    forms = set().union(*map(forms_of, needles))
    files = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]
    return [path for path in files if is_in(str(path), path.read_bytes(), forms)]


def versions_with(bucket: ABucket, needles: Sequence[bytes]) -> list[tuple[str, str]]:
    """Path and version id of all that a bucket has of any object, current or not, and that holds one of the needles."""
    forms = set().union(*map(forms_of, needles))
    found = []
    for page in bucket.client.get_paginator("list_object_versions").paginate(Bucket=bucket.name):
        for each in page.get("Versions", ()):
            version = {"Bucket": bucket.name, "Key": each["Key"], "VersionId": each["VersionId"]}
            if is_in(each["Key"], bucket.client.get_object(**version)["Body"].read(), forms):
                found.append((f"s3://{bucket.name}/{each['Key']}", each["VersionId"]))
    return found


def _columns_of_parquet(content: bytes) -> Iterator[bytes]:
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        for number in range(file.num_row_groups):
            yield from _bytes_of(file.read_row_group(number))
        yield repr(file.metadata.metadata).encode()
    except pa.ArrowException:
        return  # broken off while it was written: its plain bytes are all there is


def _columns_of_arrow(content: bytes) -> Iterator[bytes]:
    source = pa.BufferReader(content)
    try:
        if content.startswith(b"ARROW1"):
            yield from _bytes_of(pa.ipc.open_file(source).read_all())
        while content.startswith(b"\xff") and source.tell() < len(content):
            yield from _bytes_of(pa.ipc.open_stream(source).read_all())
    except pa.ArrowException:
        return


def _bytes_of(table: pa.Table) -> Iterator[bytes]:
    """Every buffer of every column."""
    for column in table.columns:
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None:
                    yield buffer.to_pybytes()


def _blocks_of_avro(content: bytes) -> Iterator[bytes]:
    """Whatever begins anywhere as a deflated block."""
    marker = content[-16:]
    for part in content.split(marker)[1:-1]:
        for start in range(min(len(part), 20)):
            try:
                yield zlib.decompressobj(-15).decompress(part[start:])
            except zlib.error:
                continue
