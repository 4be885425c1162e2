"""What Kafka keeps besides records is told by a case exactly: any other word of it fails."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.log.config import TopicConfig
from tests.conformance.cases import Difference
from tests.conformance.kinds import clean
from tests.conformance.logs import RuleLog

NOW_MS = 1_700_000_000_000
PRODUCER = {"pid": 1, "epoch": 0}
ABORTED = {
    "op": "append",
    "batches": [
        {"base": 0, "records": [[0, "a", "v", NOW_MS], [1, "b", "v", NOW_MS]], "seq": 0, "txn": True} | PRODUCER,
        {"base": 2, "control": "ABORT"} | PRODUCER,
        {"base": 3, "records": [[3, "c", "v", NOW_MS]]},
    ],
}
LEFT = {
    "aborted_txns": [[1, 0, 2]],
    "batch_last_offsets": [1, 2, 3],
    "last_sequences": {"1": 1},
    "value_and_marker_offsets": [2, 3],
    "keys_with_value": ["c"],
    "messages_read": 4,
    "messages_written": 2,
    "next_dirty": 4,
}
"""The aborted batch stays, empty, for its producer's sequence; so the marker is needed."""


def cleaned(*steps: dict[str, Any], **about: object) -> list[Difference]:
    return clean.run({"steps": list(steps)} | about, lambda settings: RuleLog(TopicConfig.of(settings)))


def pass_of(upper: int, **expect: object) -> dict[str, Any]:
    return {"op": "clean", "first_dirty": 0, "upper": upper, "now": NOW_MS, "expect": expect}


def test_what_kafka_leaves_of_a_transaction_is_told_exactly() -> None:
    differences = cleaned(ABORTED, {"op": "roll"}, pass_of(4, **LEFT))
    assert {each.adr for each in differences} == {15}


@pytest.mark.parametrize(
    "wrong",
    [
        {"aborted_txns": []},
        {"aborted_txns": [[1, 0, 3]]},
        {"batch_last_offsets": [2, 3]},
        {"batch_last_offsets": [1, 3]},
        {"last_sequences": {"1": 0}},
        {"last_sequences": {}},
        {"value_and_marker_offsets": [3]},
        {"value_and_marker_offsets": [0, 2, 3]},
        {"keys_with_value": ["a", "c"]},
        {"messages_read": 3},
        {"messages_written": 3},
        {"next_dirty": 3},
    ],
)
def test_anything_else_of_a_transaction_fails(wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        cleaned(ABORTED, {"op": "roll"}, pass_of(4, **wrong))


@pytest.mark.parametrize(("rule", "is_kept"), [("none", False), ("upper_bound", True), ("high_watermark", False)])
def test_an_empty_last_batch_stays_by_the_rule_that_a_case_needs(rule: str, *, is_kept: bool) -> None:
    two = {"op": "append", "batches": [{"base": 0, "records": [[0, "a", None, NOW_MS]]}]}
    first = pass_of(1, data=[[0, "a", None]])
    gone: list[dict[str, Any]] = [two, {"op": "roll"}, first, pass_of(1, batch_last_offsets=[0] if is_kept else [])]
    config = {"delete.retention.ms": 0}
    assert {each.adr for each in cleaned(*gone, last_batch_rule=rule, config=config)} <= {15}
    gone[-1] = pass_of(1, batch_last_offsets=[] if is_kept else [0])
    with pytest.raises(AssertionError):
        cleaned(*gone, last_batch_rule=rule, config=config)


def test_a_producer_that_has_expired_keeps_no_batch() -> None:
    steps = ABORTED, {"op": "expire_producers", "pids": [1]}, {"op": "roll"}
    cleaned(*steps, pass_of(4, batch_last_offsets=[2, 3], last_sequences={}), last_batch_rule="none")
    with pytest.raises(AssertionError):
        cleaned(*steps, pass_of(4, batch_last_offsets=[1, 2, 3]), last_batch_rule="none")
