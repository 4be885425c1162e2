"""A topic of a real broker and the topic that it is ingested into, with all but Spark real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keptlog.home import new_id, wall_clock_ms
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.ingest.plans import IngestPlans
from keptlog.ingest.result import IngestResult
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import NewRecord, Record
from keptlog.sources.kafka_broker.part import BrokerPart
from keptlog.table.store import LogStore
from tests.broker.broker import Broker
from tests.in_process import in_process_engine
from tests.logs import open_store


@dataclass
class Ingesting:
    """One topic, under the same name on both sides."""

    broker: Broker
    home: Path
    topic: str = field(default_factory=lambda: f"ingested-{new_id()}")

    @property
    def store(self) -> LogStore:
        """The store, as another process would see it."""
        return open_store(self.home)

    @property
    def ingest(self) -> Ingest:
        store = self.store
        return Ingest(store, in_process_engine(store.files), wall_clock_ms)

    @property
    def source(self) -> KafkaBrokers:
        """The topic at the broker."""
        settings = ClientSettings.load({"bootstrap.servers": self.broker.bootstrap}, {})
        return KafkaBrokers(settings, {self.topic: self.topic})

    def create(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self.broker.create_topic(self.topic, partitions, config or {})

    def produce(self, *values: bytes) -> None:
        """Records of partition 0."""
        self.broker.produce(self.topic, [NewRecord(b"key", value, 1_700_000_000_000, 0) for value in values])

    def part(self, settings: Mapping[str, str]) -> BrokerPart:
        """What is there to be read of partition 0, in one part, with settings of the client besides."""
        client = ClientSettings.load({"bootstrap.servers": self.broker.bootstrap, **settings}, {})
        [[part]] = KafkaBrokers(client, {self.topic: self.topic}).cut([each.plan for each in self.plan().topics], 1)
        return part

    def plan(self, *, skip_lost: bool = False) -> IngestPlans:
        plans = self.ingest.plan(self.source, skip_lost=skip_lost)
        assert not plans.failed
        return plans

    def bring(self, plans: IngestPlans | None = None, *, skip_lost: bool = False) -> IngestResult:
        """Ingest what is there now, or what was planned."""
        return self.ingest.carry_out(plans or self.plan(skip_lost=skip_lost), new_id())

    def bring_all(self) -> None:
        """Ingest, and nothing must fail."""
        assert not self.bring().failed

    def records(self) -> dict[int, list[Record]]:
        """What a reader here finds, by partition."""
        found: dict[int, list[Record]] = {log.topic_partition.partition: [] for log in self.store.logs(self.topic)}
        for partition, record in self.store.read(self.topic):
            found[partition].append(record)
        return found

    def values(self) -> list[bytes | None]:
        """Of partition 0."""
        return [record.value for record in self.records()[0]]

    def end_offsets(self) -> list[int]:
        return [log.log_end_offset for log in self.store.logs(self.topic)]
