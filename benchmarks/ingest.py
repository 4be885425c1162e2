"""What it costs to bring records of a Kafka broker into segments, against a consumer that only reads them.

    python -m benchmarks.ingest --records 1000000

The consumer is confluent-kafka's with the settings that keptlog reads with, and does nothing with what it gets. (With
librdkafka's own it sleeps a second whenever its queue is full, and is several times slower: it is shown too.) Ingests
run on a warm Spark session, from the first question to the broker until the commit; the first one, which starts the
session, is told by itself. Rounds are interleaved, so that a noisy machine is noisy for all. The broker runs on this
machine and shares its cores, unless ``--bootstrap`` names another; it needs Maven, as the demo does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.processes import Measured
from examples.kafka_broker import kafka_broker
from keptlog.home import new_id, open_home
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.kafka_client.settings import ClientSettings
from keptlog.spark.session import start_session

TOPIC = "generated.user-profiles"
_KEYS = 100_000
_PHRASES = [bytes(random.Random(number).choices(b"abcdefghij klmnop", k=100)) for number in range(16)]
_TIMEOUT_SECONDS = 60.0
_AT_ONCE = 500
GOAL = 0.5


@dataclass(frozen=True, slots=True)
class Bench:
    """One topic of one partition, and those who read it."""

    settings: ClientSettings
    records: int
    home: Path
    cores: int

    def produce(self, value_bytes: int) -> None:
        """Values are half random bytes and half one of sixteen phrases."""
        admin = AdminClient(self.settings.for_admin())
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(_TIMEOUT_SECONDS)
        producer = Producer({**self.settings.for_producer(), "linger.ms": 20, "queue.buffering.max.messages": 10**6})
        dice = random.Random(7)
        for number in range(self.records):
            value = (dice.randbytes(value_bytes // 2) + dice.choice(_PHRASES) * (value_bytes // 100))[:value_bytes]
            producer.produce(TOPIC, key=b"user-%d" % dice.randrange(_KEYS), value=value, partition=0)
            if number % 10_000 == 0:
                producer.poll(0.05)
        waiting = producer.flush(_TIMEOUT_SECONDS)
        assert not waiting, f"{waiting} records were not taken"

    def consume(self, settings: Mapping[str, Any]) -> Measured:
        """Read all and drop it."""
        with Measured() as cost, contextlib.closing(Consumer(dict(settings))) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            left = self.records
            while left:
                left -= sum(message.error() is None for message in consumer.consume(min(left, _AT_ONCE), timeout=0.05))
        return cost

    def ingest(self, into: str) -> Measured:
        """Bring all into a new topic."""
        with Measured() as cost:
            home = open_home(self.home)
            ingest = home.ingest(lambda: start_session(f"local[{self.cores}]"))
            result = ingest.carry_out(ingest.plan(KafkaBrokers(self.settings, {into: TOPIC})), new_id())
        brought = sum(each.records for each in result.committed)
        if result.failed or brought != self.records:
            sys.exit(f"{brought} of {self.records} records came in: {result.failed}")
        return cost

    def measure(self, rounds: int) -> dict[str, Any]:
        """Interleaved rounds: medians of records a second, and of CPU seconds for all records."""
        cold = self.ingest("cold")
        librdkafkas_own = {
            name: value for name, value in self.settings.for_consumer().items() if name not in _KEPTLOGS_CHOICE
        }
        costs: dict[str, list[Measured]] = {"bare consumer": [], "bare consumer, default settings": [], "ingest": []}
        for number in range(rounds):
            costs["bare consumer"].append(self.consume(self.settings.for_consumer()))
            costs["ingest"].append(self.ingest(f"round-{number}"))
            costs["bare consumer, default settings"].append(self.consume(librdkafkas_own))
        return {"first ingest": self._figures([cold])} | {name: self._figures(each) for name, each in costs.items()}

    def _figures(self, costs: list[Measured]) -> dict[str, float]:
        wall_seconds = statistics.median(cost.wall_seconds for cost in costs)
        return {
            "wall_seconds": round(wall_seconds, 2),
            "cpu_seconds": round(statistics.median(cost.cpu_seconds for cost in costs), 2),
            "records_per_second": round(self.records / wall_seconds),
        }


_KEPTLOGS_CHOICE = {"fetch.queue.backoff.ms", "queued.max.messages.kbytes", "max.partition.fetch.bytes"}


@contextlib.contextmanager
def _bootstrap(given: str | None) -> Iterator[str]:
    if given:
        yield given
        return
    with kafka_broker() as broker:
        yield broker.bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--value-bytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--bootstrap", help="a broker that runs already, without the topic")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keptlog-benchmark-") as name, _bootstrap(arguments.bootstrap) as bootstrap:
        settings = ClientSettings.load({"bootstrap.servers": bootstrap}, {})
        bench = Bench(settings, arguments.records, Path(name), arguments.cores)
        print(f"producing {arguments.records} records of {arguments.value_bytes} bytes", flush=True)
        bench.produce(arguments.value_bytes)
        figures = bench.measure(arguments.rounds)
    print(f"{'':34}{'wall s':>10}{'CPU s':>10}{'records/s':>12}")
    for name, row in figures.items():
        print(f"{name:34}{row['wall_seconds']:>10}{row['cpu_seconds']:>10}{row['records_per_second']:>12}")
    ratio = round(figures["ingest"]["records_per_second"] / figures["bare consumer"]["records_per_second"], 2)
    print(f"an ingest has {ratio} times the rate of the bare consumer; the goal is {GOAL}")
    print(json.dumps(figures | {"records": arguments.records, "cores": arguments.cores, "ratio": ratio}))


if __name__ == "__main__":
    main()
