"""Apache Kafka's own ``Cleaner``, one thread of it, on the same records in Kafka's own format.

    Parquet --this--> columns --CleanerThread.java--> a log as followers write it, batches of 16 kB, once
    that log --copied--> cleaned in place, every round

Uncompressed (variant ``none``) is Kafka's best case: nothing is decoded but the records. With ``zstd`` at level 1 it
has the same bytes to store as all others here. Everything else is as a broker has it by default: offset map, I/O
buffers, the JVM's options; the throttle is off. Only ``Cleaner.clean`` is measured, not the opening of the log.

What is left is read by keptlog's reader of log directories, and compared like all others.

A table of columns is, each block with its length in bytes before it: offsets, timestamps in ms (int64 each), lengths of
keys (int32, -1 for null), keys, lengths of values, values, headers of each record (int32), and the headers: length and
bytes of the name, length and bytes of the value. An empty table ends the file.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.generated_log import GeneratedLog
from benchmarks.peers import Left, PeerMissing, Setup, Work
from examples.installed import NotInstalled
from examples.kafka_jars import BUILD
from keptlog.storage.schema import US_PER_MS
from keptlog.storage.segment_reader import read_row_groups
from keptlog.table.io.files import TableFiles
from tests.kafka.jars import classpath

_SOURCE = Path(__file__).with_name("CleanerThread.java")
_CLASSES = BUILD / "benchmark-classes"
_JAVA_OPTIONS = (  # those of kafka-run-class.sh and kafka-server-start.sh
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
_LOG = "generated-0"


def open_peer(_: Setup) -> KafkaCleaner:
    try:
        path = classpath()
    except NotInstalled as missing:
        raise PeerMissing(str(missing)) from missing
    if not _CLASSES.exists() or _CLASSES.stat().st_mtime < _SOURCE.stat().st_mtime:
        subprocess.run(["javac", "-proc:none", "-d", str(_CLASSES), "-cp", path, str(_SOURCE)], check=True)
        _CLASSES.touch()
    command = ["java", *_JAVA_OPTIONS, "-cp", f"{_CLASSES}{os.pathsep}{path}", "CleanerThread"]
    # Kafka's log output has no reader here; a failure ends the process.
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return KafkaCleaner(process)


@dataclass(frozen=True)
class KafkaCleaner:
    """A JVM that does what it is told."""

    process: subprocess.Popen[str]
    _templates: dict[tuple[str, str], Path] = field(default_factory=dict)

    def prepare(self, work: Work) -> None:
        name = (work.step.segments[0].path, work.variant)
        if name not in self._templates:
            self._templates[name] = self._appended(work)
        log = work.output / _LOG
        shutil.copytree(self._templates[name], log)
        self._tell("open", log, work.step.now_ms, work.step.delete_retention_ms)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def run(self, work: Work) -> Left:
        self._tell("clean", work.step.first_dirty_offset)
        return Left(kafka_log=work.output / _LOG)

    def _appended(self, work: Work) -> Path:
        home = Path(work.step.segments[0].path).parents[1] / f"kafka-{work.variant}"
        log = home / _LOG
        log.mkdir(parents=True)
        columns = home / "columns"
        with columns.open("wb") as sink:
            _write_columns(sink, work.log)
        self._tell("append", columns, log, work.variant)
        columns.unlink()
        return log

    def _tell(self, *words: object) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise RuntimeError(f"Kafka failed at: {words}")


def _write_columns(sink: BinaryIO, log: GeneratedLog) -> None:
    for segment in log.steps[0].segments:
        for table in read_row_groups(TableFiles(), segment):
            blocks = [struct.pack("<i", len(block)) + block for block in _blocks(table.combine_chunks())]
            sink.write(struct.pack(">i", sum(map(len, blocks))))
            sink.writelines(blocks)
    sink.write(struct.pack(">i", 0))


def _blocks(table: pa.Table) -> Iterator[bytes]:
    yield table["offset"].to_numpy().tobytes()
    yield (table["timestamp"].cast(pa.int64()).to_numpy() // US_PER_MS).tobytes()
    for name in ("key", "value"):
        column = table[name]
        yield pc.fill_null(pc.binary_length(column), -1).to_numpy().astype(np.int32).tobytes()
        yield b"".join(each for each in column.to_pylist() if each)
    yield pc.list_value_length(table["headers"]).to_numpy().astype(np.int32).tobytes()
    entries = pc.list_flatten(table["headers"]).to_pylist()
    parts = (part for entry in entries for part in (entry["key"].encode(), entry["value"]))
    yield b"".join(struct.pack("<i", len(part)) + part for part in parts)
