"""One topic on its way through a soak: produced to a broker, cleaned there, ingested here, cleaned here.

    told      what was committed, key by key: what a producer knows
    there     what a consumer of the broker finds who reads all of it, whatever the broker's cleaner has dropped
    here      what a reader of keptlog finds

Nobody deletes but by tombstones, so the three are one state whenever all is ingested. The broker's cleaner drops a
tombstone soon; an ingest that comes later can't see it, and must either find out or stop. If it stops, it reconciles.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from keptlog.home import new_id, wall_clock_ms
from keptlog.ingest.result import IngestResult
from keptlog.log.record import Record
from keptlog.passes.clean import Cleaner
from keptlog.passes.verify import verify_log
from tests.broker.broker import Broker
from tests.broker.ingesting import Ingesting
from tests.in_process import in_process_engine
from tests.logs import carry_out

State = dict[tuple[int, bytes], bytes]
"""By partition and key the value."""
Sent = tuple[int, bytes, bytes | None]
"""Partition, key and value of a record."""

PATIENCE_SECONDS = 90.0
"""How long a producer tries, over the restart of its broker."""
_PATIENCE_MS = int(PATIENCE_SECONDS * 1000)
MISSED = "delete.retention.ms"
"""What the message of an ingest names that stops because tombstones may be gone."""
_MINUTE_MS = 60_000
DAY_MS = 1440 * _MINUTE_MS
_ODD_KEYS = (b"", b"\0\xff", "Zürich".encode(), b"K" * 300)


class Differs(AssertionError):
    """A key is alive on one side and not on the other, or has another value."""


@dataclass
class SoakTopic:
    """A topic with what is known of it. Each batch comes so long after the one before that it closes its segment."""

    broker: Broker
    home: Path
    dice: Random
    happened: Counter[str]
    tombstones_kept_ms: int
    """The topic's ``delete.retention.ms`` there."""
    partitions: int = field(init=False)
    told: State = field(default_factory=dict)
    sure: bool = True
    """Whether an ingest took all that there was since something was produced last."""

    def __post_init__(self) -> None:
        dice = self.dice
        self.ingesting = Ingesting(self.broker, self.home)
        self.partitions = dice.choice([1, 1, 2])
        self.keys = [b"key-%d" % number for number in range(dice.choice([2, 6, 30]))] + list(_ODD_KEYS)
        self.tombstones = dice.choice([0.2, 0.5])
        self.now_ms = wall_clock_ms() - 30 * DAY_MS
        self.ingesting.create(
            self.partitions,
            {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": dice.choice(["0.001", "0.001", "0.3"]),
                "segment.ms": str(_MINUTE_MS),
                "delete.retention.ms": str(self.tombstones_kept_ms),
            },
        )
        self._plain = self._producer({"enable.idempotence": True})
        self._transactional = self._producer(
            {"transactional.id": self.ingesting.topic, "transaction.timeout.ms": _PATIENCE_MS}
        )
        self._transactional.init_transactions(PATIENCE_SECONDS)

    def act(self) -> None:
        """Do one thing, drawn by the dice."""
        acts: dict[str, int] = {"produce": 12, "transaction": 4, "wait": 3, "forget": 2, "ingest": 4, "clean": 2}
        if self.dice.random() < 0.05:
            acts = {"compare": 1}
        (name,) = self.dice.choices(list(acts), list(acts.values()))
        self.happened[name] += 1
        getattr(self, f"_{name}")()

    def finish(self) -> None:
        """Ingest and clean to the end, and compare everything."""
        self._ingest()
        self._clean()
        self._compare()
        for log in self.ingesting.store.logs(self.ingesting.topic):
            for check in verify_log(self.ingesting.store, log, wall_clock_ms()):
                if not check.passed:
                    raise Differs(f"{log.topic_partition}: verify: {check.description}")

    def transact(self, meanwhile: Callable[[], None]) -> None:
        """A transaction during which something happens; committed or not."""
        self._transactional.begin_transaction()
        sent = self._send(self._transactional)
        meanwhile()
        if self.dice.random() < 0.6:
            _patiently(lambda: self._transactional.commit_transaction(PATIENCE_SECONDS))
            self._tell(sent)
        else:
            _patiently(lambda: self._transactional.abort_transaction(PATIENCE_SECONDS))
        self.sure = False

    def _produce(self) -> None:
        self._tell(self._send(self._plain))
        self.sure = False

    def _transaction(self) -> None:
        self.transact(lambda: None)

    def _wait(self) -> None:
        """For the broker's cleaner."""
        time.sleep(self.dice.choice([0.1, 0.5, 2.0]))

    def _forget(self) -> None:
        """Delete some keys, and give the broker's cleaner time to drop the tombstones before the next ingest."""
        alive = sorted(self.told)
        self._tell(self._sent(self._plain, [(*place, None) for place in self.dice.sample(alive, min(2, len(alive)))]))
        for number in range(3):  # each closes the segment before, and makes something dirty
            self._tell(self._sent(self._plain, [(each, b"tick", b"%d" % number) for each in range(self.partitions)]))
            time.sleep(0.7)
        self.sure = False
        if self.dice.random() < 0.7:  # before another record brings one of the keys back
            self._ingest()

    def _ingest(self) -> None:
        result = self.ingesting.bring()
        if result.failed:
            self._reconcile(result)
        self.sure = True
        self._require_one(self.told, self._here(), "here, right after an ingest")

    def _reconcile(self, stopped: IngestResult) -> None:
        for name, error in stopped.failed.items():
            if MISSED not in str(error):
                raise Differs(f"{name} stops: {error}")
        plans = self.ingesting.ingest.plan(self.ingesting.source, reconcile=True)
        result = self.ingesting.ingest.carry_out(plans, new_id())
        if plans.failed or result.failed:
            raise Differs(f"{self.ingesting.topic} can't be reconciled: {plans.failed or result.failed}")
        self.happened["reconciled"] += 1
        self.happened["keys that were gone"] += sum(each.reconciled or 0 for each in result.committed)

    def _clean(self) -> None:
        store = self.ingesting.store
        if self.ingesting.topic not in store.topics():
            return
        cleaner = Cleaner(store, in_process_engine(store.files))
        done = carry_out(cleaner, cleaner.plan([self.ingesting.topic], now_ms=wall_clock_ms(), requested=True))
        if done.failed:
            raise Differs(f"a clean fails: {done.failed}")
        if self.sure:
            self._require_one(self.told, self._here(), "here, after a clean")

    def _compare(self) -> None:
        self._require_one(self.told, self._there(), "there")

    def _here(self) -> State:
        reader = self.ingesting.store.reader(self.ingesting.topic)
        return _state((partition, each) for partition, each in reader.records(0, latest=True))

    def _there(self) -> State:
        found = self.broker.records(self.ingesting.topic, self.partitions)
        return _state((partition, each) for partition, records in found.items() for each in records)

    def _require_one(self, wanted: State, found: State, where: str) -> None:
        for place in sorted(wanted.keys() | found.keys()):
            if wanted.get(place) != found.get(place):
                partition, key = place
                raise Differs(
                    f"{self.ingesting.topic}-{partition}: key {key!r} {where}: {found.get(place)!r}, "
                    f"was told {wanted.get(place)!r}"
                )
        self.happened["compared"] += 1

    def _send(self, producer: Producer) -> list[Sent]:
        """Some records of drawn keys."""
        dice, drawn = self.dice, list[Sent]()
        for _ in range(dice.randint(1, 12)):
            value = None if dice.random() < self.tombstones else dice.choice([b"", b"%d" % dice.randrange(10**9)])
            drawn.append((dice.randrange(self.partitions), dice.choice(self.keys), value))
        return self._sent(producer, drawn)

    def _sent(self, producer: Producer, records: list[Sent]) -> list[Sent]:
        self.now_ms += 2 * _MINUTE_MS
        for partition, key, value in records:
            producer.produce(
                self.ingesting.topic,
                key=key,
                value=value,
                partition=partition,
                timestamp=self.now_ms,
                on_delivery=_must_arrive,
            )
        if producer.flush(PATIENCE_SECONDS):
            raise Differs(f"{self.ingesting.topic}: records were not acknowledged within {PATIENCE_SECONDS:.0f} s")
        self.happened["records"] += len(records)
        self.happened["tombstones"] += sum(value is None for *_, value in records)
        return records

    def _tell(self, sent: Sequence[Sent]) -> None:
        for partition, key, value in sent:
            if value is None:
                self.told.pop((partition, key), None)
            else:
                self.told[partition, key] = value

    def _producer(self, settings: dict[str, str | int | float | bool]) -> Producer:
        own = {"bootstrap.servers": self.broker.bootstrap, "linger.ms": 1, "message.timeout.ms": _PATIENCE_MS}
        # Broken connections are part of it, and tried again; what can't be mended comes with a delivery.
        return Producer({**own, "log_level": 0, **settings})


def _state(records: Iterable[tuple[int, Record]]) -> State:
    """What all of these records tell; of a key the last one counts."""
    told: State = {}
    for partition, record in records:
        assert record.key is not None
        if record.value is None:
            told.pop((partition, record.key), None)
        else:
            told[partition, record.key] = record.value
    return told


def _must_arrive(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise Differs(f"a record did not arrive: {error}")


def _patiently(attempt: Callable[[], object]) -> None:
    """Again, for as long as the broker says so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            attempt()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            return
