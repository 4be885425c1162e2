"""``make demo-lake``: the whole story on a lake: S3, an Iceberg REST catalog, Postgres, and a Spark cluster.

    servers start ──> a day of user profiles is appended ──> a Kafka log directory is imported ──> a sensor fires,
        its run cleans on the cluster ──> an evening more, and a worker is killed while it is cleaned ──> a day passes,
        tombstones expire ──> the latest values are restored to a file ──> purge: the bucket has what is live

It is proved record by record: what was appended and imported, by offset, key, value, timestamp and headers, before it
is cleaned; afterwards every key's latest value, in the topic and in the restored file; at the end that the bucket has
the live segments and no other, and the database Dagster's runs.

All servers run on this machine, on loopback, and are gone at the end, whatever happens. ``--stay`` keeps them until
Ctrl-C, and says how to use them from another terminal. Needs Maven, once, and PostgreSQL.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy

from examples.installed import NotInstalled
from examples.lake.server_process import ServerProcess
from examples.lake.whole_lake import BUCKET, DAGSTER_DATABASE, Lake, whole_lake
from examples.profiles_telling import PARTITIONS, ProfilesTelling
from examples.telling import DAY_MS, chapter, demo_home, say
from examples.to_the_end import add_records, exit_code_of, warm_spark
from examples.user_profiles import user_profiles
from keptlog.dagster.orchestration.clean_sensors import CLEAN_SENSORS
from keptlog.home import Home, new_id, spark_session
from keptlog.ingest.kafka_logs import KafkaLogs
from keptlog.log.record import NewRecord
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.restore_to_file import restore_to_json_lines
from keptlog.progress import silent
from keptlog.sources.kafka_log.directory import log_directories
from tests.data.expected import read_expected

TOPIC = "demo.user-profiles"
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "3600000", "delete.retention.ms": str(DAY_MS)}
RECORDS = 30_000
_BATCHES = 3
_KILLED_AFTER_S = 1.0
_LOGS = Path(__file__).parents[1] / "tests" / "data" / "broker_logs"
_IMPORTED = "transactions"


@dataclass
class Demo(ProfilesTelling):
    """The telling of what was appended to a lake."""

    victim: ServerProcess | None = None
    """A worker that is killed in the middle of the next run."""

    def run(self, job: str, run_config: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Carry out one run, beside which a worker may die."""
        victim, self.victim = self.victim, None
        timer = threading.Timer(_KILLED_AFTER_S, victim.kill) if victim else None
        if timer:
            timer.start()
        try:
            super().run(job, run_config, tags)
        finally:
            if timer:
                timer.join()

    def append(self, records: Iterable[NewRecord]) -> None:
        """Append records in several batches, each a segment of its own in every partition."""
        self.produced.begin_wave()
        noted = list(self.produced.add(records))
        length = -(-len(noted) // _BATCHES)
        started = time.monotonic()
        for start in range(0, len(noted), length):
            self.home.store.append(TOPIC, noted[start : start + length], new_id(), self.now_ms)
        say(f"  appended {len(noted):,} records in {_BATCHES} batches, in {time.monotonic() - started:.1f} s")

    def import_logs(self) -> bool:
        """Import a Kafka log directory on Spark; says whether all of it is here as Kafka reads it."""
        logs = [log for log in log_directories(_LOGS) if log.topic_partition.topic == _IMPORTED]
        ingest, run_id = self.home.ingest(spark_session), new_id()
        source = KafkaLogs({_IMPORTED: logs}, SETTINGS, partial(ingest.engine.start_jobs, run_id, silent))
        result = ingest.carry_out(ingest.plan(source), run_id)
        for error in result.failed.values():
            raise error
        found = [record for _, record in self.home.store.read(_IMPORTED)]
        same = found == read_expected(_LOGS / f"{_IMPORTED}-0.jsonl")
        say(f"  {_IMPORTED}: {len(found):,} committed records of a broker's log, by all their fields:")
        say("    the same" if same else "    NOT THE SAME")
        return same

    def restored_file_is_right(self) -> bool:
        """Restore the latest values to JSON lines, and compare them with what was appended last."""
        file = io.BytesIO()
        count = restore_to_json_lines(self.home.store.reader(TOPIC), file, silent, latest=True)
        rows = [json.loads(line) for line in file.getvalue().splitlines()]
        restored = {row["key"].encode(): row["value"].encode() for row in rows}
        same = restored == self.produced.latest
        say(f"  restored as JSON lines: {count:,} records; {'the same' if same else 'NOT THE SAME'}")
        return same

    def runs_are_in_postgres(self, lake: Lake) -> bool:
        """Ask the database itself, past Dagster: every run of the story with its events, and no other."""
        engine = sqlalchemy.create_engine(lake.database.uri(DAGSTER_DATABASE), poolclass=sqlalchemy.NullPool)
        with engine.connect() as connection:
            rows = connection.execute(sqlalchemy.text("select run_id, count(*) from event_logs group by run_id"))
            events: dict[str, int] = {run_id: count for run_id, count in rows if run_id}
            runs = set(connection.execute(sqlalchemy.text("select run_id from runs")).scalars())
        same = bool(runs) and runs == {run.run_id for run in self.instance.get_runs()} == set(events)
        say(f"  Dagster's runs in Postgres: {len(runs)}, with {sum(events.values()):,} events")
        return same

    def bucket_has_what_is_live(self, lake: Lake) -> bool:
        """Ask the store itself, past keptlog: the live segments, no other, and no upload that nobody completed."""
        client, store = lake.s3.client(), self.home.store
        topics = store.topics()
        live = {segment.path for topic in topics for log in store.logs(topic) for segment in log.segments}
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        keys = [f"s3://{BUCKET}/{each['Key']}" for page in pages for each in page.get("Contents", ())]
        data = {key for key in keys if any(key.startswith(f"{store.data_location(topic)}/") for topic in topics)}
        uploads = len(client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ()))
        others = {key for key in data - live if not key.endswith("/")}
        found = f"{len(data & live)} of {len(live)} live segments"
        say(f"  in the bucket: {found}, {len(others)} others, {uploads} open uploads")
        return live <= data and not others and not uploads


