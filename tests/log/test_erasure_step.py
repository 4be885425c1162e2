"""What brings a topic's erasures on: nobody is sent to a pass that can do nothing yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from keptlog.log.broker import BrokerConfig
from keptlog.log.config import TopicConfig
from keptlog.log.erasures.open_erasures import ErasureNeed, NeedyErasures, OpenErasures
from keptlog.log.segment import Log, Segment
from keptlog.log.told.conditions import Condition, Matter
from keptlog.log.told.erasure_step import erasure_step, next_by_now
from keptlog.log.told.examination import SeenBeside, condition_problems
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.units import LONG_MAX

NOW_MS = 1_800_000_000_000
LATER_MS, SOONER_MS = NOW_MS + 3_600_000, NOW_MS - 1


def waiting(next_ms: int | None, *needs: tuple[str, int | None]) -> OpenErasures:
    needy = tuple(NeedyErasures(need, 1, deadline_ms, 0) for need, deadline_ms in needs)
    return OpenErasures(len(needs), SOONER_MS, next_ms, needy)


@pytest.mark.parametrize(
    ("need", "setting"),
    [
        (ErasureNeed.CLEAN, "segment.ms"),
        (ErasureNeed.EXPIRY, "delete.retention.ms"),
        (ErasureNeed.PURGE, "file.delete.delay.ms"),
        (ErasureNeed.RETENTION, "retention.ms"),
    ],
)
def test_what_only_time_brings_on_is_told_with_the_setting_and_no_command(need: ErasureNeed, setting: str) -> None:
    """It said that a clean, a purge or a verification was not run, while none of them could do anything."""
    step = erasure_step("users", waiting(LATER_MS, (need, SOONER_MS)), NOW_MS)
    assert step.cause.startswith("nothing brings it on before 2027-01-15T09:00:00.000Z: ")
    assert f"({setting})" in step.cause
    assert step.command is None


@pytest.mark.parametrize(
    ("need", "command"),
    [
        (ErasureNeed.CLEAN, "keptlog clean users"),
        (ErasureNeed.EXPIRY, "keptlog clean users"),
        (ErasureNeed.PURGE, "keptlog purge users"),
        (ErasureNeed.RETENTION, "keptlog retain users"),
        (ErasureNeed.VERIFICATION, "keptlog erasure verify"),
        (ErasureNeed.SOURCE, None),
        (ErasureNeed.REPEAT, None),
    ],
)
@pytest.mark.parametrize("next_ms", [None, SOONER_MS])
def test_what_a_pass_brings_on_is_told_with_its_command(
    need: ErasureNeed, command: str | None, next_ms: int | None
) -> None:
    found = waiting(next_ms, (need, SOONER_MS))
    assert (erasure_step("users", found, NOW_MS).command, next_by_now(found, NOW_MS)) == (command, None)


def test_of_several_the_one_with_the_earliest_deadline_counts() -> None:
    needs = (ErasureNeed.CLEAN, None), (ErasureNeed.PURGE, SOONER_MS), (ErasureNeed.VERIFICATION, LATER_MS)
    assert erasure_step("users", waiting(SOONER_MS, *needs), NOW_MS).command == "keptlog purge users"


def test_what_a_newer_or_an_older_keptlog_has_stored_sends_people_to_the_list() -> None:
    for found in (waiting(SOONER_MS), waiting(SOONER_MS, ("something new", SOONER_MS))):
        assert erasure_step("users", found, NOW_MS).command == "keptlog erasure list"


def test_with_the_cleaner_off_nobody_is_sent_to_a_clean() -> None:
    found = waiting(SOONER_MS, (ErasureNeed.CLEAN, SOONER_MS))
    step = erasure_step("users", found, NOW_MS, is_cleaner_off=True)
    assert (step.command, "log.cleaner.enable=false" in step.todo) == (None, True)


def test_a_setting_that_was_lowered_since_the_last_look_keeps_nothing() -> None:
    """What is stored of the next step is as old as the last look; the remedy that is told has to be seen."""
    config = TopicConfig(cleanup_policy=("compact",), segment_ms=1000)
    segment = Segment("a", 0, 0, NOW_MS - 2000, NOW_MS - 2000, 1, 1)
    log = Log(TopicPartition("users", 0), config, (segment,), 0, 1, 0)
    found = since(ErasureNeed.CLEAN, NOW_MS - 2000)
    assert erasure_step("users", found, NOW_MS, [log]).command == "keptlog clean users"
    slow = replace(log, config=replace(config, segment_ms=3_600_000))
    assert erasure_step("users", found, NOW_MS, [slow]).command is None


def log_of(*segments: Segment, **settings: Any) -> Log:
    policy = settings.pop("policy", "compact")
    path = settings.pop("watermarks_path", None)
    config = TopicConfig(cleanup_policy=tuple(policy.split(",")), **settings)
    end = segments[-1].last_offset + 1 if segments else 3
    return Log(TopicPartition("users", 0), config, segments, 0 if segments else end, end, 0, watermarks_path=path)


def since(need: ErasureNeed, since_ms: int) -> OpenErasures:
    return OpenErasures(1, SOONER_MS, LATER_MS, (NeedyErasures(need, 1, SOONER_MS, since_ms),))


DAY_MS = 86_400_000
ASKED_MS = NOW_MS - DAY_MS
OF_THEN = Segment("a", 0, 1, ASKED_MS, ASKED_MS, 2, 1 << 20)
OF_NOW = Segment("b", 2, 2, NOW_MS, NOW_MS, 1, 1)


def test_a_segment_that_is_closed_since_the_last_look_keeps_nothing_however_the_log_goes_on() -> None:
    """The end of a log that gets records is never closed: it said for a week that nothing could be done."""
    found = since(ErasureNeed.CLEAN, ASKED_MS)
    full = log_of(OF_THEN, OF_NOW, segment_bytes=1 << 20, segment_ms=7 * DAY_MS)
    step = erasure_step("users", found, NOW_MS, [full])
    assert (step.command, step.cause) == (
        "keptlog clean users",
        "it needs a clean next, unless something keeps it from that",
    )
    assert erasure_step("users", found, NOW_MS, [replace(full, checkpoint=2)]).command == "keptlog clean users"
    still_open = replace(full, config=replace(full.config, segment_bytes=1 << 30))
    assert erasure_step("users", found, NOW_MS, [still_open]).command is None


def test_of_an_ingested_log_no_time_tells_when_its_tombstones_came() -> None:
    """They have their times from the source, so they may lie in what looks older."""
    full = log_of(OF_THEN, OF_NOW, segment_bytes=1 << 20, segment_ms=7 * DAY_MS)
    found = since(ErasureNeed.CLEAN, NOW_MS)
    assert erasure_step("users", found, NOW_MS, [full]).command is None
    assert erasure_step("users", found, NOW_MS, [replace(full, is_ingested=True)]).command == "keptlog clean users"


def test_what_came_after_the_request_keeps_no_older_record_from_retention() -> None:
    found = since(ErasureNeed.RETENTION, ASKED_MS)
    log = log_of(OF_THEN, OF_NOW, policy="delete", retention_ms=DAY_MS // 2)
    assert erasure_step("users", found, NOW_MS, [log]).command == "keptlog retain users"
    slow = replace(log, config=replace(log.config, retention_ms=2 * DAY_MS))
    assert erasure_step("users", found, NOW_MS, [slow]).command is None


def test_what_is_as_old_as_retention_ms_is_not_sent_to_a_retention_before_that_takes_it() -> None:
    found = replace(since(ErasureNeed.RETENTION, ASKED_MS), next_ms=LATER_MS)
    log = log_of(OF_THEN, policy="delete", retention_ms=DAY_MS)
    old_ms = OF_THEN.largest_timestamp_ms + DAY_MS
    assert erasure_step("users", found, old_ms, [log]).command is None
    assert erasure_step("users", found, old_ms + 1, [log]).command == "keptlog retain users"


AGED = replace(OF_THEN, first_timestamp_ms=NOW_MS - 6 * DAY_MS, largest_timestamp_ms=NOW_MS - 6 * DAY_MS)
TAKES_THE_OLD = {"policy": "compact,delete", "retention_ms": 5 * DAY_MS, "segment_ms": 7 * DAY_MS}


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
@pytest.mark.parametrize("is_ingested", [True, False])
def test_nobody_is_sent_to_a_retention_that_takes_what_others_left(need: ErasureNeed, *, is_ingested: bool) -> None:
    """In a topic that gets records one segment after the other is past its age."""
    needy = NeedyErasures(need, 1, SOONER_MS, NOW_MS, first_asked_ms=NOW_MS)
    found = OpenErasures(1, SOONER_MS, LATER_MS, (needy,))
    segments = (replace(AGED, tombstone_count=1), replace(OF_NOW, tombstone_count=1))
    log = replace(log_of(*segments, **TAKES_THE_OLD), is_ingested=is_ingested)
    assert erasure_step("users", found, NOW_MS, [log]).command is None
    assert (next_by_now(found, NOW_MS, [log]) or "").startswith(
        "nothing brings it on before 2027-01-15T09:00:00.000Z: "
    )
    all_of_it = replace(log, config=replace(log.config, retention_ms=0))
    later_ms = NOW_MS + 1
    assert erasure_step("users", found, later_ms, [all_of_it]).command == "keptlog retain users"


def test_who_waits_for_retention_is_sent_to_one_that_takes_all_that_was_there() -> None:
    found = since(ErasureNeed.RETENTION, ASKED_MS)
    newest = replace(OF_NOW, first_timestamp_ms=ASKED_MS - 1)
    log = log_of(AGED, newest, policy="delete", retention_ms=5 * DAY_MS)
    assert erasure_step("users", found, NOW_MS, [log]).command is None
    assert erasure_step("users", found, NOW_MS + 6 * DAY_MS, [log]).command == "keptlog retain users"
    came_since = log_of(AGED, OF_NOW, policy="delete", retention_ms=5 * DAY_MS)
    assert erasure_step("users", found, NOW_MS, [came_since]).command == "keptlog retain users"
    beside = replace(
        log_of(newest, policy="delete", retention_ms=5 * DAY_MS), topic_partition=TopicPartition("users", 1)
    )
    assert erasure_step("users", found, NOW_MS, [came_since, beside]).command is None


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY, ErasureNeed.RETENTION])
def test_what_was_waited_for_in_a_log_that_is_empty_by_now_needs_a_look(need: ErasureNeed) -> None:
    """It said for a week that nothing could be done, of a log in which nothing was left."""
    found, empty = since(need, ASKED_MS), log_of(retention_ms=2 * DAY_MS)
    for next_ms in (LATER_MS, SOONER_MS):
        step = erasure_step("users", replace(found, next_ms=next_ms), NOW_MS, [empty], is_cleaner_off=True)
        assert step.command == "keptlog erasure list"
    assert next_by_now(found, NOW_MS, [empty]) == "needs a look"


def test_what_the_others_need_is_told_behind_what_the_first_need_by_now() -> None:
    """Of "clean, verification" there was "a look" left once the log was emptied."""
    found, verified = since(ErasureNeed.CLEAN, ASKED_MS), since(ErasureNeed.VERIFICATION, ASKED_MS).needs
    others = tuple(replace(each, earliest_deadline_ms=None) for each in verified)
    both = replace(found, count=2, needs=(*found.needs, *others))
    assert next_by_now(both, NOW_MS, [log_of()]) == "needs a look; others need verification"
    kept = next_by_now(both, NOW_MS, [log_of(replace(OF_THEN, tombstone_count=1), segment_ms=7 * DAY_MS)]) or ""
    assert kept.startswith("nothing brings it on before ")
    assert kept.endswith("; others need verification")


def test_what_the_others_need_is_not_told_twice_where_the_first_need_it_too_by_now() -> None:
    found, aged = since(ErasureNeed.CLEAN, ASKED_MS), since(ErasureNeed.RETENTION, ASKED_MS).needs
    others = tuple(replace(each, earliest_deadline_ms=None) for each in aged)
    log = log_of(replace(OF_THEN, tombstone_count=1), policy="compact,delete", retention_ms=1000, segment_ms=7 * DAY_MS)
    assert next_by_now(replace(found, needs=(*found.needs, *others)), NOW_MS, [log]) == "needs retention"


def test_where_nothing_is_left_that_came_since_or_no_tombstone_a_look_is_next() -> None:
    cleaned = log_of(replace(OF_THEN, largest_timestamp_ms=ASKED_MS - 1), segment_ms=7 * DAY_MS)
    for need in (ErasureNeed.CLEAN, ErasureNeed.EXPIRY):
        assert erasure_step("users", since(need, ASKED_MS), NOW_MS, [cleaned]).command == "keptlog erasure list"


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_what_came_since_hides_nothing_that_went(need: ErasureNeed) -> None:
    """A log that gets records is never empty; a tombstone has the time of its request."""
    log, found = log_of(replace(OF_NOW, tombstone_count=1), segment_ms=7 * DAY_MS), since(need, ASKED_MS)
    assert erasure_step("users", found, NOW_MS, [log]).command == "keptlog erasure list"
    by_timestamp = replace(log, config=replace(log.config, compaction_strategy="timestamp"))
    for unsure in (replace(log, is_ingested=True), by_timestamp):
        assert erasure_step("users", found, NOW_MS, [unsure]).command is None


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_a_log_that_has_nothing_left_hides_no_other_that_keeps_them(need: ErasureNeed) -> None:
    """One request may have tombstones in both: a look would find nothing new, again and again."""
    left = log_of(replace(OF_THEN, tombstone_count=1), segment_ms=7 * DAY_MS)
    empty = replace(log_of(), topic_partition=TopicPartition("users", 1))
    found = since(need, ASKED_MS)
    assert erasure_step("users", found, NOW_MS, [left, empty]).command is None
    only_there = replace(found, needs=tuple(replace(each, partitions=(1,)) for each in found.needs))
    assert erasure_step("users", only_there, NOW_MS, [left, empty]).command == "keptlog erasure list"


@pytest.mark.parametrize("need", [ErasureNeed.CLEAN, ErasureNeed.EXPIRY])
def test_what_retention_takes_now_is_kept_by_no_open_segment_and_no_horizon(need: ErasureNeed) -> None:
    found = since(need, ASKED_MS)
    log = log_of(replace(OF_THEN, tombstone_count=1), policy="compact,delete", retention_ms=1000, segment_ms=7 * DAY_MS)
    assert erasure_step("users", found, NOW_MS, [log]).command == "keptlog retain users"
    assert next_by_now(found, NOW_MS, [log]) == "needs retention"
    assert erasure_step("users", found, NOW_MS, [log], is_cleaner_off=True).command is None
    slow = replace(log, config=replace(log.config, retention_ms=2 * DAY_MS))
    assert erasure_step("users", found, NOW_MS, [slow]).command is None
    assert (next_by_now(found, NOW_MS, [slow]) or "").startswith(
        "nothing brings it on before 2027-01-15T09:00:00.000Z: "
    )
    told = "and the records are not old enough (retention.ms)"
    compacted = replace(slow, config=replace(slow.config, cleanup_policy=("compact",)))
    assert [told in (next_by_now(found, NOW_MS, [each]) or "") for each in (slow, compacted)] == [True, False]


def test_nobody_is_sent_to_a_verification_that_finds_what_is_remembered_of_deleted_keys() -> None:
    versions = {"compaction_strategy": "timestamp", "keptlog_watermark_retention_ms": 2 * DAY_MS}
    found = since(ErasureNeed.VERIFICATION, ASKED_MS)
    step = erasure_step("users", found, NOW_MS, [log_of(OF_THEN, watermarks_path="marks", **versions)])
    assert "until 2027-01-16T08:00:00.000Z" in step.cause
    assert ("keptlog.watermark.retention.ms" in step.cause, step.command) == (True, None)
    ended = log_of(OF_THEN, watermarks_path="marks", **versions | {"keptlog_watermark_retention_ms": DAY_MS})
    for log in (log_of(OF_THEN, **versions), ended):
        assert erasure_step("users", found, NOW_MS, [log]).command == "keptlog erasure verify"


def test_what_is_remembered_of_deleted_keys_is_there_however_the_topic_is_compacted_by_now() -> None:
    """The strategy was altered, and people were sent to one verification after the other, each in vain."""
    altered = log_of(OF_THEN, watermarks_path="marks", keptlog_watermark_retention_ms=2 * DAY_MS)
    step = erasure_step("users", since(ErasureNeed.VERIFICATION, ASKED_MS), NOW_MS, [altered])
    assert ("until 2027-01-16T08:00:00.000Z" in step.cause, step.command) == (True, None)


def test_a_drop_here_is_sent_to_its_verification_whatever_is_remembered_of_other_keys() -> None:
    """It takes the watermarks of its keys, so that the verification finds none of them."""
    log = log_of(OF_THEN, watermarks_path="marks", compaction_strategy="timestamp")
    found = since(ErasureNeed.VERIFICATION, ASKED_MS)
    dropped = replace(found, needs=tuple(replace(each, is_any_dropped=True) for each in found.needs))
    assert erasure_step("users", dropped, NOW_MS, [log]).command == "keptlog erasure verify"
    assert (next_by_now(dropped, NOW_MS, [log]), erasure_step("users", found, NOW_MS, [log]).command) == (None, None)


def test_nobody_is_sent_to_a_verification_where_deleted_keys_are_remembered_for_ever() -> None:
    versions = {"compaction_strategy": "timestamp", "keptlog_watermark_retention_ms": LONG_MAX}
    log = log_of(OF_THEN, watermarks_path="marks", **versions)
    step = erasure_step("users", since(ErasureNeed.VERIFICATION, ASKED_MS), NOW_MS, [log])
    assert step.cause.startswith("a verification may find the keys for ever, as the topic is set: deleted keys ")
    assert step.command is None


@pytest.mark.parametrize("need", [ErasureNeed.PURGE, ErasureNeed.VERIFICATION])
def test_no_step_says_what_was_not_done(need: ErasureNeed) -> None:
    """It said that no purge had come yet, after the one that a tag had kept from it."""
    step = erasure_step("users", waiting(None, (need, SOONER_MS)), NOW_MS)
    assert "none" not in step.cause
    assert step.todo.endswith("if it brings nothing on, keptlog erasure list says what keeps each of them")


def test_doctor_tells_the_step_of_the_topic() -> None:
    condition = Condition(Matter.ERASURE, "users", "users has 1 erasure past the deadline", "users")
    found = {"users": waiting(LATER_MS, (ErasureNeed.EXPIRY, SOONER_MS))}
    [told] = condition_problems([condition], BrokerConfig(), SeenBeside(NOW_MS, found))
    assert (told.command, "delete.retention.ms" in told.cause) == (None, True)
