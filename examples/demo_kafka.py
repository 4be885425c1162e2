"""``make demo-kafka``: a day of a user-profile topic, from a Kafka broker to a cleaned topic on the lake.

    a broker starts ──> a day is produced ──> the job ingests it ──> a sensor fires ──> its run cleans
                    ──> an evening more ──> the lag sensor fires, its run ingests ──> a sensor fires, its run cleans
                    ──> a day passes ──> tombstones expire ──> the latest values are those that were produced ──> purge

Twice it is proved that nothing was changed on the way: before each clean by a digest over the offset, key, value,
timestamp and headers of every record, and at the end by comparing the latest value of every key.

The broker is real, runs on this machine and is gone at the end, whatever happens; so is Spark. The topic and the runs
stay (``examples.telling``). Needs Maven, once: Kafka's jars come through it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import dagster as dg
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.installed import java
from examples.kafka_broker import DEADLINE_SECONDS, KafkaBroker, kafka_broker
from examples.kafka_jars import VERSION, WHAT, kafka_jars
from examples.profiles_telling import PARTITIONS, ProfilesTelling
from examples.telling import DAY_MS, chapter, demo_home, say, where_to_look
from examples.to_the_end import add_records, exit_code_of, warm_spark
from examples.user_profiles import user_profiles
from keptlog.dagster.orchestration.clean_sensors import CLEAN_SENSORS
from keptlog.dagster.orchestration.ingest_sensor import INGEST_LAG_SENSOR
from keptlog.errors import StorageUnavailable
from keptlog.home import Home
from keptlog.log.record import NewRecord
from keptlog.log.words.iso_time import iso_time

TOPIC = "demo.user-profiles"
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "3600000", "delete.retention.ms": str(DAY_MS)}
RECORDS = 200_000
_ERRORS_ONLY = 3
"""librdkafka logs that a broker which has just started lets it wait; that is no news."""


class Demo(ProfilesTelling):
    """The telling of what was produced to a broker."""

    def produce(self, broker: KafkaBroker, records: Iterable[NewRecord]) -> None:
        """Send records to the broker, and wait until it has acknowledged all of them."""
        self.produced.begin_wave()
        before, tombstones = sum(self.produced.ends), self.produced.tombstones
        started = time.monotonic()
        send(broker.bootstrap, self.produced.add(records))
        took_s = time.monotonic() - started
        count, deleted = sum(self.produced.ends) - before, self.produced.tombstones - tombstones
        say(
            f"  produced {count:,} records, {deleted:,} of them tombstones, in {took_s:.1f} s "
            f"({count / took_s:,.0f} a second, made up and sent)"
        )


def tell(broker: KafkaBroker, home: Home, instance: dg.DagsterInstance, count: int) -> bool:
    """Tell the story of so many records; says whether all that was to be proved is."""
    demo = Demo(home, instance, TOPIC, time.time_ns() // 1_000_000, [INGEST_LAG_SENSOR, *CLEAN_SENSORS])
    demo.begin()
    records = user_profiles(count, PARTITIONS)
    proofs: list[bool] = []

    chapter(f"1. Produced. A day of user profiles goes to {TOPIC} at {broker.bootstrap}; here are three quarters of it")
    create_topic(broker.bootstrap)
    demo.produce(broker, islice(records, count * 3 // 4))

    chapter("2. Ingested. The job ingest_kafka, as from Dagster's launchpad; this first run starts Spark's workers too")
    demo.run("ingest_kafka", {"ops": {"ingest": {"config": first_ingest(broker.bootstrap)}}}, {})
    proofs.append(demo.is_as_produced())

    chapter("3. Dirty. Never cleaned: the dirty ratio is 1")
    demo.show()
    demo.tick()
    demo.show()

    chapter("4. The evening. The rest is produced; from now on the sensors do all of it by themselves")
    demo.produce(broker, records)
    demo.sensors = [INGEST_LAG_SENSOR]
    demo.tick()
    proofs.append(demo.is_as_produced())
    demo.show()
    demo.sensors = [INGEST_LAG_SENSOR, *CLEAN_SENSORS]
    demo.tick()
    demo.show()

    demo.now_ms += DAY_MS
    chapter(f"5. A day passes (delete.retention.ms); the clock says {iso_time(demo.now_ms)}")
    demo.tick()
    demo.show()

    chapter("6. The proof")
    proofs.append(demo.has_latest_values())
    equal = all(proofs)
    say(
        "  equal: every record before the cleans, every key's latest value after them"
        if equal
        else "  NOT EQUAL: please report this"
    )

    demo.now_ms += DAY_MS
    chapter("7. Purge. What was replaced leaves the storage")
    demo.purge()
    return equal


def first_ingest(bootstrap: str) -> dict[str, Any]:
    """What the launchpad is told; afterwards the topic remembers where it comes from."""
    return {"topics": [TOPIC], "bootstrap": bootstrap, "config": SETTINGS}


def create_topic(bootstrap: str) -> None:
    """Create the topic at the broker, whose own cleaner leaves it alone: a day is one active segment to it."""
    topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1, config={"cleanup.policy": "compact"})
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _ERRORS_ONLY})
    admin.create_topics([topic])[TOPIC].result(DEADLINE_SECONDS)


def send(bootstrap: str, records: Iterable[NewRecord]) -> None:
    """Produce records, each partition's in their order.

    Raises:
        StorageUnavailable: the broker did not take them.
    """
    refused: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error:
            refused.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": _ERRORS_ONLY,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 20,
            "message.timeout.ms": int(DEADLINE_SECONDS * 1000),
            "delivery.report.only.error": True,
            "on_delivery": delivered,
        }
    )
    for record in records:
        while True:
            try:
                producer.produce(
                    TOPIC,
                    key=record.key,
                    value=record.value,
                    partition=record.partition or 0,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                )
                break
            except BufferError:
                producer.poll(0.1)
    while producer.flush(0.5):
        pass
    if refused:
        raise StorageUnavailable(f"the broker at {bootstrap} did not take {len(refused)} records: {refused[0]}")


def run(count: int) -> int:
    """Start all that is needed, tell the story, and end it."""
    started = time.monotonic()
    java(WHAT)
    kafka_jars(say)
    with (
        demo_home(TOPIC, "demo-kafka") as home,
        dg.DagsterInstance.get() as instance,
        kafka_broker() as broker,
        warm_spark(),
    ):
        say(f"a Kafka {VERSION} broker and Spark were started in {time.monotonic() - started:.0f} s")
        proved = tell(broker, home, instance, count)
    chapter(f"Done in {time.monotonic() - started:.0f} s; the broker is gone. To look at what stays:")
    where_to_look(home, TOPIC)
    return 0 if proved else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if the proof holds, 1 if not, 2 if something is missing on this machine."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo_kafka", description=(__doc__ or "").splitlines()[0])
    add_records(parser, RECORDS)
    count = parser.parse_args(arguments).records
    return exit_code_of("demo-kafka", "the broker and Spark are gone", lambda: run(count))


if __name__ == "__main__":
    sys.exit(main())
