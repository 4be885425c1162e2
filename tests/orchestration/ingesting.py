"""A world with a broker, and runs and ticks of what ingests from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import SparkSession

from keptlog.log.segment import Log
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from tests.in_process_session import InProcessSession
from tests.mock_broker import MockBroker, mock_broker
from tests.orchestration.conftest import DAY_MS, World
from tests.orchestration.instance import fresh_instance
from tests.orchestration.shipped import ingest_lag_sensor

JOB = "ingest_kafka"


class InProcessSpark(LazyPySparkResource):
    """Runs Spark's tasks in this process."""

    @property
    def spark_session(self) -> SparkSession:
        return cast("SparkSession", InProcessSession())


@dataclass
class IngestWorld:
    """What a test works on: a broker, and a home that is ingested into."""

    world: World
    broker: MockBroker

    def produce(self, topic: str, *records: tuple[str, str | None], partition: int = 0) -> None:
        self.broker.produce(topic, *records, partition=partition, timestamp_ms=self.world.now_ms - DAY_MS)

    def knows(self, topic: str, *positions: int, there: str | None = None, bootstrap: str | None = None) -> None:
        """Let a topic come from the broker, or from another, with each of these offsets read and empty."""
        self.world.topic(topic, len(positions))
        source = SourceIdentity(there or topic, None, bootstrap or self.broker.bootstrap)
        arrived = [Arrival(OffsetRange(number, None, 0, end), ()) for number, end in enumerate(positions)]
        self.world.store.ingest(topic, arrived, source, len(positions), f"knows-{topic}")

    def ingest(self, **config: Any) -> dg.ExecuteInProcessResult:
        """Run the job as from the launchpad."""
        return self.run(dg.RunRequest(run_config={"ops": {"ingest": {"config": config}}}))

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """Run what the sensor asked for."""
        return self.world.run_job(JOB, request)

    def materialize(self, topic: str, first: int, last: int) -> dg.ExecuteInProcessResult:
        """What the button in the UI does for a range of partitions."""
        job = self.world.defs.resolve_implicit_global_asset_job_def()
        return job.get_subset(asset_selection={dg.AssetKey([topic, "dirty"])}).execute_in_process(
            instance=self.world.instance,
            raise_on_error=False,
            tags={
                "dagster/asset_partition_range_start": f"{topic}-{first}",
                "dagster/asset_partition_range_end": f"{topic}-{last}",
            },
        )

    def tick(self) -> dg.SensorResult:
        return self.world.tick(ingest_lag_sensor)

    def asked(self) -> list[str]:
        """The topic-partitions that a tick asks for, which asks for one run."""
        (request,) = self.world.requests(ingest_lag_sensor)
        return asked_by(request)

    def skips(self) -> str:
        """Why a tick asks for nothing."""
        return self.world.skips(ingest_lag_sensor)

    def logs(self, topic: str) -> list[Log]:
        return self.world.store.logs(topic)

    def failure(self, result: dg.ExecuteInProcessResult) -> str:
        """What a failed run says."""
        assert not result.success
        (event,) = [each for each in self.events(result) if each.event_type is dg.DagsterEventType.STEP_FAILURE]
        failed = event.step_failure_data
        assert failed.user_failure_data or failed.error
        return str(failed.user_failure_data.description if failed.user_failure_data else failed.error)

    def events(self, result: dg.ExecuteInProcessResult) -> list[dg.DagsterEvent]:
        """What is left of a run; the result of one that failed lacks what its last step logged."""
        entries = self.world.instance.all_logs(result.run_id)
        return [entry.dagster_event for entry in entries if entry.dagster_event]

    def materialized(self, result: dg.ExecuteInProcessResult) -> dict[str, dict[str, object]]:
        """By partition key, the numbers that a run left at dirty sections."""
        logged = [each.step_materialization_data for each in self.events(result) if each.is_step_materialization]
        return {
            str(each.materialization.partition): {
                name: value.value for name, value in each.materialization.metadata.items()
            }
            for each in logged
            if each.materialization.asset_key.path[1] == "dirty"
        }


def asked_by(request: dg.RunRequest) -> list[str]:
    """The topic-partitions that a requested run is to ingest."""
    config: Any = request.run_config
    return list(config["ops"]["ingest"]["config"]["topic_partitions"])


@contextmanager
def ingest_world(path: Path) -> Iterator[IngestWorld]:
    """A world and a broker that are gone after the block."""
    with fresh_instance() as instance, mock_broker() as broker:
        spark = InProcessSpark(spark_config={})
        yield IngestWorld(World(path, instance, more_resources={"spark": spark}), broker)
