"""Kafka's codecs. pyarrow has all of them; two have framings that only Kafka knows.

**snappy** has no frame of its own. Kafka's Java clients cut the data into blocks and frame them like snappy-java
(``xerial``); librdkafka writes one bare block, without a frame.

    | 82 'SNAPPY' 0 | version | least version | length | block | length | block | ...

**lz4** in format v0 has a frame whose header checksum was computed over too many bytes, the frame's magic among them.
The batch's own checksum has vouched for the bytes already, so the right header checksum is put in before decoding.
"""

from __future__ import annotations

import pyarrow as pa

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""By the number in a batch's attributes."""

LARGEST_BYTES = 2**30
"""Of one batch, decompressed: Arrow's positions end at twice that; Kafka's batches are a thousand times smaller."""

_SNAPPY_MOST_SHORT = 59
"""From here on a literal's length stands in one to four bytes behind its tag."""
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_SNAPPY_MOST_GROWTH = 22
"""A snappy copy of 64 bytes takes 3, so a block that claims to hold more than this times its size lies."""

_SNAPPY_MOST_BYTES_PER_PLAIN = 6
"""Of a literal of one byte with a length of four. Every element stands for one byte or more, and none takes more."""

_GZIP_MAGIC = bytes.fromhex("1f8b")
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_ZSTD_SKIPPABLE_MAGIC = bytes.fromhex("2a4d18")
"""Behind a first byte of 0x50 to 0x5f: a frame that readers pass over."""
_LZ4_MAGIC = bytes.fromhex("04224d18")
_LZ4_CONTENT_SIZE_BIT = 0x08
_LZ4_DICTIONARY_BIT = 0x01

_UINT32 = 0xFFFFFFFF
_XXH_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)


class Undecodable(Exception):
    """The bytes are not what the codec writes, and why."""


def decompress(codec: str, data: bytes) -> bytes:
    """What was compressed.

    Raises:
        Undecodable: the data is broken, or holds more than ``LARGEST_BYTES``.
    """
    try:
        plain = data if codec == "none" else _snappy(data) if codec == "snappy" else _from_stream(codec, data)
    except (OSError, pa.ArrowException) as error:
        raise Undecodable(f"{codec} can't decode it: {error}") from None
    if len(plain) > LARGEST_BYTES:
        raise Undecodable(f"it has {len(plain)} bytes, more than {LARGEST_BYTES}")
    return plain


BEGIN_BYTES = 10
"""So many bytes are enough to see whether compressed data can begin so."""


def may_begin(codec: str, begin: bytes, size_bytes: int) -> bool:
    """Whether data of a codec can begin with these bytes: whatever Kafka's readers take does.

    There are ``BEGIN_BYTES`` of them, or all.
    """
    if codec == "gzip":
        return begin.startswith(_GZIP_MAGIC)
    if codec == "lz4":
        return begin.startswith(_LZ4_MAGIC)
    if codec == "zstd":
        is_passed_over = begin[:1] != b"" and begin[0] & 0xF0 == 0x50 and begin[1:4] == _ZSTD_SKIPPABLE_MAGIC
        return is_passed_over or begin.startswith(_ZSTD_MAGIC)
    return codec == "none" or begin.startswith(_XERIAL_MAGIC) or _may_begin_snappy_block(begin, size_bytes)


def _may_begin_snappy_block(begin: bytes, size_bytes: int) -> bool:
    """A block's first element is a literal, for nothing can be copied yet, and its length fits both sizes."""
    plain_bytes, at = _snappy_size(begin)
    if at >= len(begin) or not 0 < plain_bytes <= min(size_bytes * _SNAPPY_MOST_GROWTH, LARGEST_BYTES) or begin[at] & 3:
        return False
    if size_bytes > at + plain_bytes * _SNAPPY_MOST_BYTES_PER_PLAIN:
        return False
    literal = begin[at] >> 2
    more = max(0, literal - _SNAPPY_MOST_SHORT)
    literal = int.from_bytes(begin[at + 1 : at + 1 + more], "little") if more else literal
    return literal < plain_bytes and at + 1 + more + literal < size_bytes


def _snappy_size(block: bytes) -> tuple[int, int]:
    """The plain size, a varint that a block begins with, and where that ends."""
    size = shift = 0
    for at, byte in enumerate(block[:5], 1):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size, at
    return size, min(5, len(block))


def _from_stream(codec: str, data: bytes) -> bytes:
    if codec == "lz4":
        data = _with_right_header_checksum(data)
    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        plain: bytes = stream.read()
    return plain


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data)
    blocks = []
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if position + length > len(data):
            raise Undecodable(f"a block of {length} bytes reaches beyond the {len(data)} bytes that are there")
        blocks.append(_snappy_block(data[position : position + length]))
        position += length
    return b"".join(blocks)


def _snappy_block(block: bytes) -> bytes:
    size, _ = _snappy_size(block)
    if size > len(block) * _SNAPPY_MOST_GROWTH or size > LARGEST_BYTES:
        raise Undecodable(f"a snappy block of {len(block)} bytes can't hold {size}")
    plain: bytes = pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True)
    return plain


def _with_right_header_checksum(data: bytes) -> bytes:
    if len(data) < 7 or not data.startswith(_LZ4_MAGIC):
        raise Undecodable("it does not begin like an lz4 frame")
    flags = data[4]
    end = 6 + 8 * bool(flags & _LZ4_CONTENT_SIZE_BIT) + 4 * bool(flags & _LZ4_DICTIONARY_BIT)
    checksum = _xxh32_of_few(data[4:end]) >> 8 & 0xFF
    return data[:end] + bytes([checksum]) + data[end + 1 :]


def _xxh32_of_few(data: bytes) -> int:
    """The hash xxh32, seed 0, of fewer than 16 bytes."""
    prime1, prime2, prime3, prime4, prime5 = _XXH_PRIMES
    accumulator = prime5 + len(data)
    words = len(data) // 4 * 4
    for start in range(0, words, 4):
        accumulator += int.from_bytes(data[start : start + 4], "little") * prime3
        accumulator = _rotated(accumulator, 17) * prime4
    for byte in data[words:]:
        accumulator = _rotated(accumulator + byte * prime5, 11) * prime1
    accumulator &= _UINT32
    accumulator = (accumulator ^ accumulator >> 15) * prime2 & _UINT32
    accumulator = (accumulator ^ accumulator >> 13) * prime3 & _UINT32
    return accumulator ^ accumulator >> 16


def _rotated(number: int, bits: int) -> int:
    number &= _UINT32
    return (number << bits | number >> (32 - bits)) & _UINT32
