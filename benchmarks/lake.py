"""What appends and small cleans wait for on a bucket: each beside the same on a disk, in turns.

    python -m benchmarks.lake                        # S3 + Postgres, 30 ms a request, ten logs, five rounds
    python -m benchmarks.lake --catalog rest --delay-ms 10 --rounds 3

The servers are local ones (``examples.lake``), behind proxies that delay each request. Spark is ``local[2]``, and was
started before. A round appends one batch to a topic of so many logs, twice, and cleans it: wall seconds, the smallest,
the median and the largest of all rounds.

| case   | what is measured                                                                    |
|--------|-------------------------------------------------------------------------------------|
| append | one batch of 20 records, that is one commit                                         |
| clean  | all logs of the topic, each of which has 40 records and a dirty ratio of 1          |
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

from examples.lake.postgres import postgres
from examples.lake.proxied_catalog import KINDS, proxied_catalog
from examples.lake.s3_server import s3_server
from examples.lake.whole_lake import catalog_environment
from keptlog.home import Home, new_id, open_home
from keptlog.log.record import NewRecord

CONFIG = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.1"}
BATCH_RECORDS = 20


@contextmanager
def delayed_lake(kind: str, delay_ms: float) -> Iterator[Mapping[str, str]]:
    """The properties of a catalog on local servers, of which each request takes so much longer."""
    with s3_server() as s3, postgres() as database, proxied_catalog(kind, s3, database, "lake") as lake:
        lake.delay(delay_ms)
        yield lake.proxied


def opened_home(folder: Path, properties: Mapping[str, str]) -> Home:
    """A home in an empty folder; without properties it keeps all on the disk."""
    with mock.patch.dict(os.environ, catalog_environment(properties) if properties else {}):
        return open_home(folder)


def one_round(home: Home, logs: int) -> Iterator[tuple[str, float]]:
    """One new topic: two appends and a clean, with what each took."""
    topic = f"small-{new_id()[:8]}"
    home.create_topic(topic, logs, CONFIG)
    for _ in range(2):
        now_ms = int(time.time() * 1000)
        batch = [
            NewRecord(key=b"%d" % (number % 7), value=b"x", partition=partition, timestamp_ms=now_ms)
            for partition in range(logs)
            for number in range(BATCH_RECORDS)
        ]
        yield "append", took(partial(home.append, topic, batch))
        time.sleep(0.01)

    def clean() -> None:
        cleaned = home.clean(topic)
        if cleaned.failed or len(cleaned.committed) != logs:
            raise SystemExit(f"{topic}: {len(cleaned.committed)} of {logs} logs were cleaned; {cleaned.failed}")

    yield "clean", took(clean)


def took(work: Callable[[], object]) -> float:
    """Its wall seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", choices=KINDS, default="sql")
    parser.add_argument("--delay-ms", type=float, default=30.0)
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, delayed_lake(given.catalog, given.delay_ms) as properties:
        homes = {
            "bucket": opened_home(Path(folder) / "bucket", properties),
            "disk": opened_home(Path(folder) / "disk", {}),
        }
        for number in range(given.rounds + 1):
            for where, home in homes.items():
                for case, taken in one_round(home, given.logs):
                    # The first round of each loads code, and starts Spark.
                    if number:
                        seconds[where, case].append(taken)
    for (where, case), each in seconds.items():
        spread = " / ".join(f"{figure:.2f}" for figure in (min(each), statistics.median(each), max(each)))
        ratio = statistics.median(each) / statistics.median(seconds["disk", case])
        print(f"{where:<8}{case:<8}{spread} s   {ratio:.1f} x disk")
    return 0


if __name__ == "__main__":
    sys.exit(main())
