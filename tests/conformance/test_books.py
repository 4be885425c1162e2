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


def row(offset: int, key: str, value: str | None, **of_batch: object) -> dict[str, Any]:
    return {"op": "append", "batches": [{"base": offset, "records": [[offset, key, value, NOW_MS]]} | of_batch]}


ABORTED_NOTHING = {"op": "append", "batches": [{"base": 4, "control": "ABORT"} | PRODUCER]}


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
    steps = [row(0, "a", None), {"op": "roll"}, row(1, "b", "v"), {"op": "set_hw", "value": 2}]
    steps.append(pass_of(1, data=[[0, "a", None], [1, "b", "v"]]))
    right, wrong = ([0, 1], [1]) if is_kept else ([1], [0, 1])
    config = {"delete.retention.ms": 0}
    differences = cleaned(*steps, pass_of(1, batch_last_offsets=right), last_batch_rule=rule, config=config)
    assert {each.adr for each in differences} <= {15}
    with pytest.raises(AssertionError):
        cleaned(*steps, pass_of(1, batch_last_offsets=wrong), last_batch_rule=rule, config=config)


@pytest.mark.parametrize("left", [[], [0]])
def test_a_high_watermark_that_is_not_told_is_nowhere_or_at_the_end(left: list[int]) -> None:
    steps = row(0, "a", None), {"op": "roll"}, pass_of(1, data=[[0, "a", None]])
    about = {"last_batch_rule": "high_watermark", "config": {"delete.retention.ms": 0}}
    cleaned(*steps, pass_of(1, batch_last_offsets=left), **about)


def test_what_kafka_would_clean_of_an_open_transaction_is_no_mistake_of_a_case() -> None:
    steps = row(0, "a", "v"), row(1, "a", "w", seq=0, txn=True, **PRODUCER), {"op": "roll"}
    cleaned(*steps, pass_of(2, data=[[1, "a", "w"]], map={"a": 1}, next_dirty=2, messages_written=1))
    cleaned(*steps, {"op": "build_map", "start": 0, "end": 2, "expect": {"map": {"a": 1}, "latest_offset": 1}})
    with pytest.raises(AssertionError):
        cleaned(*steps, pass_of(2, data=[[1, "a", "v"]]))
    with pytest.raises(AssertionError):
        cleaned(*steps, {"op": "build_map", "start": 0, "end": 2, "expect": {"map": {"a": 0}}})


def test_a_key_may_be_empty() -> None:
    cleaned(row(0, "", "v"), row(1, "", None), {"op": "roll"}, pass_of(2, data=[[1, "", None]]))
    cleaned(row(0, "", "v"), {"op": "roll"}, pass_of(1, data=[[0, "", "v"]], keys_with_value=[""], map={"": 0}))


def test_kafka_ends_a_pass_behind_a_batch_that_is_empty() -> None:
    sent = {"seq": 0, "txn": False} | PRODUCER
    steps = row(0, "a", "v"), row(1, "b", "v", **sent), row(2, "b", "w"), row(3, "c", "v"), {"op": "roll"}
    again = pass_of(4, next_dirty=2, latest_offset=1, map_size=1) | {"max_keys": 1}
    cleaned(*steps, pass_of(4, batch_last_offsets=[0, 1, 2, 3]), again)
    with pytest.raises(AssertionError):
        cleaned(*steps, pass_of(4, batch_last_offsets=[0, 1, 2, 3]), again | {"expect": {"next_dirty": 3}})


@pytest.mark.parametrize("read", [2, 4])
def test_segments_may_have_been_joined_by_a_pass(read: int) -> None:
    """What a later pass visits hangs on the sizes of batches, which a case does not tell."""
    steps = row(0, "a", "v"), row(1, "b", "v"), {"op": "roll"}, row(2, "c", "v"), row(3, "d", "v"), {"op": "roll"}
    partly = pass_of(4, messages_read=read, next_dirty=1) | {"max_keys": 1}
    cleaned(*steps, ABORTED_NOTHING, pass_of(4, messages_read=4), partly)


def test_a_producer_that_has_expired_keeps_no_batch() -> None:
    steps = ABORTED, {"op": "expire_producers", "pids": [1]}, {"op": "roll"}
    cleaned(*steps, pass_of(4, batch_last_offsets=[2, 3], last_sequences={}), last_batch_rule="none")
    with pytest.raises(AssertionError):
        cleaned(*steps, pass_of(4, batch_last_offsets=[1, 2, 3]), last_batch_rule="none")
