"""A home with real topics, the definitions over it, and a Dagster instance that is gone after the test."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from keptlog.dagster.orchestration import erasure_looks
from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.orchestration.erasure_tick import ErasureTick
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.dagster.resources.log_store import LogStoreResource, _opened
from keptlog.dagster.resources.spark import spark_resource
from keptlog.log.record import NewRecord
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.store import LogStore
from tests.orchestration.instance import fresh_instance

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

TOPICS = 20
"""So many are in a home of many topics."""
COMPACT = {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)}
"""A topic whose appends leave the active segment after an hour."""


@dataclass
class World:
    """What a test works on. ``now_ms`` is the clock of everything that ``defs`` builds."""

    path: Path
    instance: dg.DagsterInstance
    now_ms: int = NOW_MS
    more_resources: dict[str, Any] = field(default_factory=dict)
    cursors: dict[str, str | None] = field(default_factory=dict)

    @property
    def log_store(self) -> LogStoreResource:
        return LogStoreResource(home=str(self.path))

    @property
    def store(self) -> LogStore:
        return self.log_store.store

    @property
    def resources(self) -> dict[str, Any]:
        return {"clock": ClockResource(now_ms=self.now_ms), **self.more_resources}

    @property
    def defs(self) -> dg.Definitions:
        return build_defs(self.log_store, self.resources)

    def topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        config = COMPACT | {key.replace("_", "."): value for key, value in settings.items()}
        self.store.create_topic(name, partitions, config)

    def append(self, topic: str, *records: tuple[str, str | None], age_ms: int = DAY_MS, partition: int = 0) -> None:
        """Append key-value pairs as one segment, with timestamps ``age_ms`` before now."""
        new = [
            NewRecord(key.encode(), value.encode() if value is not None else None, self.now_ms - age_ms, partition)
            for key, value in records
        ]
        run_id = f"append-{topic}-{partition}-{self.store.logs(topic)[partition].log_end_offset}"
        self.store.append(topic, new, run_id, self.now_ms)

    def reopen(self) -> None:
        """Forget the opened home, as a new process would: broker settings are read when it is opened."""
        _opened.clear()

    def clean(self, *logs: str, requested: bool = False) -> dg.ExecuteInProcessResult:
        """Run the job in this process."""
        config = {"ops": {"plan": {"config": {"logs": list(logs), "requested": requested}}}}
        return self.launch(dg.RunRequest(run_config=config))

    def launch(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """Run what a cleaning sensor asked for in this process."""
        return self.run_job("clean_logs", request)

    def run_job(self, name: str, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """Run a job in this process as it was asked for."""
        job = self.defs.get_job_def(name)
        return job.execute_in_process(
            run_config=request.run_config, tags=request.tags, instance=self.instance, raise_on_error=False
        )

    def told(self, result: dg.ExecuteInProcessResult) -> list[tuple[str, str]]:
        """Level and text of each line of a run's log that is no event.

        What a step prints is no place to look for them: Dagster shows it through a ``tail`` that it ends with the
        step, so a busy machine shows nothing of a short one.
        """
        entries = [entry for entry in self.instance.all_logs(result.run_id) if not entry.is_dagster_event]
        return [(logging.getLevelName(entry.level), entry.user_message) for entry in entries]

    def tick(self, sensor: dg.SensorDefinition) -> dg.SensorResult:
        """Let a sensor judge once, with the cursor that its last tick left; Dagster hears what it tells of assets."""
        resources = {"log_store": self.log_store, "kafka": KafkaResource(), "spark": spark_resource(), **self.resources}
        needed = {name: resources[name] for name in sensor.required_resource_keys}
        cursor = self.cursors.get(sensor.name)
        with dg.build_sensor_context(instance=self.instance, cursor=cursor, resources=needed) as context:
            # A direct call would hand it each resource as an argument too, whether it takes it or not.
            result: object = sensor._raw_fn(context)
        assert isinstance(result, dg.SensorResult)
        for told in result.asset_events:
            self.instance.report_runless_asset_event(told)
        if result.cursor is not None:
            self.cursors[sensor.name] = result.cursor
        return result

    def observed(self, sensor: dg.SensorDefinition) -> list[dg.AssetObservation]:
        """What a tick tells of dirty sections and sources."""
        return [each for each in self.tick(sensor).asset_events if isinstance(each, dg.AssetObservation)]

    def requests(self, sensor: dg.SensorDefinition) -> list[dg.RunRequest]:
        """The runs that a tick asks for."""
        return list(self.tick(sensor).run_requests or [])

    def skips(self, sensor: dg.SensorDefinition) -> str:
        """Why a tick asks for nothing."""
        result = self.tick(sensor)
        assert isinstance(result.skip_reason, dg.SkipReason)
        assert result.skip_reason.skip_message
        return result.skip_reason.skip_message

    def segment_file(self, topic: str, partition: int = 0) -> Path:
        """The first segment's file on this disk."""
        return Path(self.store.logs(topic)[partition].segments[0].path.removeprefix("file://"))

    def break_segment(self, topic: str, partition: int = 0) -> Callable[[], None]:
        """Make a log's first segment unreadable; call what is returned to repair it."""
        path = self.segment_file(topic, partition)
        content = path.read_bytes()
        path.write_bytes(b"this is no Parquet file")
        return lambda: _write(path, content)

    def records(self, topic: str, partition: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
        return [(record.offset, record.key, record.value) for _, record in self.store.read(topic, partition)]


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def logs_of(request: dg.RunRequest) -> list[str]:
    """The topic-partitions that a requested run is to clean."""
    config: Any = request.run_config
    return list(config["ops"]["plan"]["config"]["logs"])


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that ticks have looked at."""
    found: list[str] = []
    advanced = erasure_looks._advanced

    def told(tick: ErasureTick, topic: str) -> object:
        found.append(topic)
        return advanced(tick, topic)

    monkeypatch.setattr(erasure_looks, "_advanced", told)
    return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with fresh_instance() as instance:
        yield World(tmp_path / "home", instance)


@dataclass
class Requests:
    """What was asked of a catalog's database, and how many files of tables were opened."""

    queries: int = 0
    files: int = 0

    def since(self) -> tuple[int, int]:
        counted = self.queries, self.files
        self.queries = self.files = 0
        return counted


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    made = Requests()
    really = DurableFileIO.new_input

    def query(*details: Any) -> None:
        made.queries += "iceberg" in details[2]  # Dagster asks its own database meanwhile

    def opened(io: DurableFileIO, location: str) -> Any:
        made.files += 1
        return really(io, location)

    monkeypatch.setattr(DurableFileIO, "new_input", opened)
    event.listen(Engine, "before_cursor_execute", query)
    yield made
    event.remove(Engine, "before_cursor_execute", query)


@pytest.fixture
def many(world: World) -> World:
    """A home that this process has not opened yet."""
    for number in range(TOPICS):
        world.topic(f"topic-{number}")
    world.reopen()
    return world


def flip_a_value(path: Path) -> None:
    """Damage a value, and nothing that is read without it."""
    content = bytearray(path.read_bytes())
    column = next(
        group.column(number)
        for group in [pq.ParquetFile(path).metadata.row_group(0)]
        for number in range(group.num_columns)
        if group.column(number).path_in_schema == "value"
    )
    first = column.dictionary_page_offset or column.data_page_offset
    content[first + column.total_compressed_size - 1] ^= 1
    path.write_bytes(bytes(content))


def unreadable_topics(world: World, count: int) -> None:
    """Topics named odd-0 and so on, a property of which is damaged."""
    for number in range(count):
        world.topic(f"odd-{number}")
        table = world.store.load_table(f"odd-{number}")
        table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
