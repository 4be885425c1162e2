"""What brings erasures on where only retention does: nobody is sent to one that never comes to what they wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.log.segment import Segment
from keptlog.log.told.erasure_step import erasure_step, next_by_now
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.iso_time import iso_time
from tests.log.test_erasure_step import ASKED_MS, DAY_MS, LATER_MS, NOW_MS, OF_NOW, OF_THEN, SOONER_MS, log_of, since


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_where_nothing_is_compacted_any_more_nobody_is_sent_to_a_clean(need: ErasureNeed) -> None:
    """doctor sent people to a clean, which left the topic alone for its cleanup.policy."""
    stamped = replace(OF_THEN, tombstone_count=1, earliest_delete_horizon_ms=ASKED_MS)
    by_age = log_of(stamped, policy="delete", segment_ms=1, retention_ms=9 * DAY_MS)
    past = replace(since(need, ASKED_MS), next_ms=SOONER_MS)
    for found in (past, since(need, ASKED_MS)):
        step, goes_ms = erasure_step("users", found, NOW_MS, [by_age]), ASKED_MS + 9 * DAY_MS + 1
        because = "the records are not old enough (retention.ms)"
        assert step.cause == f"nothing brings it on before {iso_time(goes_ms)}: {because}"
        assert "segment.ms" not in f"{step} {next_by_now(found, NOW_MS, [by_age])}"
        assert (step.todo.startswith("lower retention.ms"), step.command) == (True, None)
        assert erasure_step("users", found, goes_ms, [by_age]).command == "keptlog retain users"
        assert next_by_now(found, goes_ms, [by_age]) == "needs retention"
    for_ever = log_of(stamped, policy="delete", segment_ms=1, retention_ms=-1)
    step = erasure_step("users", past, NOW_MS, [for_ever])
    assert step.cause == "it waits for a clean, and cleanup.policy is delete"
    assert (step.todo, step.command) == ("have the topic compacted again", None)
    assert next_by_now(past, NOW_MS, [for_ever]) == f"{step.cause.removeprefix('it ')}: {step.todo}"


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_what_retention_takes_by_another_rule_than_age_is_sent_to_it_though_no_clean_comes(need: ErasureNeed) -> None:
    """doctor sent people to have the topic compacted again, while a retention was all that it took."""
    stamped = replace(OF_THEN, tombstone_count=1, earliest_delete_horizon_ms=ASKED_MS)
    found = replace(since(need, ASKED_MS), next_ms=None)
    too_large = log_of(stamped, OF_NOW, policy="delete", retention_ms=-1, retention_bytes=1)
    deleted = replace(too_large, config=replace(too_large.config, cleanup_policy=()), log_start_offset=2)
    for log in (too_large, deleted):
        assert erasure_step("users", found, NOW_MS, [log]).command == "keptlog retain users"
        assert next_by_now(found, NOW_MS, [log]) == "needs retention"


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_a_cleaner_that_is_off_keeps_nothing_to_which_no_clean_comes(need: ErasureNeed) -> None:
    stamped = replace(OF_THEN, tombstone_count=1, earliest_delete_horizon_ms=ASKED_MS)
    by_age = log_of(stamped, policy="delete", retention_ms=DAY_MS // 2)
    step = erasure_step("users", since(need, ASKED_MS), NOW_MS, [by_age], is_cleaner_off=True)
    assert step.command == "keptlog retain users"


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_nobody_is_sent_to_a_retention_that_does_not_come_to_what_no_clean_takes(need: ErasureNeed) -> None:
    """It was to be run at once where a segment has no timestamps, or a time that is ahead, and took nothing."""
    stamped = replace(OF_THEN, base_offset=1, last_offset=2, tombstone_count=1, earliest_delete_horizon_ms=ASKED_MS)
    without = Segment("n", 0, 0, -1, -1, 1, 1)
    behind = replace(without, base_offset=3, last_offset=3)
    late = replace(behind, first_timestamp_ms=ASKED_MS - DAY_MS, largest_timestamp_ms=NOW_MS)
    ahead = replace(without, first_timestamp_ms=NOW_MS, largest_timestamp_ms=NOW_MS + DAY_MS)
    found = since(need, ASKED_MS)
    for segments, last_ms in (
        ((stamped, behind), ASKED_MS),
        ((stamped, late), ASKED_MS),
        ((ahead, stamped), NOW_MS + DAY_MS),
    ):
        log = log_of(*segments, policy="delete", retention_ms=9 * DAY_MS)
        goes_ms = last_ms + 9 * DAY_MS + 1
        step = erasure_step("users", found, NOW_MS, [log])
        assert step.cause.startswith(f"nothing brings it on before {iso_time(goes_ms)}: ")
        assert erasure_step("users", found, goes_ms, [log]).command == "keptlog retain users"
    never = log_of(without, stamped, policy="delete", retention_ms=DAY_MS // 2)
    step = erasure_step("users", found, NOW_MS, [never])
    assert step.cause.startswith("it waits for its age, and the segment of users-0 at offset 0 has no timestamps")
    assert (step.todo.startswith("delete its records (keptlog delete-records)"), step.command) == (True, None)
    unsettled = log_of(stamped, policy="delete", retention_ms=DAY_MS // 2, unsettled=("retention.ms",))
    step = erasure_step("users", found, NOW_MS, [unsettled])
    assert step.cause.startswith("it waits for its age, and topic users has no retention.ms of its own")
    assert ("keptlog topic alter users --config retention.ms=" in step.todo, step.command) == (True, None)


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_of_an_ingested_log_that_no_clean_takes_all_that_was_there_goes_by_its_age(need: ErasureNeed) -> None:
    stamped = replace(OF_THEN, tombstone_count=1, earliest_delete_horizon_ms=ASKED_MS)
    behind = Segment("n", 2, 2, -1, -1, 1, 1)
    log = replace(log_of(stamped, behind, policy="delete", retention_ms=9 * DAY_MS), is_ingested=True)
    step = erasure_step("users", since(need, ASKED_MS), NOW_MS, [log])
    assert step.cause.startswith(f"nothing brings it on before {iso_time(ASKED_MS + 9 * DAY_MS + 1)}: ")


@pytest.mark.parametrize("policy", ["compact", "delete"])
@pytest.mark.parametrize("next_ms", [None, LATER_MS])
def test_nobody_is_sent_to_retention_where_nothing_goes_by_its_age_any_more(policy: str, next_ms: int | None) -> None:
    """It was to be run, or a time was told, while erasure list said that nothing takes what it waits for."""
    found = replace(since(ErasureNeed.RETENTION, ASKED_MS), next_ms=next_ms)
    log = log_of(OF_THEN, policy=policy, retention_ms=-1)
    step = erasure_step("users", found, NOW_MS, [log])
    why = "cleanup.policy is compact" if policy == "compact" else "retention.ms is -1"
    assert (step.cause, step.command) == (f"it waits for retention, and {why}", None)
    assert next_by_now(found, NOW_MS, [log]) == f"{step.cause.removeprefix('it ')}: {step.todo}"
    deleted = replace(log, log_start_offset=2)
    assert erasure_step("users", found, NOW_MS, [deleted]).command == "keptlog retain users"


@pytest.mark.parametrize("retention_ms", [-1, DAY_MS // 2])
def test_what_waited_for_its_age_and_has_gone_needs_a_look_however_the_topic_is_set(retention_ms: int) -> None:
    """Whoever had deleted its records, as was told, was told it again, and Dagster did not look before its time."""
    left = replace(log_of(OF_NOW, policy="delete", retention_ms=retention_ms), log_start_offset=2)
    compacted = replace(left, config=replace(left.config, cleanup_policy=("compact",)))
    for log in (left, compacted):
        assert (
            erasure_step("users", since(ErasureNeed.RETENTION, ASKED_MS), NOW_MS, [log]).command
            == "keptlog erasure list"
        )
    late = replace(left, segments=(replace(OF_NOW, tombstone_count=1),))
    by_timestamp = replace(late, config=replace(late.config, compaction_strategy="timestamp"))
    for need in (ErasureNeed.CLEAN, ErasureNeed.EXPIRY):
        for log in (replace(late, is_ingested=True), by_timestamp):
            assert erasure_step("users", since(need, ASKED_MS), NOW_MS, [log]).command == "keptlog erasure list"


def test_nobody_who_waits_for_retention_is_sent_to_one_that_never_comes_to_what_was_there() -> None:
    """It was to be run at once, again and again, or a time was told, while erasure list said that it never goes."""
    without = Segment("n", 0, 0, -1, -1, 1, 1)
    stamped = replace(OF_THEN, base_offset=1, last_offset=2)
    found = since(ErasureNeed.RETENTION, ASKED_MS)
    never = log_of(without, stamped, policy="delete", retention_ms=DAY_MS // 2)
    step = erasure_step("users", found, NOW_MS, [never])
    assert step.cause.startswith("it waits for its age, and the segment of users-0 at offset 0 has no timestamps")
    assert (step.todo.startswith("delete its records (keptlog delete-records)"), step.command) == (True, None)
    for retention_ms in (DAY_MS // 2, 2 * DAY_MS):
        unsettled = log_of(stamped, policy="delete", retention_ms=retention_ms, unsettled=("retention.ms",))
        step = erasure_step("users", found, NOW_MS, [unsettled])
        assert step.cause.startswith("it waits for its age, and topic users has no retention.ms of its own")
        assert ("keptlog topic alter users --config retention.ms=" in step.todo, step.command) == (True, None)
    by_size = replace(never, config=replace(never.config, retention_bytes=0))
    beside = replace(never, segments=(replace(OF_THEN, base_offset=0),), topic_partition=TopicPartition("users", 1))
    for logs in ([by_size], [never, beside]):
        assert erasure_step("users", found, NOW_MS, logs).command == "keptlog retain users"
