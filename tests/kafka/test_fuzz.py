"""The same random scripts through Apache Kafka's own classes and through keptlog's rules: they leave the same log.

``make fuzz N=10000`` does it for longer.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kafka.fuzz import differing, told
from tests.kafka.layout import Batch, Layout, Round
from tests.kafka.oracle import KafkaOracle, KafkaRefused, Operation, Script, State
from tests.kafka.producers import Transaction
from tests.kafka.replay import Replay
from tests.kafka.scripts import random_script

Answered = tuple[Script, list[State] | KafkaRefused]
SEED = 11
SCRIPTS = 300

ONE_OFF = (
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
    "segment.ms",
    "internal.segment.bytes",
    "retention.ms",
    "retention.bytes",
)


@pytest.fixture(scope="module")
def answered(oracle: KafkaOracle) -> list[Answered]:
    return list(oracle.answers(random_script(f"{SEED}-{number}") for number in range(SCRIPTS)))


def keys(script: Script) -> list[str | None]:
    return [record["key"] for operation in script for record in operation.get("records", [])]


def with_one_more(script: Script, setting: str) -> Script:
    """The script with a setting one higher wherever it is set."""
    changed = []
    for operation in script:
        config = operation.get("config", {})
        if setting in config:
            operation = operation | {"config": config | {setting: str(min(int(config[setting]) + 1, 2**63 - 1))}}
        changed.append(operation)
    return changed


def test_random_scripts_leave_the_same_log_in_kafka_and_in_keptlog(
    oracle: KafkaOracle, answered: list[Answered]
) -> None:
    different = next((script for script, answer in answered if differing(script, answer)), None)
    assert different is None, told(different, oracle)


@pytest.mark.parametrize("setting", ONE_OFF)
def test_a_setting_that_is_one_off_would_be_noticed(answered: list[Answered], setting: str) -> None:
    """Each boundary is met exactly: one millisecond or byte more, and keptlog does something else than Kafka."""
    asked = ((with_one_more(script, setting), answer) for script, answer in answered)
    assert any(differing_at_all(script, answer) for script, answer in asked)


def test_a_map_with_room_for_one_more_key_would_be_noticed(answered: list[Answered]) -> None:
    def with_room(operation: Operation) -> Operation:
        return operation | {"max_keys": operation["max_keys"] + 1} if "max_keys" in operation else operation

    assert any(differing([with_room(each) for each in script], answer) for script, answer in answered)


def test_a_pass_that_took_a_record_without_a_key_along_would_be_noticed(
    answered: list[Answered], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Replay, "_end_in_batch", lambda _self, _first, end_offset: end_offset)
    assert any(differing(script, answer) for script, answer in answered)


def test_a_batch_that_ended_with_its_last_record_would_be_noticed(
    answered: list[Answered], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.kafka.replay._with_ends_of_batches", lambda segment: segment.records)
    monkeypatch.setattr(Replay, "_end_in_batch", lambda _self, _first, end_offset: end_offset)
    without_unkeyed = [each for each in answered if None not in keys(each[0])]
    assert any(differing(script, answer) for script, answer in without_unkeyed)


@pytest.mark.parametrize(
    ("where", "name", "changed"),
    [
        (Round, "_empty", lambda _self, _batch: None),
        (Batch, "stamped", lambda batch, _horizon_ms: batch),
        (Batch, "appended_at", lambda batch, _now_ms: batch),
        (Layout, "batch_base_from", lambda _self, offset: offset),
        (Transaction, "is_forgotten", lambda _self, _offset: False),
    ],
    ids=[
        "an emptied batch that went at once",
        "a marker that stayed for ever",
        "a timestamp that was the producer's",
        "a last stable offset inside of a batch",
        "an aborted transaction that was remembered",
    ],
)
def test_what_kafka_keeps_would_be_missed(
    answered: list[Answered], monkeypatch: pytest.MonkeyPatch, where: type, name: str, changed: Callable[..., object]
) -> None:
    monkeypatch.setattr(where, name, changed)
    assert any(differing(script, answer) for script, answer in answered)


def test_an_aborted_record_that_came_in_would_be_noticed(
    answered: list[Answered], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Layout, "hide", lambda *_: None)
    assert any(differing(script, answer) for script, answer in answered)


def differing_at_all(script: Script, answer: list[State] | KafkaRefused) -> bool:
    try:
        return differing(script, answer) is not None
    except ValueError:  # the minimum lag is now above the maximum
        return False
