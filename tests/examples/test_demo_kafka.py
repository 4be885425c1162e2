"""The demo with a broker proves itself, says no when something differs, and leaves no process and no folder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from examples import demo_kafka, installed, kafka_broker, kafka_jars
from examples.profiles_telling import PARTITIONS
from examples.user_profiles import user_profiles
from keptlog.errors import StorageUnavailable
from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from tests.kafka.jars import or_skip
from tests.processes import Started, left, with_environment

_DEADLINE_SECONDS = 600


@dataclass
class Stage:
    """A folder in which the demo runs as a process of its own, and all that it starts."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        own = {"DAGSTER_HOME": "dagster", "KEPTLOG_HOME": "home", "TMPDIR": "tmp"}
        paths = {name: str(self.folder / folder) for name, folder in own.items()}
        return {**os.environ, **paths, "KEPTLOG_SPARK_MASTER": "local[2]"}

    def start(self) -> subprocess.Popen[str]:
        """The demo in a process group of its own, as a terminal starts it."""
        for name in ("dagster", "tmp"):
            (self.folder / name).mkdir(exist_ok=True)
        command = [sys.executable, "-m", "examples.demo_kafka", "--records", "2000"]
        process = subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def alive(self) -> set[Started]:
        """All processes that the demo has started, and their children, wherever they have gone."""
        return with_environment(KEPTLOG_HOME=str(self.folder / "home"))

    def left(self) -> list[str]:
        """Folders of brokers that are still there."""
        return [path.name for path in (self.folder / "tmp").glob("kafka-broker-*")]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.terminate()
            process.wait(_DEADLINE_SECONDS)


def test_what_was_interrupted_leaves_nothing_and_the_next_telling_proves_itself(stage: Stage) -> None:
    or_skip(kafka_jars.kafka_jars)
    interrupted = stage.start()
    assert interrupted.stdout
    told = ""
    while "2. Ingested" not in told:
        line = interrupted.stdout.readline()
        assert line, told
        told += line
    assert any("kafka.Kafka" in each.command for each in stage.alive()), "or what follows would look at nothing"
    os.killpg(interrupted.pid, signal.SIGINT)  # Ctrl-C
    told += interrupted.communicate(timeout=_DEADLINE_SECONDS)[0]
    assert interrupted.returncode == 130, told
    assert "demo-kafka: interrupted" in told
    assert (left(stage.alive()), stage.left()) == (set(), [])

    whole = stage.start()
    told = whole.communicate(timeout=_DEADLINE_SECONDS)[0]
    assert whole.returncode == 0, told
    for sensor in ("ingest_lag_sensor", "dirty_ratio_sensor", "tombstone_expiry_sensor"):
        assert f"{sensor}: FIRES" in told
    assert told.count("    the same") == 2
    assert "  equal: every record before the cleans, every key's latest value after them" in told
    assert (left(stage.alive()), stage.left()) == (set(), [])


def test_without_maven_one_line_says_what_to_install_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    java = Path(installed.java("Kafka"))
    (tmp_path / "java").symlink_to(java.resolve())
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kafka_jars, "JARS", replace(kafka_jars.JARS, folder=tmp_path / "build"))

    assert demo_kafka.main([]) == 2

    said = capsys.readouterr()
    assert said.err == "demo-kafka: Kafka 4.3.1 comes through Maven, and there is no mvn: apt-get install maven\n"
    assert not said.out
    assert not (tmp_path / "home").exists()


def test_a_broker_that_does_not_start_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    or_skip(kafka_jars.kafka_jars)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refused = {"num.io.threads": "none"}
    with pytest.raises(StorageUnavailable, match=r"num\.io\.threads"), kafka_broker.kafka_broker(refused):
        pass
    assert not list(tmp_path.glob("kafka-broker-*"))


@pytest.fixture
def telling(tmp_path: Path) -> Iterator[demo_kafka.Demo]:
    """A topic into which tests put what was produced, or nearly."""
    home = open_home(tmp_path / "home")
    home.store.create_topic(demo_kafka.TOPIC, PARTITIONS, demo_kafka.SETTINGS)
    with dg.DagsterInstance.ephemeral() as instance:
        yield demo_kafka.Demo(home, instance, demo_kafka.TOPIC, 2_000_000_000_000, [])


def produced(telling: demo_kafka.Demo) -> list[NewRecord]:
    return list(telling.produced.add(user_profiles(300, PARTITIONS)))


def test_what_came_as_it_was_produced_is_called_the_same_wave_by_wave(telling: demo_kafka.Demo) -> None:
    for _ in range(2):
        telling.produced.begin_wave()
        telling.home.store.append(demo_kafka.TOPIC, produced(telling), new_id(), telling.now_ms)
        assert telling.is_as_produced()
    assert telling.has_latest_values()


@pytest.mark.parametrize(
    "change",
    [
        {"key": b"somebody else"},
        {"value": b""},
        {"timestamp_ms": 1_700_000_000_000},
        {"headers": (("source", None),)},
        {"partition": 0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_differs_in_one_field_is_not_called_the_same(telling: demo_kafka.Demo, change: dict[str, Any]) -> None:
    records = produced(telling)
    deletion = next(
        number for number, each in enumerate(records) if each.value is None and not each.headers and each.partition
    )
    records[deletion] = replace(records[deletion], **change)
    telling.home.store.append(demo_kafka.TOPIC, records, new_id(), telling.now_ms)
    assert not telling.is_as_produced()


def test_a_key_too_few_or_too_many_is_not_called_equal(telling: demo_kafka.Demo) -> None:
    telling.home.store.append(demo_kafka.TOPIC, produced(telling), new_id(), telling.now_ms)
    assert telling.has_latest_values()
    telling.produced.latest[b"never seen"] = b"{}"
    assert not telling.has_latest_values()
    del telling.produced.latest[b"never seen"]
    telling.produced.latest.popitem()
    assert not telling.has_latest_values()


def test_the_same_seed_makes_up_the_same_day_of_updates_deletions_and_returns() -> None:
    records = list(user_profiles(5000, 3, seed=7))
    deleted: set[bytes | None] = set()
    returned = 0
    for each in records:
        returned += each.value is not None and each.key in deleted
        deleted = deleted | {each.key} if each.value is None else deleted - {each.key}
    times = [each.timestamp_ms for each in records]
    assert records == list(user_profiles(5000, 3, seed=7))
    assert records != list(user_profiles(5000, 3, seed=8))
    assert 0.03 < sum(each.value is None for each in records) / len(records) < 0.07
    assert returned
    assert {each.partition for each in records} == {0, 1, 2}
    assert times != sorted(times)
    assert any(len({name for name, _ in each.headers}) < len(each.headers) for each in records)
