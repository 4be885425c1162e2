"""A sample of the random scripts on the real table, with the real kernels: it is left as Kafka leaves its log.

``make fuzz REAL=100`` puts more of them through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from keptlog.engine.engine import Engine
from keptlog.log.offset_map import MapCapacity, MapOverflow
from keptlog.log.result import RewriteResult
from keptlog.log.steps import CleanStep, Compact
from keptlog.spark.jobs import spark_engine
from keptlog.storage.files import Files
from tests.in_process import SMALL_CUTS, in_process_engine
from tests.kafka.fuzz import told
from tests.kafka.oracle import KafkaOracle, KafkaRefused, Script, State
from tests.kafka.real import EngineOver, differing_on_table, script_for_the_table

SEED = 9
SCRIPTS = 40
ON_SPARK = 5
SHUFFLED = 10

Answered = tuple[Script, list[State] | KafkaRefused]

ONE_OFF: dict[str, Callable[[Compact], Compact]] = {
    "a tombstone is kept one ms longer": lambda step: replace(step, delete_retention_ms=step.delete_retention_ms + 1),
    "a tombstone goes one ms late": lambda step: replace(
        step, now_ms=step.now_ms - 1, delete_retention_ms=step.delete_retention_ms + 1
    ),
    "the map takes one key more": lambda step: replace(
        step, map_capacity=MapCapacity(min(step.map_capacity.max_keys, 2**62) + 1)
    ),
}


@dataclass(frozen=True)
class ChangedEngine:
    """The real engine, which is told a step that differs a little."""

    real: Engine
    change: Callable[[Compact], Compact]

    def rewrite(self, steps: Sequence[CleanStep], locations: Mapping[str, str], run_id: str) -> list[RewriteResult]:
        changed = [self.change(step) if isinstance(step, Compact) else step for step in steps]
        return self.real.rewrite(changed, locations, run_id)


def changed_engine(change: Callable[[Compact], Compact]) -> EngineOver:
    return lambda files: cast("Engine", ChangedEngine(in_process_engine(files), change))


@pytest.fixture(scope="module")
def answered(oracle: KafkaOracle) -> list[Answered]:
    return list(oracle.answers(script_for_the_table(f"{SEED}-{number}") for number in range(SCRIPTS)))


def test_random_scripts_leave_the_same_log_in_kafka_and_on_the_table(
    oracle: KafkaOracle, answered: list[Answered]
) -> None:
    different = next((script for script, answer in answered if differing_on_table(script, answer)), None)
    assert different is None, told(different, oracle, differing_on_table)


def test_random_scripts_leave_the_same_log_in_kafka_and_with_spark(
    answered: list[Answered], spark: SparkSession
) -> None:
    def engine_over(files: Files) -> Engine:
        return spark_engine(lambda: spark, files, SMALL_CUTS)

    different = [differing_on_table(script, answer, engine_over) for script, answer in answered[:ON_SPARK]]
    assert different == [None] * ON_SPARK


def test_keys_beyond_memory_leave_the_same_log_as_a_map_of_kafkas_that_has_room(answered: list[Answered]) -> None:
    def shuffled(step: Compact) -> Compact:
        return replace(step, map_capacity=MapCapacity(2, MapOverflow.SHUFFLE))

    has_room = [each for each in answered if not any("max_keys" in operation for operation in each[0])][:SHUFFLED]
    different = [differing_on_table(script, answer, changed_engine(shuffled)) for script, answer in has_room]
    assert different == [None] * SHUFFLED


@pytest.mark.parametrize("change", ONE_OFF.values(), ids=ONE_OFF)
def test_kernels_that_are_one_off_would_be_noticed(
    answered: list[Answered], change: Callable[[Compact], Compact]
) -> None:
    different = (differing_on_table(script, answer, changed_engine(change)) for script, answer in answered)
    assert any(different)
