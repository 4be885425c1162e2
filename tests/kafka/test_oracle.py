"""The process that runs Kafka's classes takes scripts and gives answers of any size, one after the other."""

from __future__ import annotations

import itertools

from tests.kafka.oracle import KafkaOracle, Script
from tests.kafka.test_cases import append, create

PIPE_BYTES = 1 << 16
"""What a pipe takes on Linux before its writer waits."""


def large(count: int) -> Script:
    """A script larger than a pipe's buffer, whose answer is larger, too."""
    value = "v" * (2 * PIPE_BYTES)
    return [create(), *(append((f"{number}", value, 0)) for number in range(count)), {"op": "roll", "observe": True}]


def test_scripts_and_answers_may_be_larger_than_a_pipes_buffer(oracle: KafkaOracle) -> None:
    answers = [answer for _, answer in oracle.answers([large(1), large(2), large(3)])]
    assert [len(state["records"]) for answer in answers if isinstance(answer, list) for state in answer] == [1, 2, 3]


def test_who_stops_asking_leaves_no_answer_for_the_next(oracle: KafkaOracle) -> None:
    next(oracle.answers(large(count) for count in itertools.count(1)))
    (state,) = oracle.states([create(), append(("a", "1", 0)), {"op": "roll", "observe": True}])
    assert [row[1] for row in state["records"]] == ["a"]


def test_keys_and_values_are_bytes(oracle: KafkaOracle) -> None:
    odd = "".join(map(chr, range(256)))
    (state,) = oracle.states([create(), append((odd, odd, 0), ("", "", 0)), {"op": "roll", "observe": True}])
    assert [row[1:3] for row in state["records"]] == [[odd, odd], ["", ""]]
