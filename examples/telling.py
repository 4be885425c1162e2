"""What the demos have in common: one topic, told through the real Dagster sensors and jobs, all in this process.

    tick ──> each sensor says why not, or FIRES ──> its run is carried out here ──> what its commits report is told

In one process, one Spark session serves all runs. Only the clock is set, and goes forward where a story says so.

The topic and the runs stay, for ``make dev`` to show. A telling begins afresh: the topic, and the runs, of the one
before it are deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import InvalidConfig
from keptlog.home import Home, open_home
from keptlog.log.segment import total_bytes
from keptlog.log.words.counted import counted
from keptlog.log.words.units import size
from keptlog.passes.observer import observe
from keptlog.settings import home_path

DAY_MS = 86_400_000
_DEMO_TAG = "keptlog/demo"
_QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass
class Telling:
    """One telling of a topic's story. ``now_ms`` is the clock by which logs are judged."""

    home: Home
    instance: dg.DagsterInstance
    topic: str
    now_ms: int
    sensors: Sequence[str]
    """Those that tick, by their names."""
    requested: list[str] = field(default_factory=list)
    """The sensors that asked for a run so far, in their order."""

    def begin(self) -> None:
        """Delete the runs of the telling before, which might have been interrupted."""
        for run in self.instance.get_runs(dg.RunsFilter(tags=self._tag)):
            self.instance.delete_run(run.run_id)

    def show(self) -> None:
        """Print every log's sections."""
        for each in observe(self.home.store, [self.topic], now_ms=self.now_ms).assessments:
            sections = each.sections
            say(
                f"  {each.log.topic_partition}: clean {_records(sections.clean)}, dirty {_records(sections.dirty)}; "
                f"dirty ratio {each.cleanable_ratio:.2f}, late by {each.max_compaction_delay_ms // 3_600_000} h"
            )

    def tick(self) -> int:
        """Evaluate the sensors as the daemon would, and carry out the runs they ask for; gives their number."""
        before = len(self.requested)
        definitions = build_defs(self._log_store, self._resources)
        for sensor in map(definitions.get_repository_def().get_sensor_def, self.sensors):
            with dg.build_sensor_context(
                instance=self.instance, resources=definitions.resources, sensor_name=sensor.name
            ) as context:
                data = sensor.evaluate_tick(context)
            for event in data.asset_events:
                self.instance.report_runless_asset_event(event)
            if not data.run_requests:
                say(f"  {sensor.name}: {data.skip_message}")
            for request in data.run_requests or ():
                self.requested.append(sensor.name)
                say(f"  {sensor.name}: FIRES for {request.tags['keptlog/topic_partitions']}")
                tags = {**request.tags, "dagster/sensor_name": sensor.name}
                self.run(sensor.jobs[0].name, request.run_config, tags)
        return len(self.requested) - before

    def run(self, job: str, run_config: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Carry out one run and tell what its commits report."""
        definitions = build_defs(self._log_store, self._resources)
        started = time.monotonic()
        result = definitions.resolve_job_def(job).execute_in_process(
            run_config={**run_config, **_QUIET}, tags={**tags, **self._tag}, instance=self.instance
        )
        took_s = time.monotonic() - started
        say(f"    run {result.run_id[:8]} of {job} took {took_s:.1f} s")
        ingested = 0
        for event in result.get_asset_materialization_events():
            metadata = event.materialization.metadata
            told = {"records_in", "records_ingested"} & set(metadata)
            if told:
                say(f"    {event.partition}: {event.materialization.description}")
            if "records_in" in metadata:
                say(f"      {_size_of(metadata['bytes_in'])} before, {_size_of(metadata['bytes_out'])} after")
            if "records_ingested" in metadata:
                ingested += int(str(metadata["records_ingested"].value))
        if ingested:
            say(f"    {ingested:,} records ingested, {ingested / took_s:,.0f} a second")

    def purge(self) -> None:
        """Delete what the cleans have replaced."""
        before = self._stored_bytes()
        self.run("purge", {}, {})
        say(f"  data files on the storage: {size(before)} before, {size(self._stored_bytes())} after")

    @property
    def _tag(self) -> Mapping[str, str]:
        """Tells runs of this demo from those of one in another home."""
        return {_DEMO_TAG: f"{self.topic} in {self.home.path}"}

    @property
    def _log_store(self) -> LogStoreResource:
        return LogStoreResource(home=str(self.home.path))

    @property
    def _resources(self) -> dict[str, Any]:
        kafka = KafkaResource(min_lag=1, max_wait_ms=0)
        return {"clock": ClockResource(now_ms=self.now_ms), "kafka": kafka}

    def _stored_bytes(self) -> int:
        return sum(file.size_bytes for file in self.home.store.files.list(self.home.store.data_location(self.topic)))


@contextmanager
def demo_home(topic: str, beside: str) -> Iterator[Home]:
    """The user's home if it has nothing but this demo's topic in it, else one beside it, whose name ends in ``beside``.

    A demo sets the clock forward, and nobody else's tombstones may expire by that. While one is under way, no other
    takes its home.

    Raises:
        InvalidConfig: another demo is under way there, or a catalog configured elsewhere holds other topics.
    """
    home = open_home(home_path())
    if set(home.store.topics()) - {topic}:
        home = open_home(home.path.with_name(f"{home.path.name}-{beside}"))
    with _alone_in(home.path):
        others = set(home.store.topics()) - {topic}
        if others:
            raise InvalidConfig(
                f"the catalog holds other topics ({', '.join(sorted(others)[:3])}) whose tombstones the demo's clock "
                "would expire: run it with KEPTLOG_HOME on an empty folder and no PyIceberg catalog named keptlog"
            )
        if topic in home.store.topics():
            home.delete_topic(topic)
        yield home


@contextmanager
def _alone_in(home: Path) -> Iterator[None]:
    """The lock lies beside other temporary files: a home has no file of a demo's."""
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    descriptor = os.open(Path(tempfile.gettempdir(), f"keptlog-demo-{name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidConfig(
                f"another demo is under way in {home}: wait until it has ended, or give this one a home of its own: "
                "make demo KEPTLOG_HOME=/another/folder"
            ) from None
        yield
    finally:
        os.close(descriptor)


def where_to_look(home: Home, topic: str) -> None:
    """Say how to look at what a demo left."""
    shown = "" if home.path == home_path() else f"KEPTLOG_HOME={shlex.quote(str(home.path))} "
    say(f"  {shown}make dev                          then http://localhost:3000: assets, partitions, checks, runs")
    say(f"  {shown}.venv/bin/keptlog explain {topic} 0")
    say(f"  {shown}.venv/bin/keptlog read {topic} --latest")


def say(line: str) -> None:
    """One line of the story."""
    print(line, flush=True)


def chapter(title: str) -> None:
    """A heading."""
    say(f"\n{title}")


def _records(segments: Sequence[Any]) -> str:
    count = sum(segment.record_count for segment in segments)
    return f"{count:,} records ({counted(len(segments), 'segment')}, {size(total_bytes(segments))})"


def _size_of(told: Any) -> str:
    return size(int(told.value))
