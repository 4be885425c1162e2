"""The next good batch behind damage: any that Kafka could have written is found, and little else gets a checksum."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from keptlog.log.record import Record
from keptlog.sources.kafka_log import batches
from keptlog.sources.kafka_log.open_file import READ_BYTES
from tests.sources.kafka_log.encoder import (
    CODECS,
    COMMIT,
    BatchOptions,
    batch,
    encoded_records,
    marker,
    read_log,
    sized,
    varint,
    whole_batch,
    write_segment,
)

_CHECK = batches._check
_FIRST = batch([Record(0, b"key", b"value", 1_000)])
_BROKEN = _FIRST[:40] + b"\xff" + _FIRST[41:]
_LAST = batch([Record(20, b"key", b"value", 1_000)])
_RECORD = Record(4, b"key", b"value" * 30, 1_000)
_PLAIN = encoded_records([_RECORD], 4, 1_000)


def _compressed(payload: bytes, codec: str) -> bytes:
    return whole_batch(payload, (4, 4), (1_000, 1_000), 1, BatchOptions(codec=codec))


def _framed_snappy() -> bytes:
    block: bytes = pa.compress(_PLAIN, codec="snappy", asbytes=True)
    return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block


_SKIPPABLE_FRAME = b"\x5a\x2a\x4d\x18" + struct.pack("<i", 3) + b"pad"
_WITH_ATTRIBUTES = sized(b"\x7f" + varint(0) + varint(0) + sized(b"key") + sized(b"value") + varint(0))
_GOOD = {
    **{
        f"{codec}, {size} bytes": batch([Record(4, b"key", b"%d" % size * size, 1_000)], BatchOptions(codec=codec))
        for codec in CODECS
        for size in (0, 1, 50, 70, 300, 70_000)
    },
    **{
        f"{codec}, {size} bytes of noise": batch(
            [Record(4, b"key", np.random.default_rng(4).bytes(size), 1_000)], BatchOptions(codec=codec)
        )
        for codec in CODECS
        for size in (40, 100, 1_000, 100_000)
    },
    "snappy in Kafka's frame": _compressed(_framed_snappy(), "snappy"),
    "zstd behind a frame to be skipped": _compressed(
        _SKIPPABLE_FRAME + pa.compress(_PLAIN, codec="zstd", asbytes=True), "zstd"
    ),
    "longer than what is read at once": batch([Record(4, b"key", bytes(2 * READ_BYTES), 1_000)]),
    "no key": batch([Record(4, None, b"value", 1_000)]),
    "a tombstone": batch([Record(4, b"key", None, 1_000)], BatchOptions(delete_horizon_ms=2_000)),
    "headers": batch([Record(4, b"key", None, 1_000, headers=(("name", b"value"), ("name", None)))]),
    "timestamps that fall": batch([Record(4, b"key", b"value", 2**45), Record(5, b"key", b"value", 5)]),
    "compacted at its begin": whole_batch(encoded_records([_RECORD], 2, 1_000), (2, 9), (1_000, 1_000), 1),
    "attributes of a record, which Kafka passes over": whole_batch(_WITH_ATTRIBUTES, (4, 4), (1_000, 1_000), 1),
}
_WITHOUT_RECORDS = {
    "a marker": marker(4, 7, COMMIT),
    "no record left": whole_batch(b"", (4, 6), (1_000, 1_000), 0, BatchOptions(producer_id=7)),
}


@pytest.mark.parametrize("good", _GOOD.values(), ids=_GOOD)
def test_whatever_kafka_writes_is_found_behind_damage(tmp_path: Path, good: bytes) -> None:
    write_segment(tmp_path, 0, [_FIRST, _BROKEN, good, _LAST])
    read = read_log(tmp_path, skip_corrupt=True)
    assert [damage.size_bytes for damage in read.skipped] == [len(_BROKEN)]
    assert (read.offsets[0], read.offsets[1], read.offsets[-1]) == (0, 4, 20)


@pytest.mark.parametrize("good", _WITHOUT_RECORDS.values(), ids=_WITHOUT_RECORDS)
def test_so_is_a_batch_without_records_for_people(tmp_path: Path, good: bytes) -> None:
    write_segment(tmp_path, 0, [_FIRST, _BROKEN, good, _LAST])
    read = read_log(tmp_path, skip_corrupt=True)
    assert [damage.size_bytes for damage in read.skipped] == [len(_BROKEN)]
    assert read.offsets == [0, 20]


_NUMBERS = {
    f"{low}..{high} as {form}": np.random.default_rng(1).integers(low, high, 40_000, endpoint=True).astype(form)
    for low, high in ((-1, 2), (0, 2), (0, 4), (0, 300))
    for form in (">i2", ">i4", ">i8", "<i4", "i1" if high < 128 else "<i2")
}


@pytest.mark.parametrize("numbers", _NUMBERS.values(), ids=_NUMBERS)
def test_arrays_of_small_numbers_take_few_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: Sequence[int]
) -> None:
    """Each would be one of what a header claims to be its batch: of up to all that is left of the file."""
    checked = 0

    def check(expected: int, actual: int) -> None:
        nonlocal checked
        checked += 1
        _CHECK(expected, actual)

    monkeypatch.setattr(batches, "_check", check)
    damaged = batch([Record(1, b"k", np.asarray(numbers).tobytes(), 1_000)])
    good = [batch([Record(offset, b"k", b"v" * 2**18, 1_000)]) for offset in range(2, 22)]
    write_segment(tmp_path, 0, [_FIRST, damaged[:30] + b"\xff" + damaged[31:], *good])
    assert read_log(tmp_path, skip_corrupt=True).offsets == [0, *range(2, 22)]
    assert checked < 100
