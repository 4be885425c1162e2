"""A case of ``select``: which logs Kafka looks at, and how a case may describe them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.cases import Difference, NotUnderstoodError
from tests.conformance.kinds import select

NOW_MS = 1_700_000_000_000
OLD_MS = NOW_MS - 10_000
SEEN_BY_NOBODY: list[dict[str, Any]] = [{"state": "in_progress"}, {"uncleanable": True}, {"policy": "delete"}]


def segment(base: int, size: int = 100, **times: int | None) -> dict[str, Any]:
    return {"base": base, "size": size, "first_ts": OLD_MS, "largest_ts": OLD_MS} | times


def log(name: str = "l", *described: dict[str, Any], **more: object) -> dict[str, Any]:
    segments = list(described) or [segment(0), segment(10), {"base": 20, "size": 0}]
    return {"name": name, "leo": 20, "checkpoint": 0, "segments": segments} | more


def run(*logs: dict[str, Any], **expect: object) -> list[Difference]:
    return select.run({"now": NOW_MS, "logs": list(logs), "expect": expect})


@pytest.mark.parametrize("hidden", SEEN_BY_NOBODY)
def test_a_checkpoint_is_reset_only_of_a_log_that_kafka_looks_at(hidden: dict[str, Any]) -> None:
    run(log(checkpoint=50) | hidden, checkpoints_reset={}, selected=None)
    with pytest.raises(AssertionError):
        run(log(checkpoint=50) | hidden, checkpoints_reset={"l": 0})
    with pytest.raises(AssertionError):
        run(log(checkpoint=50), checkpoints_reset={})


@pytest.mark.parametrize("hidden", SEEN_BY_NOBODY)
def test_sums_go_over_the_logs_that_kafka_looks_at(hidden: dict[str, Any]) -> None:
    late = log("late", config={"max.compaction.lag.ms": 1_000}) | hidden
    nothing = {"max_compaction_delay_ms": 0, "max_dirty_percent": 0, "cleanable_partitions": 0, "selected": None}
    run(late, **nothing)
    run(late, log("clean", checkpoint=20), **nothing)
    with pytest.raises(AssertionError):
        run(late, max_compaction_delay_ms=9_000)


def test_without_logs_all_sums_are_none() -> None:
    assert run(selected=None, max_dirty_percent=0, max_compaction_delay_ms=0, cleanable_partitions=0) == []


def test_an_uncleanable_log_is_late_only_here() -> None:
    late = log(config={"max.compaction.lag.ms": 1_000}, uncleanable=True)
    (difference,) = run(late, max_compaction_delay_ms=0)
    assert difference.adr == 16
    assert run(late, max_dirty_percent=0) == []


@pytest.mark.parametrize("policy", [["compact", "delete"], "compact,delete", ["compact"]])
def test_a_policy_may_be_a_list(policy: object) -> None:
    assert run(log(policy=policy), selected="l", max_dirty_percent=100) == []


def test_a_time_of_null_is_not_known() -> None:
    untimed = log("l", segment(0, first_ts=None), {"base": 20, "size": 0, "first_ts": None, "largest_ts": None})
    assert run(untimed | {"config": {"max.compaction.lag.ms": 1_000}}, max_compaction_delay_ms=9_000) == []


@pytest.mark.parametrize(("hw", "lso", "wanted"), [(15, None, 15), (15, 12, 12), (9, 12, 9)])
def test_the_high_watermark_bounds_what_is_stable(hw: int, lso: int | None, wanted: int) -> None:
    assert run(log(hw=hw, lso=lso), per_log={"l": {"first_uncleanable_dirty": wanted}}) == []


def test_a_clean_ends_at_an_empty_segment_that_holds_the_last_stable_offset() -> None:
    with_empty = log("l", segment(0), {"base": 10, "size": 0}, segment(20), {"base": 30, "size": 0}, leo=30, lso=15)
    expect = {"cleanable_bytes": 100, "first_uncleanable_segment": 10, "first_uncleanable_dirty": 15}
    assert run(with_empty, per_log={"l": expect}) == []


@pytest.mark.parametrize("first_ms", [0, -1])
def test_kafka_takes_no_lag_from_a_segment_without_a_first_timestamp(first_ms: int) -> None:
    strict = {"max.compaction.lag.ms": 1_000, "min.cleanable.dirty.ratio": 1.0}
    untimed = log("l", segment(0, first_ts=first_ms), {"base": 20, "size": 0}, config=strict)
    nobody = {"selected": None, "cleanable_partitions": 0, "max_compaction_delay_ms": 0}
    (difference,) = run(untimed, **nobody, per_log={"l": {"need_compaction_now": False}})
    assert difference.adr == 9
    for wrong in ({"selected": "l"}, {"cleanable_partitions": 1}, {"max_compaction_delay_ms": 1}):
        with pytest.raises(AssertionError):
            run(untimed, **wrong)


def test_a_log_with_an_untimed_segment_is_late_by_the_others() -> None:
    late = log("l", segment(0, first_ts=0, largest_ts=OLD_MS - 500), segment(10), {"base": 20, "size": 0})
    late["config"] = {"max.compaction.lag.ms": 1_000}
    (difference,) = run(late, selected="l", cleanable_partitions=1, max_compaction_delay_ms=9_000)
    assert difference.adr == 9
    with pytest.raises(AssertionError):
        run(late, max_compaction_delay_ms=8_999)
    with pytest.raises(AssertionError):
        run(late, max_compaction_delay_ms=9_500)


@pytest.mark.parametrize("place", [{"checkpoint": 20}, {"checkpoint": None, "log_start": 20}])
def test_an_active_segment_that_is_clean_is_where_kafkas_clean_would_end(place: dict[str, Any]) -> None:
    clean = log("l", segment(0), segment(10)) | place
    (difference,) = run(clean, per_log={"l": {"first_uncleanable_segment": 10, "cleanable_bytes": 0}})
    assert difference.adr == 5
    for wrong in (0, 20):
        with pytest.raises(AssertionError):
            run(clean, per_log={"l": {"first_uncleanable_segment": wrong}})
    with pytest.raises(AssertionError):
        run(clean | {"checkpoint": 19, "log_start": 0}, per_log={"l": {"first_uncleanable_segment": 20}})


def test_a_log_may_have_no_segments() -> None:
    empty = {"name": "l", "leo": 0, "segments": []}
    assert run(empty, selected=None, per_log={"l": {"ratio": float("nan"), "first_dirty": 0}}) == []


def test_a_cleaning_state_must_be_one_of_kafkas() -> None:
    assert run(log(state="none"), selected="l") == []
    assert run(log(state="paused(1)"), selected=None)[0].adr == 13
    with pytest.raises(NotUnderstoodError, match="pausing"):
        run(log(state="pausing"), selected=None)


def test_a_segment_without_timestamps_is_as_young_in_kafka_as_its_file() -> None:
    untimed = {"base": 0, "size": 100, "first_ts": None, "largest_ts": None}
    config = {"min.compaction.lag.ms": 5_000, "max.compaction.lag.ms": 6_000}
    young, old = (log("l", untimed | {"mtime": NOW_MS - age}, segment(10), config=config) for age in (4_999, 5_000))
    expect = {"first_uncleanable_dirty": 0, "first_uncleanable_segment": 0, "cleanable_bytes": 0}
    (difference,) = [each for each in run(young, selected=None, per_log={"l": expect}) if each.adr == 17]
    assert "a file does not tell" in str(difference)
    run(old, selected="l", per_log={"l": {"first_uncleanable_dirty": 10, "cleanable_bytes": 100}})
    for wrong, described in (("l", young), (None, old)):
        with pytest.raises(AssertionError):
            run(described, selected=wrong)


def test_what_a_case_tells_of_one_log_is_asked_of_any_policy() -> None:
    late = log(config={"max.compaction.lag.ms": 1_000}, policy="delete")
    for of_it in ({"max_compaction_delay_ms": 9_000, "need_compaction_now": True}, {"max_compaction_delay_ms": 0}):
        assert run(late, selected=None, max_compaction_delay_ms=0, per_log={"l": of_it}) == []
    for policy in ("delete", "compact"):
        with pytest.raises(AssertionError):
            run(late | {"policy": policy}, per_log={"l": {"max_compaction_delay_ms": 8_999}})
    with pytest.raises(AssertionError):
        run(late | {"policy": "compact"}, per_log={"l": {"max_compaction_delay_ms": 0}})
