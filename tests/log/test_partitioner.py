"""Keys go to the partition that Kafka's own client would choose."""

import pytest

from keptlog.log.given.partitioner import murmur2, partition_for_key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(key: bytes, expected: int) -> None:
    """The values of Kafka's own UtilsTest.testMurmur2."""
    assert murmur2(key) == expected


@pytest.mark.parametrize(
    ("key", "expected"), [(b"\xa7\xd6Pl", -(2**31)), (b"\x02}SC", 2**31 - 1), (b"\x11\x10*O", 2**30)]
)
def test_the_hash_is_a_signed_number_of_32_bits(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


def test_the_last_digit_of_the_hash_counts() -> None:
    assert partition_for_key(b"abc", 1000) == 107


def test_a_negative_hash_gives_a_partition_too() -> None:
    assert partition_for_key(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


def test_every_key_goes_to_the_only_partition() -> None:
    assert {partition_for_key(str(number).encode(), 1) for number in range(100)} == {0}


def test_an_empty_key_is_a_key() -> None:
    assert 0 <= partition_for_key(b"", 5) < 5
