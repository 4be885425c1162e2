"""Thousands of topics in seconds: one is made as real commits make it, the others are copies of its files.

    first    shop.topic-0000   metadata  <- manifest list <- manifest     made by commits
    copy     shop.topic-0817   the same, with its own name and id in place of the first one's

Names are equally long, so only the blocks of Avro are packed anew. Every catalog is told of the same files, so that
catalogs are compared and not tables. Of segments there is the entry in the manifest; ``with_files`` makes each a file
of its size besides, of holes alone, for whoever asks the disk.
"""

from __future__ import annotations

import os
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path

from pyiceberg.catalog import Catalog

from benchmarks.many_topics import Shape, make_topics, topic_name
from keptlog.log.segment import Log
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.io.metadata_checksums import with_checksum
from keptlog.table.namespaces import NAMESPACE

_MARKER_BYTES = 16
_RAW = -zlib.MAX_WBITS


def make_copies(home: Path, topics: int, shape: Shape, now_ms: int) -> list[str]:
    """Topic ``n``'s metadata location at place ``n``; a catalog is still to be told of all but the first."""
    make_topics(home, 1, shape, now_ms, processes=1)
    first = load_topic_table(open_catalog(home), topic_name(0))
    current = Path(first.metadata_location.removeprefix("file://"))
    folder = current.parent
    files = {path.name: path.read_bytes() for path in [current, *folder.glob("*.avro")]}
    for number in range(1, topics):
        swaps = {
            topic_name(0).encode(): topic_name(number).encode(),
            str(first.metadata.table_uuid).encode(): str(uuid.uuid4()).encode(),
        }
        copy = Path(str(folder).replace(topic_name(0), topic_name(number)))
        copy.mkdir(parents=True)
        for name, content in files.items():
            swapped = _swapped_avro(content, swaps) if name.endswith(".avro") else _swapped(content, swaps)
            (copy / name).write_bytes(with_checksum(name, swapped))
    return [first.metadata_location.replace(topic_name(0), topic_name(number)) for number in range(topics)]


def register(catalog: Catalog, locations: list[str]) -> None:
    """Tell a catalog of those topics that it does not know yet."""
    catalog.create_namespace_if_not_exists(NAMESPACE)
    known = {name for _, name in catalog.list_tables(NAMESPACE)}
    for number, location in enumerate(locations):
        if topic_name(number) not in known:
            catalog.register_table((NAMESPACE, topic_name(number)), location)


def with_files(logs: Iterable[Log]) -> None:
    """Make a file of each segment."""
    for log in logs:
        folders: set[str] = set()
        for segment in log.segments:
            path = segment.path.removeprefix("file://")
            if (folder := path.rpartition("/")[0]) not in folders:
                Path(folder).mkdir(parents=True, exist_ok=True)
                folders.add(folder)
            file = os.open(path, os.O_CREAT | os.O_WRONLY)
            os.ftruncate(file, segment.size_bytes)
            os.close(file)


def _swapped(content: bytes, swaps: dict[bytes, bytes]) -> bytes:
    for old, new in swaps.items():
        content = content.replace(old, new)
    return content


def _swapped_avro(content: bytes, swaps: dict[bytes, bytes]) -> bytes:
    """An Avro file whose blocks are deflated: header, marker, then count, size, block and marker again and again."""
    marker = content[-_MARKER_BYTES:]
    place = content.index(marker) + _MARKER_BYTES
    made = [_swapped(content[:place], swaps)]
    while place < len(content):
        count, place = _number(content, place)
        size, place = _number(content, place)
        packer = zlib.compressobj(wbits=_RAW)
        block = _swapped(zlib.decompress(content[place : place + size], _RAW), swaps)
        packed = packer.compress(block) + packer.flush()
        made += [_encoded(count), _encoded(len(packed)), packed, marker]
        place += size + _MARKER_BYTES
    return b"".join(made)


def _number(content: bytes, place: int) -> tuple[int, int]:
    """Avro's whole number at a place, and the place behind it."""
    value = 0
    for shift in range(0, 64, 7):
        value |= (content[place] & 0x7F) << shift
        place += 1
        if content[place - 1] < 0x80:
            break
    return value >> 1, place


def _encoded(number: int) -> bytes:
    """A whole number from 0 on, as Avro has it."""
    value, made = number << 1, bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
