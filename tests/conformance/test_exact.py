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
