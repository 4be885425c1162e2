"""Where keptlog answers otherwise on purpose, a case is held to Kafka's answer, which is computed from the case."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.log.config import TopicConfig
from tests.conformance.cases import Difference
from tests.conformance.kinds import plain, roll, state, strategy
from tests.conformance.logs import RuleLog


def test_groups_of_kafka_are_computed_from_the_case() -> None:
    segments = [{"base": 3 * index, "size": 100} for index in range(4)]
    case = {"segments": segments, "max_size": 201, "max_index": 9, "first_uncleanable": 12}
    (difference,) = plain.run_grouping(case | {"expect": {"groups": [[0, 3], [6, 9]]}})
    assert difference.adr == 19
    for wrong in ([[0, 3, 6, 9]], [[0], [3], [6], [9]], [[0, 3], [6], [9]]):
        with pytest.raises(AssertionError):
            plain.run_grouping(case | {"expect": {"groups": wrong}})


@pytest.mark.parametrize(
    "wrong", [{"state": None}, {"state": "paused(2)"}, {"state": "paused(1)", "error": "IllegalState"}]
)
def test_a_cleaning_state_of_kafka_is_told_exactly(wrong: dict[str, Any]) -> None:
    pause, resume = {"op": "abort_and_pause"}, {"op": "resume"}
    asked = [{"op": "set", "value": "aborted"}, {"op": "done_cleaning", "end": 5, "state": "paused(1)"}]
    asked += [pause | {"state": "paused(2)"}, resume | {"state": "paused(1)"}, resume | {"state": None}]
    assert state.run({"ops": [*asked, resume | {"error": "IllegalStateException"}]})[0].adr == 13
    with pytest.raises(AssertionError):
        state.run({"ops": [*asked[:3], resume | wrong]})


def rolled(*counts: int, **config: int) -> list[Difference]:
    """Appends without a timestamp, the clock a second later at each."""
    events = [{"op": "append", "now": 1_000 * at, "ts": -1, "segments": count} for at, count in enumerate(counts)]
    settings = {name if name[0] == "_" else name.replace("_", "."): value for name, value in config.items()}
    return roll.run({"config": {"segment.ms": 1_500} | settings, "start": 0, "events": events})


def test_kafka_rolls_what_has_no_timestamp_by_its_age_and_by_its_jitter() -> None:
    assert {each.adr for each in rolled(1, 1, 2, 2)} == {17}
    assert {each.adr for each in rolled(1, 2, 3, 4, _active_roll_jitter_ms=600)} == {17}
    for wrong in ((1, 2, 2), (1, 1, 1), (1, 1, 3), (1, 1, 0)):
        with pytest.raises(AssertionError):
            rolled(*wrong)
    with pytest.raises(AssertionError):
        rolled(1, 1, 2, _active_roll_jitter_ms=600)


@pytest.mark.parametrize("wrong", [[], [7], [0, 0], [1, 0]])
def test_a_dialect_leaves_nothing_that_was_not_there_and_something_of_each_key(wrong: list[int]) -> None:
    records = [{"offset": 0, "key": "a", "headers": [["s", 5]]}, {"offset": 1, "key": "a", "headers": [["s", -9]]}]
    case: dict[str, Any] = {"records": records, "dialect": "pr8103"}
    case |= {"config": {"compaction.strategy": "header", "compaction.strategy.header": "s"}}
    with pytest.raises(AssertionError):
        strategy.run(
            case | {"expect": {"surviving_offsets": wrong}}, lambda settings: RuleLog(TopicConfig.of(settings))
        )


@pytest.mark.parametrize(
    ("props", "is_valid"),
    [
        ({"segment.index.bytes": 4}, True),
        ({"segment.index.bytes": 3}, False),
        ({"preallocate": "1"}, False),
        ({"compression.gzip.level": 0}, False),
        ({"segment.index.bytes": 4, "min.cleanable.dirty.ratio": 1.2}, False),
        ({"log.cleaner.io.buffer.load.factor": 0}, True),
        ({"log.cleaner.io.max.bytes.per.second": -1, "log.cleaner.threads": 0}, False),
    ],
)
def test_what_keptlog_refuses_for_it_would_mean_nothing_is_held_to_kafkas_range(
    props: dict[str, Any], is_valid: bool
) -> None:
    assert {each.adr for each in plain.run_config({"props": props, "expect": {"valid": is_valid}})} <= {18}
    with pytest.raises(AssertionError):
        plain.run_config({"props": props, "expect": {"valid": not is_valid}})


def test_a_pause_of_what_is_not_compacted_leaves_a_compacted_log_alone() -> None:
    case = {"ops": [{"op": "pause_non_compacted", "state": None}], "config": {"cleanup.policy": "compact,delete"}}
    assert state.run(case)
    for policy in ({"cleanup.policy": "delete"}, {}):
        with pytest.raises(AssertionError):
            state.run(case | {"config": policy})


def test_a_round_moves_no_log_that_has_a_state() -> None:
    grab = {"op": "grab"}
    assert state.run({"ops": [{"op": "set", "value": "paused(1)"}, grab | {"state": "paused(1)"}]})
    assert state.run({"ops": [grab | {"state": "in_progress"}, {"op": "done_deleting", "state": None}]})
    for wrong in ("in_progress", None):
        with pytest.raises(AssertionError):
            state.run({"ops": [{"op": "set", "value": "paused(1)"}, grab | {"state": wrong}]})
    with pytest.raises(AssertionError):
        state.run({"ops": [grab | {"state": "paused(1)"}]})


def test_who_aborts_a_clean_goes_on_when_it_has_stopped() -> None:
    begun = [
        {"op": "set", "value": "in_progress"},
        {"op": "abort", "state": "aborted"},
        {"op": "done_cleaning", "end": 3},
    ]
    assert state.run({"ops": [*begun, {"op": "check_done", "state": None}]})
    assert state.run({"ops": [*begun, {"op": "resume", "error": "IllegalState"}]})
    for wrong in ("aborted", "paused(2)"):
        with pytest.raises(AssertionError):
            state.run({"ops": [*begun, {"op": "check_done", "state": wrong}]})


def test_a_maximum_lag_without_a_policy_rolls_by_kafkas_default_or_by_what_it_is_for() -> None:
    assert rolled(1, 1, 2, max_compaction_lag_ms=500)
    assert rolled(1, 2, 3, max_compaction_lag_ms=500)
    with pytest.raises(AssertionError):
        rolled(1, 2, 2, max_compaction_lag_ms=500)
