"""What the random histories are made of: records, settings, and how time passes between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from keptlog.log.record import NewRecord, Record
from keptlog.log.strategy import StrategyKind
from keptlog.log.uncleanable import Backoff
from keptlog.log.words.units import LONG_MAX

BEGINNING_MS = 2_000_000_000_000
"""Later than any snapshot that the test makes, so that a purge finds them old."""
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TOPIC = "a.topic-with_all"
PARTITIONS = (0, 1)
SOME_PARTITIONS = st.sampled_from([(0,), (1,), PARTITIONS])

SETTINGS = st.fixed_dictionaries(
    {
        "cleanup.policy": st.sampled_from(["compact", "compact", "compact,delete", "delete"]),
        "segment.ms": st.sampled_from([1, HOUR_MS]).map(str),
        "delete.retention.ms": st.sampled_from([0, HOUR_MS, DAY_MS]).map(str),
        "min.compaction.lag.ms": st.sampled_from([0, 0, HOUR_MS]).map(str),
        "max.compaction.lag.ms": st.sampled_from([HOUR_MS, DAY_MS, LONG_MAX]).map(str),
        "retention.ms": st.sampled_from([-1, HOUR_MS, 3 * DAY_MS]).map(str),
    }
)
STRATEGIES = st.fixed_dictionaries(
    {
        "compaction.strategy": st.sampled_from(["offset", *StrategyKind]),
        "compaction.strategy.header": st.just("v"),
        "keptlog.watermark.retention.ms": st.sampled_from([0, HOUR_MS, DAY_MS]).map(str),
    }
)
"""One for the whole history: the specification has no opinion on a changed one."""
GAPS = st.none() | st.lists(st.integers(0, 3), min_size=1, max_size=5)
"""Offsets that a source has no record at, before each record and at the end, over and over; null: no source."""
BACKOFF = Backoff(HOUR_MS, DAY_MS)
PAUSES_MS = st.sampled_from([1, HOUR_MS, HOUR_MS + 1, DAY_MS])
VALUES = st.sampled_from([None, None, b"", b"1", b"2", b"3"])
AGES_MS = st.sampled_from([0, 0, 0, 1, HOUR_MS, -HOUR_MS, BEGINNING_MS + 1])
"""How long before the clock a record's timestamp lies; the last of them is "no timestamp"."""
KEYS = st.sampled_from([b"a", b"b", b"c", b""])
RECORDS = st.lists(
    st.builds(
        NewRecord,
        key=st.none() | KEYS,
        value=VALUES,
        timestamp_ms=AGES_MS,
        partition=st.sampled_from(PARTITIONS),
        headers=st.sampled_from(
            [(), (("h", b"x"), ("h", None)), (("v", b"short"),), *((("v", bytes(7) + bytes([n])),) for n in range(3))]
        ),
    ),
    min_size=1,
    max_size=8,
)
"""Records with their age for a timestamp."""


def as_at_a_source(records: Sequence[NewRecord], offset: int, gaps: Iterator[int]) -> tuple[list[Record], int]:
    """The records at offsets from ``offset`` on with gaps between them, and where the log ends then."""
    placed = []
    for new in records:
        offset += next(gaps)
        placed.append(Record(offset, new.key, new.value, new.timestamp_ms, headers=new.headers))
        offset += 1
    return placed, offset + next(gaps)
