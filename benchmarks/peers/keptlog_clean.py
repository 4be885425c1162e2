"""keptlog: its engine, and the check of the outcome, up to where the table would be asked to commit.

A variant is words, each of which changes the steps:

    timestamp, header   the latest record is that of the highest version
    each                one run for each topic-partition, in place of one for all
    shuffle             keys beyond memory go through Spark: the map takes 5 million, Kafka's default, and never more
                        than 5/8 of the dirty records
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pyspark.sql import SparkSession

from benchmarks.generated_log import TOPIC, VERSION_HEADER
from benchmarks.peers import Left, Setup, Work
from keptlog.log.broker import BrokerConfig
from keptlog.log.offset_map import MapCapacity, MapOverflow
from keptlog.log.result import RewriteResult, verify
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.spark.jobs import spark_engine
from keptlog.spark.session import start_session
from keptlog.table.io.files import TableFiles


def open_peer(setup: Setup) -> KeptlogClean:
    return KeptlogClean(start_session(f"local[{setup.cores}]", dict(setup.settings)))


@dataclasses.dataclass(frozen=True)
class KeptlogClean:
    """Cleans on one Spark session."""

    session: SparkSession

    def prepare(self, work: Work) -> None:
        pass

    def close(self) -> None:
        self.session.stop()

    def run(self, work: Work) -> Left:
        words = work.variant.split()
        steps = [_changed(step, words) for step in work.log.steps]
        outcomes = self._rewritten(steps, work, is_each="each" in words)
        kept = [set(outcome.step.segments) - set(outcome.removed) for outcome in outcomes]
        live = [segment for segments in kept for segment in segments]
        notes = {
            "segments_kept": len(live),
            "records_kept": sum(segment.record_count for segment in live),
            "keys_mapped": sum(outcome.map_keys for outcome in outcomes),
        }
        live += [segment for outcome in outcomes for segment in outcome.added]
        return Left(tuple(segment.path for segment in live), notes=notes)

    def _rewritten(self, steps: Sequence[Compact], work: Work, *, is_each: bool) -> list[RewriteResult]:
        engine = spark_engine(lambda: self.session, TableFiles())
        locations = {TOPIC: str(work.output)}
        runs = [[step] for step in steps] if is_each else [list(steps)]
        outcomes = [
            outcome
            for number, run in enumerate(runs)
            for outcome in engine.rewrite(run, locations, f"{work.run_id}-{number}")
        ]
        for outcome in outcomes:
            verify(outcome)
        return outcomes


def _changed(step: Compact, words: Sequence[str]) -> Compact:
    strategy = step.strategy
    if "timestamp" in words:
        strategy = Strategy(StrategyKind.TIMESTAMP)
    if "header" in words:
        strategy = Strategy(StrategyKind.HEADER, VERSION_HEADER)
    capacity = step.map_capacity
    if "shuffle" in words:
        dirty_records = sum(segment.record_count for segment in step.dirty)
        max_keys = min(BrokerConfig().map_capacity(strategy).max_keys, dirty_records * 5 // 8)
        capacity = MapCapacity(max_keys, MapOverflow.SHUFFLE)
    return dataclasses.replace(step, strategy=strategy, map_capacity=capacity)
