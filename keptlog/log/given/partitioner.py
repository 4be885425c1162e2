"""Which partition a keyed record belongs to: Kafka's default partitioner, so that both sides agree on every key."""

from __future__ import annotations

import struct

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition in [0, partitions) that Kafka's Java client chooses for ``key``."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions if partitions > 1 else 0


def murmur2(data: bytes) -> int:
    """Kafka's ``Utils.murmur2``, as a signed 32-bit number."""
    words = len(data) // 4
    state = _SEED ^ len(data)
    for word in struct.unpack_from(f"<{words}I", data):
        mixed = word * _MULTIPLIER & _MASK
        mixed = (mixed ^ mixed >> 24) * _MULTIPLIER & _MASK
        state = state * _MULTIPLIER & _MASK ^ mixed
    tail = data[words * 4 :]
    if tail:
        state = (state ^ int.from_bytes(tail, "little")) * _MULTIPLIER & _MASK
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK
    state ^= state >> 15
    return state - 2**32 if state >= 2**31 else state
