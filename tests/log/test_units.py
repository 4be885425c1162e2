"""Spans, sizes and moments are told in the units that a person thinks in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.words.units import LONG_MAX, YEAR_MS, away, duration, glance, in_words, moment, next_moment, size

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (0, "0 s"),
        (7, "7 ms"),
        (999, "999 ms"),
        (1500, "1 s"),
        (61_000, "1 min 1 s"),
        (7_500_000, "2 h 5 min"),
        (25 * HOUR_MS, "1 d 1 h"),
        (172_810_798, "2 d 10 s"),
        (YEAR_MS, "1 year"),
        (YEAR_MS + 25 * HOUR_MS, "1 year 1 d"),
        (53_374 * HOUR_MS, "6 years"),
        (LONG_MAX, "unlimited"),
        (10**308, "unlimited"),
    ],
)
def test_a_span_has_its_two_largest_units(ms: int, told: str) -> None:
    assert duration(ms) == told


@pytest.mark.parametrize(
    ("count_bytes", "told"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1_288_490_189, "1.2 GiB"),
        (5000 * 1024**5, "5000.0 PiB"),
        (LONG_MAX, "unlimited"),
    ],
)
def test_a_size_has_a_unit_that_suits_it(count_bytes: int, told: str) -> None:
    assert size(count_bytes) == told


@given(st.integers(0, 10**19))
def test_numbers_of_any_size_are_told_briefly(number: int) -> None:
    assert len(duration(number)) < 20
    assert len(size(number)) < 20


def test_a_moment_stands_beside_how_far_away_it_is() -> None:
    now_ms = 1_800_000_000_000
    assert moment(now_ms + 2 * HOUR_MS, now_ms) == "2027-01-15T10:00:00.000Z (in 2 h)"
    assert next_moment(now_ms, now_ms) == "at 2027-01-15T08:00:00.000Z (now)"
    assert glance(now_ms - 25 * HOUR_MS, now_ms) == "2027-01-14 07:00Z (1 d 1 h ago)"
    assert away(now_ms + 999, now_ms) == "now"
    assert {told(LONG_MAX, now_ms) for told in (moment, next_moment, glance)} == {"never"}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("max.compaction.lag.ms", LONG_MAX, "9223372036854775807 (unlimited)"),
        ("delete.retention.ms", 86_400_000, "86400000 (1 d)"),
        ("min.compaction.lag.ms", 0, "0"),
        ("min.compaction.lag.ms", 50, "50"),
        ("retention.ms", -1, "-1 (unlimited)"),
        ("retention.bytes", -1, "-1 (unlimited)"),
        ("segment.bytes", 1_073_741_824, "1073741824 (1.0 GiB)"),
        ("min.cleanable.dirty.ratio", 0.5, "0.5"),
        ("log.cleaner.io.max.bytes.per.second", 1.7976931348623157e308, "unlimited"),
        ("log.cleaner.enable", True, "true"),
        ("cleanup.policy", ("compact", "delete"), "compact,delete"),
    ],
)
def test_a_setting_is_told_as_it_is_stored_and_what_it_means(name: str, value: object, told: str) -> None:
    assert in_words(name, value) == told
