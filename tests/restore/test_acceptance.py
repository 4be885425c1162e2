"""What a topic does not take is known from its settings, to the byte, before anything is sent."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from keptlog.log.record import Record
from keptlog.sinks.kafka_broker.acceptance import COLUMNS, Acceptance
from keptlog.sinks.kafka_broker.target import Target
from keptlog.storage.schema import to_arrow
from tests.sources.kafka_log.encoder import batch

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
FIRST = Record(5, b"k", b"v", NOW_MS)
COMPACTED = {"cleanup.policy": "compact"}


def told(config: dict[str, str], *records: Record, compresses: bool = False) -> str | None:
    target = Target("there", "", 1, config)
    refused = Acceptance(target, NOW_MS, compresses).refused(to_arrow(0, records).select(COLUMNS))
    return None if refused is None else f"{refused[0]} {refused[1]('users-0', target)}"


def odd_record(chance: random.Random, offset: int) -> Record:
    sizes = (0, 1, 50, 63, 64, 70, 8100, 8191, 8192, 8300, 1_048_400, 1_048_575)
    some = [None, *(bytes(size) for size in sizes)]
    names = ("", "h", "x" * 70)
    headers = tuple((chance.choice(names), chance.choice(some[:-2])) for _ in range(chance.choice((0, 0, 1, 3, 70))))
    return Record(offset, chance.choice(some[:-2]), chance.choice(some), NOW_MS, headers=headers)


@pytest.mark.parametrize("seed", range(40))
def test_a_record_is_too_large_if_its_own_batch_is(seed: int) -> None:
    chance = random.Random(seed)
    record = odd_record(chance, 9)
    small = [replace(FIRST, offset=offset, headers=(("h", b"v"),) * offset) for offset in range(3)]
    fits = {"max.message.bytes": str(max(len(batch([each])) for each in (record, *small)))}
    assert told(fits, *small, record) is None
    too_small = {"max.message.bytes": str(len(batch([record])) - 1)}
    assert (told(too_small, record) or "").startswith("9 users-0: it is larger than max.message.bytes=")
    assert told(too_small, record, compresses=True) is None


def test_a_record_that_is_larger_than_a_segment_is_too_large() -> None:
    """Before Kafka 4 a topic may have small ones."""
    large = Record(7, b"k", bytes(200), NOW_MS)
    refusal = told({"max.message.bytes": "1048588", "segment.bytes": "150"}, FIRST, large) or ""
    assert refusal.startswith("7 users-0: it is larger than segment.bytes=150 of there: ")


def test_the_first_record_that_is_not_taken_is_told() -> None:
    unkeyed, large = Record(6, None, b"v", NOW_MS), Record(7, b"k", bytes(99), NOW_MS)
    limits = COMPACTED | {"max.message.bytes": "150"}
    assert (told(limits, FIRST, large, replace(unkeyed, offset=8)) or "").startswith("7 users-0: it is larger")
    assert (told(limits, FIRST, unkeyed, large) or "").startswith("6 users-0: it has no key, and there is compacted")
    assert told({}, FIRST, unkeyed, large) is None


@pytest.mark.parametrize(
    ("timestamp_ms", "is_taken"),
    [(NOW_MS + HOUR_MS, True), (NOW_MS + HOUR_MS + 1, False), (NOW_MS - 9, True), (NOW_MS - 10, False), (-1, True)],
)
def test_a_timestamp_that_is_too_far_off_is_told(timestamp_ms: int, *, is_taken: bool) -> None:
    limits = {"message.timestamp.before.max.ms": "9", "message.timestamp.after.max.ms": str(HOUR_MS)}
    assert (told(limits, replace(FIRST, timestamp_ms=timestamp_ms)) is None) == is_taken
    assert told({}, replace(FIRST, timestamp_ms=timestamp_ms)) is None


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({}, "message.timestamp.difference.max.ms"),
        ({"message.timestamp.before.max.ms": str(2**63 - 1)}, "message.timestamp.difference.max.ms"),
        (
            {"message.timestamp.before.max.ms": "9"},
            "message.timestamp.before.max.ms and message.timestamp.difference.max.ms",
        ),
        ({"message.timestamp.before.max.ms": "11"}, None),
    ],
)
def test_the_one_limit_of_older_brokers_counts_where_the_later_ones_are_not_made(
    limits: dict[str, str], names: str | None
) -> None:
    """They were told as names that no such broker has, and after what came before had been sent."""
    early = replace(FIRST, timestamp_ms=NOW_MS - 10)
    refusal = told(limits | {"message.timestamp.difference.max.ms": "8"}, early)
    assert (refusal is None) == (names is None)
    assert names is None or f"its timestamp is outside of {names} of there: " in str(refusal)


@pytest.mark.parametrize(
    ("topic_id", "remedy"),
    [
        ("id-there", r"raise (it|them) there, and run this again; it goes on from here"),
        ("", "there is no topic there yet: create it with (a larger one|larger ones), and run this again"),
    ],
)
def test_what_is_to_be_raised_is_told_of_a_topic_that_is_there(topic_id: str, remedy: str) -> None:
    """Of one that is still to be created, nobody can raise anything."""
    limits = {"max.message.bytes": "150", "message.timestamp.before.max.ms": "9"}
    target = Target("there", topic_id, 1, limits)
    for record in (Record(7, b"k", bytes(99), NOW_MS), Record(7, b"k", b"v", NOW_MS - 10)):
        refused = Acceptance(target, NOW_MS, compresses=False).refused(to_arrow(0, [record]).select(COLUMNS))
        assert refused
        assert re.search(f": {remedy}$", str(refused[1]("users-0", target)))