def tell(lake: Lake, home: Home, instance: dg.DagsterInstance, count: int) -> bool:
    """Tell the story of so many records; says whether all that was to be proved is."""
    demo = Demo(home, instance, TOPIC, time.time_ns() // 1_000_000 + DAY_MS, CLEAN_SENSORS)
    records = user_profiles(count, PARTITIONS)
    home.store.create_topic(TOPIC, PARTITIONS, SETTINGS)
    proofs: list[bool] = []

    chapter(f"2. Appended and imported. The clock says {iso_time(demo.now_ms)}")
    demo.append(islice(records, count * 3 // 4))
    proofs += [demo.is_as_produced(), demo.import_logs()]

    chapter("3. Dirty. The sensors look, and their runs clean on the cluster")
    demo.show()
    demo.tick()
    demo.show()

    chapter("4. The evening. The rest is appended, and a worker is killed while it is cleaned")
    demo.append(records)
    proofs.append(demo.is_as_produced())
    home.store.alter_topic(TOPIC, {"min.cleanable.dirty.ratio": "0.01"})
    demo.victim = lake.cluster.workers[0]
    demo.tick()
    say(f"  the master knows {lake.cluster.alive_workers()} worker; now the other one is started again")
    lake.cluster.workers[0].start()
    lake.cluster.wait_for(2)
    demo.show()

    demo.now_ms += DAY_MS
    chapter(f"5. A day passes (delete.retention.ms); the clock says {iso_time(demo.now_ms)}")
    demo.tick()
    demo.show()

    chapter("6. The proof")
    proofs += [demo.has_latest_values(), demo.restored_file_is_right()]

    demo.now_ms += DAY_MS
    chapter("7. Purge. What was replaced leaves the bucket")
    demo.purge()
    proofs += [demo.bucket_has_what_is_live(lake), demo.has_latest_values(), demo.runs_are_in_postgres(lake)]
    equal = all(proofs)
    say("  equal: every record before the cleans, every key's latest value after them" if equal else "  NOT EQUAL")
    return equal


def run(count: int, *, stay: bool) -> int:
    """Start all that is needed, tell the story, and end it."""
    if importlib.util.find_spec("dagster_postgres") is None:
        raise NotInstalled("Dagster keeps its runs in Postgres by dagster-postgres: pip install dagster-postgres")
    started = time.monotonic()
    chapter("1. The lake")
    with whole_lake(say) as lake:
        os.environ.update(lake.environment)
        with demo_home(TOPIC, "demo-lake") as home, dg.DagsterInstance.get() as instance, warm_spark():
            say(f"  started in {time.monotonic() - started:.0f} s")
            proved = tell(lake, home, instance, count)
        if stay:
            wait_for_the_user(lake)
    chapter(f"Done in {time.monotonic() - started:.0f} s; the lake is gone.")
    return 0 if proved else 1


def wait_for_the_user(lake: Lake) -> None:
    """Say how to use the servers from elsewhere, and wait until somebody ends it."""
    chapter("The servers stay until Ctrl-C. In another terminal:")
    for name, value in lake.environment.items():
        say(f"  export {name}={shlex.quote(value)}")
    say(f"  {shlex.quote(str(Path(sys.executable).parent / 'keptlog'))} status")
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if the proof holds, 1 if not, 2 if something is missing on this machine."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo_lake", description=(__doc__ or "").splitlines()[0])
    add_records(parser, RECORDS)
    parser.add_argument("--stay", action="store_true", help="keep the servers until Ctrl-C")
    given = parser.parse_args(arguments)
    return exit_code_of("demo-lake", "the lake is gone", lambda: run(given.records, stay=given.stay))


if __name__ == "__main__":
    sys.exit(main())
