"""Transactions are resolved at the door: only committed records come in. Kafka resolves them while it cleans, and errs.

When a pass of Kafka's ended inside of a segment (its map was full), the next one collects the aborted transactions
from the beginning of that segment, but reads batches only from the offset index's position on. An abort marker between
the two is never seen, the producer is taken for aborted for the rest of the pass, and what it committed later is not
mapped.
"""

from __future__ import annotations

from typing import Any

from tests.kafka.oracle import KafkaOracle, Operation, Script
from tests.kafka.replay import states

NOW_MS = 1_700_000_000_000
PRODUCER = 7


def append(key: str, value: str | None, **more: object) -> Operation:
    return {"op": "append", "records": [{"key": key, "value": value, "timestamp": NOW_MS}], **more}


def end_transaction(*, commit: bool) -> Operation:
    return {"op": "end_transaction", "producer": PRODUCER, "commit": commit}


SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "1000",
    "index.interval.bytes": "50",
}

DELETED_KEY: Script = [
    {"op": "create", "config": SETTINGS, "now_ms": NOW_MS},
    append("deleted", "old"),
    append("other", "never committed", producer=PRODUCER),
    end_transaction(commit=False),
    append("filler", "so long that the offset index gets an entry behind the marker" * 2),
    append("third", "the map has room for two keys, so the first pass ends here"),
    append("deleted", None, producer=PRODUCER),
    end_transaction(commit=True),
    {"op": "roll"},
    {"op": "clean", "max_keys": 2, "observe": True},
    {"op": "clean", "observe": True},
    append("fourth", "something dirty, so that there is a third pass"),
    {"op": "roll"},
    {"op": "clock", "now_ms": NOW_MS + 1000},
    {"op": "clean", "observe": True},
]


def only_committed(script: Script) -> Script:
    """The script as a source brings it in: without what was aborted, without markers."""
    ends = [index for index, each in enumerate(script) if each["op"] == "end_transaction"]
    resolved = []
    for index, operation in enumerate(script):
        if operation["op"] == "end_transaction":
            continue
        if "producer" in operation:
            end = script[min(end for end in ends if end > index)]
            if not end["commit"]:
                continue
        resolved.append({name: value for name, value in operation.items() if name != "producer"})
    resolved[0] = resolved[0] | {"config": {n: v for n, v in SETTINGS.items() if n != "index.interval.bytes"}}
    return resolved


def contents(state: dict[str, Any]) -> dict[str, str | None]:
    """What a reader who reads all of the log knows at its end."""
    return {key: value for _, key, value, *_ in state["records"]}


def test_kafka_brings_a_deleted_key_back(oracle: KafkaOracle) -> None:
    first, second, third = oracle.states(DELETED_KEY)
    assert first["checkpoint"] == 4, "the first pass ends inside of the segment"
    values = [value for _, key, value, *_ in second["records"] if key == "deleted"]
    assert values == ["old", None], "the second pass missed the tombstone"
    assert contents(third)["deleted"] == "old"


def test_keptlog_keeps_a_deleted_key_deleted() -> None:
    *_, last = states(only_committed(DELETED_KEY))
    assert set(contents(last)) == {"filler", "third", "fourth"}


def test_without_transactions_kafka_agrees(oracle: KafkaOracle) -> None:
    resolved = only_committed(DELETED_KEY)
    assert [contents(state) for state in oracle.states(resolved)] == [contents(state) for state in states(resolved)]
