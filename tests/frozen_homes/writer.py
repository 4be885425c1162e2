"""A home that is being written for the archive: by commands, at a clock that somebody sets.

What can be the same at each writing is: records, the command's clock, the times and the ids in Iceberg's metadata, the
names of files that commands write. Only the files of Spark's tasks carry the name of a Spark application, and a clean
takes as long as it takes.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from tests.frozen_homes.command import Outcome, keptlog

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
COMPACT = "cleanup.policy=compact"
_LATEST_TABLE_MS = 1_710_000_000_000
"""No table is from a time that a test's machine has not reached: some engines refuse a commit before the last one."""


@dataclass
class Writer:
    """Writes one home. ``now_ms`` is the time of the next command; records are dated from ``day_0_ms``."""

    home: Path
    inbox: Path
    """A folder outside of the home, for the files that are appended."""
    day_0_ms: int = 1_700_000_000_000
    now_ms: int = 1_700_000_000_000
    shown_seconds: float = 0
    """What Iceberg's clock showed last."""

    def run(self, *arguments: str, code: int = 0) -> Outcome:
        """A command that must end with this code."""
        with _pinned(self):
            outcome = keptlog(self.home, self.now_ms, *arguments)
        if outcome.code != code:
            raise RuntimeError(f"{arguments} ended with {outcome.code}: {outcome.out}{outcome.err}")
        return outcome

    def create(self, topic: str, *configs: str, partitions: int = 1) -> None:
        options = [word for config in configs for word in ("--config", config)]
        self.run("topic", "create", topic, "--partitions", str(partitions), *options)

    def append(self, topic: str, *records: dict[str, Any]) -> None:
        """One append of records, each made by ``record``."""
        lines = self.inbox / "records.jsonl"
        lines.write_text("".join(f"{json.dumps(each)}\n" for each in records))
        self.run("append", topic, "--file", str(lines))

    def append_with_offsets(self, topic: str, rows: Sequence[dict[str, Any]], *options: str) -> None:
        """One append of a Parquet file whose rows know their offsets."""
        file = self.inbox / "rows.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows)), file)
        self.run("append", topic, "--file", str(file), "--column", "offset=at", "--column", "partition=in", *options)

    def clean(self, *names: str, code: int = 0) -> None:
        self.run("clean", "--quiet", *names, code=code)

    def record(self, key: str | None, value: str | None, day: float, **more: Any) -> dict[str, Any]:
        """A record as ``keptlog append`` takes it."""
        return {"key": key, "value": value, "timestamp": self.day_0_ms + int(day * DAY_MS)} | more

    def segments(self, topic: str) -> list[Path]:
        """The segment files of a topic that are on the disk, live or not, in the order of their names."""
        return sorted((self.home / "warehouse").glob(f"*/{topic}/data/*/*.parquet"), key=lambda path: path.name)


@contextlib.contextmanager
def _pinned(writer: Writer) -> Iterator[None]:
    """Iceberg's clock shows the writer's time, if it can, and a second more at each look; ids come from the name."""
    numbers = random.Random(f"{writer.inbox.name} {writer.shown_seconds}")

    def seconds() -> float:
        writer.shown_seconds = max(writer.shown_seconds + 1, min(writer.now_ms, _LATEST_TABLE_MS) / 1000)
        return writer.shown_seconds

    def new_id() -> uuid.UUID:
        return uuid.UUID(int=numbers.getrandbits(128), version=4)

    class Clock:
        @staticmethod
        def now() -> dt.datetime:
            return dt.datetime.fromtimestamp(seconds(), tz=dt.UTC)

    with (
        mock.patch("pyiceberg.table.snapshots.time", SimpleNamespace(time=seconds)),
        mock.patch("pyiceberg.table.update.datetime", Clock),
        mock.patch("pyiceberg.table.metadata.datetime", SimpleNamespace(datetime=Clock)),
        mock.patch.object(uuid, "uuid4", new_id),
    ):
        yield
