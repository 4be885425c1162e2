"""A clean that ends where its offset map is full says so, and nobody is told that no clean has come."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import Home, new_id, open_home
from keptlog.log.assessment import assess
from keptlog.log.broker import BrokerConfig
from keptlog.log.record import NewRecord
from keptlog.log.steps import Compact
from keptlog.log.told.conditions import Condition, Matter
from keptlog.log.told.early_end import EarlyEnd, late_though_cleaned
from keptlog.log.told.examination import SeenBeside, condition_problems
from keptlog.log.told.explain import explain
from keptlog.log.told.problem import Problem
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import Cleaner, Pass
from tests.in_process import in_process_engine
from tests.passes.conftest import DAY_MS, NOW_MS

LOG = TopicPartition("t", 0)
KEYS_A_PASS = 2
BROKER = BrokerConfig(log_cleaner_io_buffer_load_factor=KEYS_A_PASS / (134_217_728 // 24) * 1.01)
LARGER_MAP = "(raise log.cleaner.dedupe.buffer.size, or set keptlog.offset.map.overflow=shuffle)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A log of five keys, late by six days, in one segment."""
    home = open_home(tmp_path, {})
    home.store.create_topic("t", 1, {"cleanup.policy": "compact", "max.compaction.lag.ms": str(DAY_MS)})
    append(home, *"abcde", age_ms=7 * DAY_MS)
    return home


def append(home: Home, *keys: str, age_ms: int, now_ms: int = NOW_MS) -> None:
    records = [NewRecord(key.encode(), b"1", now_ms - age_ms, 0) for key in keys]
    home.store.append("t", records, new_id(), now_ms)


def clean(home: Home, broker: BrokerConfig = BROKER) -> Pass:
    cleaner = Cleaner(home.store, in_process_engine(home.store.files), broker)
    done = cleaner.commit(cleaner.stage(cleaner.begin([], new_id(), now_ms=NOW_MS)))
    assert done.committed
    return done


def told_by_explain(home: Home) -> list[str]:
    [log] = home.store.logs("t")
    return [rule for rule in explain(assess(log, NOW_MS)).rules if rule.startswith("the clean section ends")]


def told_by_doctor(home: Home, broker: BrokerConfig = BROKER) -> Problem:
    observed = home.store.observe("t")
    assessments = [assess(log, NOW_MS) for log in observed.logs]
    late = late_though_cleaned(assessments, observed.last_passes, broker)
    condition = Condition(Matter.DEADLINE, "t-0", "t-0 is late", "t")
    [problem] = condition_problems([condition], broker, SeenBeside(NOW_MS, late_though_cleaned=late))
    return problem


def test_a_clean_says_up_to_where_it_came_until_one_has_come_to_the_end(home: Home) -> None:
    assert clean(home).early_ends == {LOG: EarlyEnd(2, 5)}
    assert clean(home).early_ends == {LOG: EarlyEnd(4, 5)}
    assert clean(home).early_ends == {}


def test_it_says_what_helps() -> None:
    assert str(EarlyEnd(2, 5)) == (
        "its offset map was full at offset 2, and 5 was to be reached: clean again for the rest, or let a pass take "
        f"more keys {LARGER_MAP}"
    )


def test_a_clean_that_is_handed_on_to_a_later_run_says_it_too(home: Home) -> None:
    cleaner = Cleaner(home.store, in_process_engine(home.store.files), BROKER)
    staged = cleaner.stage(cleaner.begin([], new_id(), now_ms=NOW_MS))
    assert cleaner.commit(staged.taken_up(NOW_MS + 5)).early_ends == {LOG: EarlyEnd(2, 5)}


def test_a_clean_in_legs_says_it_of_the_whole(home: Home) -> None:
    append(home, *"fg", age_ms=6 * DAY_MS)
    of_legs = BrokerConfig(
        log_cleaner_io_buffer_load_factor=BROKER.log_cleaner_io_buffer_load_factor * 3,
        keptlog_cleaner_commit_max_bytes=1,
    )
    done = clean(home, of_legs)
    [step] = done.plan.steps
    assert isinstance(step, Compact)
    assert (len(step.legs), step.end_offset) == (2, 7)
    assert done.early_ends == {LOG: EarlyEnd(6, 7)}


def test_explain_says_where_the_clean_section_ends_in_the_middle_of_a_segment(home: Home) -> None:
    assert told_by_explain(home) == []
    clean(home)
    assert told_by_explain(home) == [
        "the clean section ends at offset 2, where the offset map of a clean was full; the segment that it lies in "
        "counts as clean and as dirty"
    ]
    clean(home)
    clean(home)
    assert told_by_explain(home) == []


def test_a_log_start_in_the_middle_of_a_segment_is_no_full_map(home: Home) -> None:
    home.store.delete_records(LOG, 2, None)
    assert told_by_explain(home) == []


def test_doctor_says_that_a_late_log_was_cleaned_and_that_its_map_was_full(home: Home) -> None:
    assert told_by_doctor(home).cause.startswith("no clean has come since it was due")
    clean(home)
    found = told_by_doctor(home)
    assert found.cause == "a clean has come since it was due, and ended where its offset map was full"
    assert found.todo == f"clean it again until it is done, or let a pass take more keys {LARGER_MAP}"
    assert found.command == "keptlog clean t-0"
    assert found.what == "t-0 is late; its last clean ended at 2027-01-15T08:00:00.000Z"


def test_a_log_that_is_late_by_old_records_that_came_after_its_clean_had_no_full_map(home: Home) -> None:
    clean(home, BrokerConfig())
    append(home, "z", age_ms=3 * DAY_MS)
    assert told_by_doctor(home, BrokerConfig()).cause == (
        "a clean has come since it was due, and did not take these records"
    )


def test_a_clean_from_before_the_deadline_is_not_taken_for_one_that_came_since(home: Home) -> None:
    clean(home, BrokerConfig())
    append(home, "z", age_ms=0)
    log = home.store.observe("t")
    later = [assess(each, NOW_MS + 3 * DAY_MS) for each in log.logs]
    assert late_though_cleaned(later, log.last_passes, BrokerConfig()) == {}


def test_with_the_cleaner_off_a_late_log_is_told_as_before(home: Home) -> None:
    clean(home)
    off = BrokerConfig(log_cleaner_enable=False)
    assert "log.cleaner.enable=false" in told_by_doctor(home, off).cause
