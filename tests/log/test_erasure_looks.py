"""Whether a look may find erasures further than is stored: only where a pass may have been over what they wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.log.erasures.prospect import LookedLogs, may_be_further
from tests.log.test_erasure_step import ASKED_MS, DAY_MS, NOW_MS, OF_NOW, OF_THEN, log_of, since


def test_what_waits_for_a_clean_may_be_further_once_one_has_passed_it() -> None:
    found = since(ErasureNeed.CLEAN, ASKED_MS)
    closed = log_of(OF_THEN, OF_NOW, segment_bytes=1 << 20, segment_ms=7 * DAY_MS)
    assert not may_be_further(found, NOW_MS, [closed])
    assert may_be_further(found, NOW_MS, [replace(closed, checkpoint=2)])
    assert may_be_further(found, NOW_MS, [replace(closed, is_ingested=True)])
    assert may_be_further(found, NOW_MS, [replace(closed, segments=(OF_NOW,), log_start_offset=2)])


def test_what_waits_for_its_age_may_be_further_once_retention_has_taken_all_that_was_there() -> None:
    old = log_of(OF_THEN, OF_NOW, policy="delete", retention_ms=DAY_MS // 2)
    for need in (ErasureNeed.RETENTION, ErasureNeed.CLEAN):
        found = since(need, ASKED_MS)
        assert not may_be_further(found, NOW_MS, [old])
        assert may_be_further(found, NOW_MS, [replace(old, segments=(OF_NOW,), log_start_offset=2)])


def test_what_a_clean_has_passed_may_be_further_though_retention_takes_it_too() -> None:
    """It was looked at only once retention had come, or at the time of before."""
    both = log_of(OF_THEN, OF_NOW, policy="compact,delete", retention_ms=DAY_MS // 2, segment_bytes=1 << 20)
    found = since(ErasureNeed.CLEAN, ASKED_MS)
    assert not may_be_further(found, NOW_MS, [both])
    assert may_be_further(found, NOW_MS, [replace(both, checkpoint=2)])


@pytest.mark.parametrize("retention_ms", [-1, 7 * DAY_MS])
def test_what_a_clean_has_passed_may_be_further_though_none_comes_any_more(retention_ms: int) -> None:
    """Altered before somebody looked, it was looked at only with its age, or never: nothing brought it on."""
    found = since(ErasureNeed.CLEAN, ASKED_MS)
    altered = log_of(OF_THEN, OF_NOW, policy="delete", retention_ms=retention_ms)
    assert not may_be_further(found, NOW_MS, [altered])
    assert may_be_further(found, NOW_MS, [replace(altered, checkpoint=2)])
    ingested = replace(altered, checkpoint=2, is_ingested=True)
    assert not may_be_further(found, NOW_MS, [ingested])
    assert may_be_further(found, NOW_MS, [ingested], LookedLogs.of([replace(ingested, checkpoint=1)], found))


def test_what_waits_for_cleans_of_several_logs_is_not_further_before_the_next_of_them() -> None:
    """Once the first was cleaned, a look could be asked for with each append until the last was."""
    found = since(ErasureNeed.CLEAN, ASKED_MS)
    cleaned, waiting = log_of(OF_THEN, OF_NOW), log_of(OF_THEN, OF_NOW)
    cleaned = replace(cleaned, checkpoint=2)
    waiting = replace(waiting, topic_partition=replace(waiting.topic_partition, partition=1))
    looked = LookedLogs.of([cleaned, waiting], found)
    assert may_be_further(found, NOW_MS, [cleaned, waiting])
    assert not may_be_further(found, NOW_MS, [cleaned, waiting], looked)
    assert may_be_further(found, NOW_MS, [cleaned, replace(waiting, checkpoint=2)], looked)


def test_what_waits_for_its_expiry_is_not_further_before_a_segment_with_tombstones_has_gone() -> None:
    """A reader may hold them for a week, in which each append could bring a look."""
    found = replace(since(ErasureNeed.EXPIRY, ASKED_MS), next_ms=NOW_MS)
    held, later = (replace(each, tombstone_count=1) for each in (OF_THEN, OF_NOW))
    looked = LookedLogs.of([log_of(held)], found)
    assert may_be_further(found, NOW_MS, [log_of(held)])
    assert not may_be_further(found, NOW_MS, [replace(log_of(held, later), checkpoint=3)], looked)
    assert may_be_further(found, NOW_MS, [log_of(replace(held, path="c"), later)], looked)
