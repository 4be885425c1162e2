"""Pythons for the workers of a cluster, a home that is cleaned on it, and what Spark wrote down of that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.table.store import LogStore
from tests.security.searching import contents_below

TOPICS = ("a", "b", "c")


def whole_events(folder: Path) -> Iterator[dict[str, Any]]:
    """What Spark has written down so far.

    It writes on while this reads: the last line may not be whole yet, and a file is renamed once the run has ended.
    """
    for _, content in contents_below(folder):
        for line in content.splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield json.loads(line)


def python_with(folder: Path, packages: Sequence[str]) -> str:
    """A Python of this version that has these packages of ours, and nothing else."""
    venv.create(folder, symlinks=True, with_pip=False)
    [site] = folder.glob("lib/python3*/site-packages")
    for package in packages:
        spec = find_spec(package)
        assert spec
        assert spec.origin
        found = Path(spec.origin).parent
        for each in (found, found.with_name(f"{package}.libs")):
            if each.exists():
                (site / each.name).symlink_to(each)
    return str(folder / "bin" / "python")


@dataclass(frozen=True)
class ClusterHome:
    """A home with three topics of 400 records each with 100 keys; Spark writes down what it does for it.

    The first topic has ``times`` as many records.
    """

    path: Path
    settings: Mapping[str, str]
    environment: Mapping[str, str]
    partitions: int = 1
    times: int = 1

    def __post_init__(self) -> None:
        self._events.mkdir(parents=True)
        noted = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": self._events.as_uri()}
        # Not compressed, and in one file.
        noted |= {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
        lines = [f"{name} {value}" for name, value in (noted | dict(self.settings)).items()]
        (self.path / "spark.properties").write_text("\n".join(lines))
        config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        for topic in TOPICS:
            self.store.create_topic(topic, self.partitions, config)
            size = 200 * (self.times if topic == TOPICS[0] else 1)
            for batch in range(2):
                numbers = range(batch * size, batch * size + size)
                records = [NewRecord(b"key-%d" % (number % 100), os.urandom(200), number) for number in numbers]
                self.store.append(topic, records, new_id(), now_ms=0)

    @property
    def _events(self) -> Path:
        return self.path / "events"

    @property
    def store(self) -> LogStore:
        return open_home(self.path, {}).store

    def start_clean(self) -> subprocess.Popen[str]:
        """``keptlog clean`` in a process of its own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEPTLOG_", "PYSPARK_"))}
        return subprocess.Popen(
            [sys.executable, "-m", "keptlog", "clean"],
            env={**kept, "KEPTLOG_HOME": str(self.path), **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def clean(self) -> subprocess.CompletedProcess[str]:
        """The same, to its end."""
        with self.start_clean() as process:
            out, err = process.communicate(timeout=600)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What Spark wrote down, of one kind."""
        return [event for event in whole_events(self._events) if event["Event"] == kind]

    def marks(self) -> list[object]:
        """Why each log is held to be uncleanable."""
        return [log.uncleanable for topic in TOPICS for log in self.store.logs(topic)]

    def checkpoints(self) -> list[int | None]:
        return [log.checkpoint for topic in TOPICS for log in self.store.logs(topic)]

    def files(self) -> set[str]:
        """The segments that are stored, live or not."""
        return {f"file://{path}" for topic in TOPICS for path in Path(self.data_location(topic)).rglob("*.parquet")}

    def live_files(self) -> set[str]:
        return {segment.path for topic in TOPICS for log in self.store.logs(topic) for segment in log.segments}

    def data_location(self, topic: str) -> str:
        return self.store.data_location(topic).removeprefix("file://")

    def offsets(self, topic: str) -> list[int]:
        return [record.offset for _, record in self.store.read(topic)]
