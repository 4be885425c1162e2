"""The rules by which doctor judges, at their edges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable, UnsupportedFormat
from keptlog.log.broker import BrokerConfig
from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log, Segment
from keptlog.log.told.conditions import Condition, Level, Matter, check_condition
from keptlog.log.told.examination import (
    DiskSeen,
    SeenBeside,
    ahead_problem,
    clock_problems,
    condition_problems,
    copied_problem,
    disk_problems,
    timestamp_problems,
    unreadable_problem,
)
from keptlog.log.told.problem import CheckUp, Diagnosis, Problem, diagnosis_of
from keptlog.log.topic_partition import TopicPartition

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
CLEANER_OFF = BrokerConfig(log_cleaner_enable=False)
ROOMY = DiskSeen("/home", is_read_only=False, free_bytes=2**30, free_files=10**6)


def test_clocks_may_differ_by_a_minute() -> None:
    assert clock_problems(NOW_MS + MINUTE_MS, NOW_MS, 10**12) == []
    [slow] = clock_problems(NOW_MS + MINUTE_MS + 1, NOW_MS, 10**12)
    assert "this clock is slow" in slow.cause
    assert clock_problems(NOW_MS - 5, NOW_MS, 5) == []
    [fast] = clock_problems(NOW_MS - 6, NOW_MS, 5)
    assert "far ahead" in fast.cause


def test_where_the_time_of_records_is_set_depends_on_where_they_come_from() -> None:
    """An ingest keeps the times of its source, whatever the topic here says."""
    late = Segment("s", 0, 0, NOW_MS, NOW_MS + 3_600_001, 1, size_bytes=1)
    ahead = Log(TopicPartition("t", 0), TopicConfig(), (late,), 0, 1)
    [appended] = timestamp_problems([ahead], NOW_MS)
    assert "keptlog topic alter t --config message.timestamp.type=LogAppendTime" in appended.todo
    [ingested] = timestamp_problems([replace(ahead, is_ingested=True)], NOW_MS)
    assert "at the source message.timestamp.type=LogAppendTime dates what comes from now on" in ingested.todo
    assert "topic alter" not in ingested.todo


def test_a_home_without_commits_says_nothing_of_the_clock() -> None:
    assert clock_problems(0, NOW_MS, 5) == []


def test_a_disk_is_full_of_bytes_or_of_files_or_read_only() -> None:
    assert disk_problems(ROOMY, []) == []
    assert disk_problems(replace(ROOMY, free_files=None), []) == []
    [full] = disk_problems(replace(ROOMY, free_bytes=2**26 - 1), [])
    assert full.command == "keptlog purge"
    [nearly] = disk_problems(replace(ROOMY, free_bytes=2**25), [])
    assert nearly.what == (
        "the disk of /home has room for 32.0 MiB, and with less than 64.0 MiB appends and cleans soon fail"
    )
    segment = Segment("s", 0, 0, 0, 0, 1, size_bytes=2**31)
    large = Log(TopicPartition("users", 0), TopicConfig(), (segment,), 0, 1)
    [too_large] = disk_problems(ROOMY, [large])
    assert too_large.what == (
        "the disk of /home has room for 1.0 GiB, and a clean of the largest log may write 2.0 GiB"
    )
    [many] = disk_problems(replace(ROOMY, free_files=999), [])
    assert "room for 999 files" in many.what
    [read_only] = disk_problems(replace(ROOMY, is_read_only=True, free_bytes=0), [])
    assert read_only.command is None
    assert read_only.cause == "its disk is mounted read-only, as after an error"
    [shut] = disk_problems(replace(ROOMY, is_shut=True), [])
    assert "can't be written to by this user" in shut.what
    assert "dmesg" not in shut.todo


def test_a_home_beside_its_catalog_is_told_with_what_follows_for_topics_that_lie_on_its_disk() -> None:
    beside, here = replace(ROOMY, is_beside=True), [Log(TopicPartition("users", 0), TopicConfig(), (), 0, 0)]
    told = {
        (is_read_only, bool(logs)): disk_problems(replace(beside, is_read_only=is_read_only, is_shut=True), logs)[
            0
        ].what
        for is_read_only in (True, False)
        for logs in ([], here)
    }
    assert "nothing is appended" in told.pop((True, True))
    assert all("so what is found is not remembered" in each for each in told.values())


@pytest.mark.parametrize(
    ("error", "command", "todo"),
    [
        (LogCorrupt("changed").mended_by("keptlog repair users"), "keptlog repair users", "run keptlog repair users"),
        (LogCorrupt("cut off"), None, "put the file back from a copy of the storage"),
        (LogCorrupt("no offset; set it back").of_property(), None, "do what it says"),
        (UnsupportedFormat("newer"), None, "upgrade keptlog here"),
        (StorageUnavailable("away"), None, "mount the storage"),
        (InvalidConfig("odd"), None, "do what it says"),
    ],
)
def test_why_a_topic_is_unreadable_decides_what_is_to_be_done(
    error: LogCorrupt | UnsupportedFormat | StorageUnavailable | InvalidConfig, command: str | None, todo: str
) -> None:
    found = unreadable_problem("users", error)
    assert (found.what, found.command) == (str(error), command)
    assert found.todo.startswith(todo)


def test_every_matter_that_people_are_told_of_has_a_next_step_but_those_that_have_a_check_of_their_own() -> None:
    told = [Condition(matter, f"users-{n}", "it is so", level=Level.BROKEN) for n, matter in enumerate(Matter)]
    asked_anyhow = {Matter.UNREADABLE, Matter.CATALOG, Matter.SPARK}
    for broker in (BrokerConfig(), CLEANER_OFF):
        assert len(list(condition_problems(told, broker))) == len(set(Matter) - asked_anyhow)
        assert list(condition_problems([replace(each, level=Level.OPEN) for each in told], broker)) == []


@pytest.mark.parametrize("matter", [Matter.DEADLINE, Matter.UNCLEANABLE])
def test_with_the_cleaner_off_nobody_is_sent_to_a_clean_that_does_nothing(matter: Matter) -> None:
    condition = Condition(matter, "users-0", "it is so")
    [on] = condition_problems([condition], BrokerConfig())
    assert on.command == "keptlog clean users-0"
    [off] = condition_problems([condition], CLEANER_OFF)
    assert off.command is None
    assert "take log.cleaner.enable=false out of the broker settings" in off.todo


def test_a_problem_outweighs_what_was_not_looked_at_and_a_hint_is_none() -> None:
    problem = Problem("users", "it is broken", "somebody", "mend it")
    fine = CheckUp("a", "", (replace(problem, is_hint=True),))
    unseen, wrong = CheckUp("b", "", (), ("why",)), CheckUp("c", "", (problem,), ("why",))
    assert diagnosis_of([fine]) is Diagnosis.FINE
    assert diagnosis_of([fine, unseen]) is Diagnosis.NOT_LOOKED_AT
    assert diagnosis_of([fine, unseen, wrong]) is Diagnosis.WRONG


def test_a_check_that_only_a_deadline_broke_has_another_cause_than_a_damaged_file() -> None:
    late = {"G8": "tag audit keeps 1 retired segment, past its deadline", "max_compaction_lag": "1 h late"}
    [of_late] = condition_problems([check_condition("users-0", "users", late)], BrokerConfig())
    assert of_late.cause.startswith("a deadline has passed")
    [of_damage] = condition_problems([check_condition("users-0", "users", late | {"G1": "is cut off"})], BrokerConfig())
    assert of_damage.cause.startswith("a file was damaged")


def test_a_log_that_is_late_because_its_cleans_fail_is_one_problem() -> None:
    told = [
        Condition(Matter.UNCLEANABLE, "users-0", "users-0 is uncleanable since noon: a.parquet has 4 bytes", "users"),
        Condition(Matter.DEADLINE, "users-0", "users-0 has records that were to be compacted by noon", "users"),
        Condition(Matter.DEADLINE, "users-1", "users-1 has records that were to be compacted by noon", "users"),
    ]
    [first, other] = condition_problems(told, BrokerConfig())
    assert first.what == f"{told[0].text}; so {told[1].text}"
    assert (first.command, other.command) == ("keptlog clean users-0", "keptlog clean users-1")


@pytest.mark.parametrize("count", [1, 10, 11, 10_000])
def test_a_folder_of_ten_thousand_files_makes_no_longer_line_than_one_of_ten(count: int) -> None:
    files = [f"file:///lake/t/metadata/{number:05}.metadata.json" for number in range(count)]
    for found in (ahead_problem("t", "the storage knows more", files), copied_problem("t", files)):
        told = found.what + found.todo
        assert told.count("metadata.json") == min(count, 10)
        assert (f" and {count - 10} more (--json has all, as files)" in told) is (count > 10)
        assert found.files == tuple(files)


def test_where_a_file_is_to_be_put_back_first_nobody_is_sent_to_a_command() -> None:
    told = [
        Condition(Matter.UNCLEANABLE, "users-0", "users-0 is uncleanable: …/a.parquet has 4 bytes", "users"),
        Condition(Matter.UNCLEANABLE, "users-1", "users-1 is uncleanable: a record has no key", "users"),
        check_condition("users-0", "users", {"G1": "…/a.parquet has 4 bytes"}),
    ]
    beside = SeenBeside(wrong_files=["a.parquet"])
    mended, other, verified = condition_problems(told, BrokerConfig(), beside)
    assert (mended.command, verified.command, other.command) == (None, None, "keptlog clean users-1")
    assert mended.todo == "put that file back, then run keptlog clean users-0"
    assert verified.todo == "put that file back, then run keptlog verify users-0"
    off, _, _ = condition_problems(told, CLEANER_OFF, beside)
    assert "take log.cleaner.enable=false out" in off.todo
