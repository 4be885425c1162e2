"""What it costs to look a topic's files through for keys by their hashes, against a plain loop in one process.

    python -m benchmarks.key_search --keys 1000000

The files are one log as a topic has it before an erasure is verified: live segments, those that were replaced, and an
orphan of each, three times the same keys. ``plain`` is what somebody writes who has PyArrow and ``hmac``: it reads the
column of keys, hashes each, and looks it up in a set. Both must find the same records. Rounds are interleaved.

The last line on standard output is one JSON object: medians of wall and CPU seconds, megabytes of files and millions of
keys a second.
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.processes import Measured
from keptlog.engine.search_tasks import KeySearch
from keptlog.home import new_id
from keptlog.log.record import Record
from keptlog.log.search import SearchedFile
from keptlog.spark.jobs import spark_engine
from keptlog.spark.session import start_session
from keptlog.storage.key_hash import KeyHasher
from keptlog.storage.schema import to_arrow
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.table.io.files import TableFiles

GOAL = 0.5
"""Keptlog's wall time divided by that of the plain loop, on two cores."""
_COPIES = 3
_WANTED = 100
_ROWS = 100_000
_MEGABYTE = 10**6


@dataclass(frozen=True, slots=True)
class Bench:
    """A folder with the files of one log, and what is looked for in them."""

    folder: Path
    keys: int
    hasher: KeyHasher
    wanted: frozenset[bytes]

    def generate(self) -> None:
        """Each key once in a copy, in an order of its own, with 200 bytes of which zstd makes half."""
        for copy in range(_COPIES):
            dice = random.Random(copy)
            order = list(range(self.keys))
            dice.shuffle(order)
            path_for = f"{self.folder}/copy-{copy}/{{:020d}}.parquet".format
            writer = SegmentWriter(TableFiles(), path_for, 64 * 2**20)
            for first in range(0, self.keys, _ROWS):
                some = order[first : first + _ROWS]
                values = (dice.randbytes(100) + bytes(100) for _ in some)
                pairs = zip(some, values, strict=True)
                records = [Record(first + n, _key(key), value, 0) for n, (key, value) in enumerate(pairs)]
                writer.write(to_arrow(0, records))
            writer.finish()

    def files(self) -> list[SearchedFile]:
        return [SearchedFile(str(path), path.stat().st_size) for path in sorted(self.folder.rglob("*.parquet"))]

    def keptlog(self, session: SparkSession) -> set[tuple[str, bytes, int | None]]:
        search = KeySearch(self.files(), self.wanted, self.hasher)
        found = spark_engine(lambda: session, TableFiles()).search(search, new_id())
        assert not [each for each in found if each.problem]
        return {(each.file.path, hit.key_hash, hit.lowest_offset) for each in found for hit in each.hits}

    def plain(self) -> set[tuple[str, bytes, int | None]]:
        found: set[tuple[str, bytes, int | None]] = set()
        for file in self.files():
            table = pq.read_table(file.path, columns=["key", "offset"])
            for key, offset in zip(table["key"].to_pylist(), table["offset"].to_pylist(), strict=True):
                key_hash = hmac.digest(self.hasher.secret, key, "sha256")
                if key_hash in self.wanted:
                    found.add((file.path, key_hash, offset))
        return found


def _key(number: int) -> bytes:
    return b"user-%09d" % number


def _measured(bench: Bench, contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of each contender, after a round that does not count."""
    costs: dict[str, list[Measured]] = {name: [] for name in contenders}
    answers = {name: search() for name, search in contenders.items()}
    assert len({str(sorted(found)) for found in answers.values() if isinstance(found, set)}) == 1, "they differ"
    for number in range(rounds):
        names = list(contenders)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            own_cpu_seconds = time.process_time()
            with Measured() as cost:
                contenders[name]()
            if name == "plain":  # it is this process alone, while Spark's workers come and go beside it
                cost.cpu_seconds = time.process_time() - own_cpu_seconds
            costs[name].append(cost)
    size_bytes = sum(file.size_bytes for file in bench.files())
    told = {}
    for name, of_name in costs.items():
        wall_s = statistics.median(cost.wall_seconds for cost in of_name)
        told[name] = {
            "wall_s": round(wall_s, 3),
            "cpu_s": round(statistics.median(cost.cpu_seconds for cost in of_name), 3),
            "megabytes_per_s": round(size_bytes / wall_s / _MEGABYTE, 1),
            "million_keys_per_s": round(bench.keys * _COPIES / wall_s / 1e6, 3),
        }
    return told


def main() -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    hasher = KeyHasher(b"s" * 32)
    wanted = frozenset(hasher.hash(_key(number)) for number in range(0, options.keys, max(1, options.keys // _WANTED)))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.keys, hasher, wanted)
        bench.generate()
        session = start_session(f"local[{os.cpu_count()}]")
        contenders = {"keptlog": lambda: bench.keptlog(session), "plain": bench.plain}
        told = _measured(bench, contenders, options.rounds)
        session.stop()
    ratio = told["keptlog"]["wall_s"] / told["plain"]["wall_s"]
    result = {"keys": options.keys, "files_of_each_key": _COPIES, "cores": os.cpu_count(), **told}
    print(json.dumps(result | {"ratio": round(ratio, 3), "goal": GOAL, "met": ratio <= GOAL}))


if __name__ == "__main__":
    main()
