"""The same random histories with registered readers in them, who come, read on, fall asleep, come back and leave.

What they hold is compared with the specification record by record, in both directions: nothing goes that is held, and
what is not held is due. Above that stands what all of it is for: whoever reads to the end without an error knows what
the log tells. So each reader here keeps a state, as a real one would, and never looks at anything else.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from keptlog.errors import TombstonesMissed
from keptlog.home import new_id
from keptlog.log.record import NewRecord, Record
from keptlog.log.reference import ReferenceLog, ReferenceReader
from keptlog.passes.readers import Readers
from tests.model.histories import DAY_MS, HOUR_MS, PARTITIONS, PAUSES_MS, RECORDS, SETTINGS, STRATEGIES, TOPIC
from tests.model.test_model import LogMachine, Staged
from tests.profiles import examples, is_soak

NAMES = st.sampled_from(["search", "billing"])
HOLDS_MS = st.sampled_from([0, 1, HOUR_MS, 2 * DAY_MS, 2**63 - 1])


@dataclass
class Client:
    """A program that reads the topic, and keeps the latest record of each key."""

    hold_max_ms: int
    positions: dict[int, int] = field(default_factory=dict)
    """As they were committed."""
    state: dict[int, dict[bytes, Record]] = field(default_factory=lambda: {number: {} for number in PARTITIONS})


class ReadersMachine(LogMachine):
    """The rules of ``LogMachine``, and those of readers."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[str, Client] = {}
        self.registrations = 0
        self.registrations_at: dict[str, int] = {}
        self.readers_at: dict[str, dict[int, dict[str, ReferenceReader]]] = {}

    @property
    def readers(self) -> Readers:
        return Readers(self.store, new_id)

    @initialize(settings=SETTINGS, strategy=STRATEGIES, names=st.sets(NAMES), hold_max_ms=HOLDS_MS)
    def create(self, settings: dict[str, str], strategy: dict[str, str], names: set[str], hold_max_ms: int) -> None:
        """Without gaps: where a source has some is no business of readers."""
        LogMachine.create.__wrapped__(self, settings, strategy, None)  # type: ignore[attr-defined]
        for name in sorted(names):
            self.add_reader(name, hold_max_ms, starts_over=False)

    @rule(name=NAMES, hold_max_ms=HOLDS_MS, starts_over=st.booleans())
    def add_reader(self, name: str, hold_max_ms: int, starts_over: bool) -> None:
        note(f"add reader {name}, hold {hold_max_ms} ms, start over: {starts_over}")
        self.readers.add(TOPIC, name, hold_max_ms, now_ms=self.now_ms, start_over=starts_over)
        self.registrations += 1
        is_known = name in self.clients and not starts_over
        client = self.clients[name] if is_known else Client(hold_max_ms)
        client.hold_max_ms = hold_max_ms
        self.clients[name] = client
        for twin in self.expected.values():
            missed = twin.log.readers[name].missed if is_known else []
            twin.log.readers[name] = ReferenceReader(hold_max_ms, missed=missed)

    @rule(name=NAMES)
    def remove_reader(self, name: str) -> None:
        if name in self.clients:
            note(f"remove reader {name}")
            self.readers.remove(TOPIC, name)
            del self.clients[name]
            for twin in self.expected.values():
                del twin.log.readers[name]

    @rule(name=NAMES)
    def read_on(self, name: str) -> None:
        """As ``read --as-reader`` does; then the reader's state is that of the log, or he is told that it is not."""
        client = self.clients.get(name)
        if client is None:
            return
        note(f"{name} reads on from {client.positions}")
        if any(self._has_missed(name, partition, client.positions.get(partition)) for partition in PARTITIONS):
            with pytest.raises(TombstonesMissed, match=f"reader {name} of topic {TOPIC} was too slow"):
                self.readers.read(TOPIC, name)
            self.add_reader(name, client.hold_max_ms, starts_over=True)
            client = self.clients[name]
        for partition, record in self.readers.read(TOPIC, name):
            self._take(client, partition, record)
        for partition, twin in self.expected.items():
            client.positions[partition] = twin.log.log_end_offset
            self._knows_the_log(client, partition)

    @rule(name=NAMES, partition=st.sampled_from(PARTITIONS), share=st.sampled_from([0, 0.3, 0.6, 1]))
    def read_a_part(self, name: str, partition: int, share: float) -> None:
        """By his own means, one partition, not to its end; then he says where he stands."""
        client = self.clients.get(name)
        if client is None:
            return
        position, end = client.positions.get(partition), self.expected[partition].log.log_end_offset
        from_offset = position or 0
        to_offset = from_offset + int((end - from_offset) * share)
        note(f"{name} reads {partition} from {position} to {to_offset}")
        if self._has_missed(name, partition, position) or self._has_missed(name, partition, from_offset):
            with pytest.raises(TombstonesMissed):
                self.readers.commit(TOPIC, name, {partition: to_offset})
            return
        for _, record in self.store.read(TOPIC, partition, from_offset):
            if record.offset < to_offset:
                self._take(client, partition, record)
        self.readers.commit(TOPIC, name, {partition: to_offset})
        client.positions[partition] = to_offset

    @rule(records=RECORDS, name=NAMES, sleeps_ms=PAUSES_MS)
    def read_delete_and_sleep(self, records: list[NewRecord], name: str, sleeps_ms: int) -> None:
        """What readers are registered for."""
        self.append(records, DAY_MS + 1)
        self.read_on(name)
        self.append([NewRecord(each.key, None, 0, each.partition) for each in records], DAY_MS + 1)
        self.clean(PARTITIONS)
        self.is_as_specified()
        self.clock(sleeps_ms)
        self.expire()

    @rule(records=RECORDS, name=NAMES, hold_max_ms=HOLDS_MS, starts_over=st.booleans())
    def register_during_a_clean(self, records: list[NewRecord], name: str, hold_max_ms: int, starts_over: bool) -> None:
        self.append(records, DAY_MS + 1)
        run = self._stage(PARTITIONS)
        self.add_reader(name, hold_max_ms, starts_over)
        self.read_a_part(name, 0, 0.6)
        self.commit(run)
        self.read_on(name)

    def _stage(self, partitions: tuple[int, ...]) -> Staged:
        before = {partition: deepcopy(twin.log.readers) for partition, twin in self.expected.items()}
        run = super()._stage(partitions)
        self.registrations_at[run.run_id] = self.registrations
        self.readers_at[run.run_id] = before
        return run

    def _is_protected(self, run: Staged, partition: int) -> bool:
        """Whoever has come since may hold what would go; whether he does is seen by what he knows in the end."""
        has_news = self.registrations_at[run.run_id] != self.registrations
        waits = "wait for readers now" in str(self.result.failed.get(f"{TOPIC}-{partition}"))
        assert has_news or not waits, self.result.failed
        return super()._is_protected(run, partition) or waits

    def _landed(self, run: Staged, partitions: Collection[int]) -> None:
        before = {partition: twin.log.readers for partition, twin in self.expected.items()}
        super()._landed(run, partitions)
        for partition in partitions:
            planned = run.expected[partition]
            for name, reader in before[partition].items():
                if name in planned.readers:
                    known = self.readers_at[run.run_id][partition][name].missed
                    reader.missed += planned.readers[name].missed[len(known) :]
            self.expected[partition].log.readers = before[partition]

    def _as_it_is_now(self, partition: int) -> ReferenceLog:
        """With each reader where he stands: at the beginning of the segment that his position lies in."""
        log = deepcopy(self.expected[partition].log)
        segments = self.store.logs(TOPIC)[partition].segments
        for name, reader in log.readers.items():
            position = self.clients[name].positions.get(partition, 0)
            bases = [each.base_offset for each in segments if each.base_offset <= position <= each.last_offset]
            reader.position = min(bases, default=position)
        return log

    def _has_missed(self, name: str, partition: int, position: int | None) -> bool:
        if position is None:
            return False
        missed = self.expected[partition].log.readers[name].missed
        return any(position <= offset for offset in missed) or 0 < position < self.starts[partition]

    def _take(self, client: Client, partition: int, record: Record) -> None:
        rank, state = self.expected[partition].log.config.rank, client.state[partition]
        if record.key is not None and rank(record) >= rank(state.get(record.key, record)):
            state[record.key] = record

    def _knows_the_log(self, client: Client, partition: int) -> None:
        """What was deleted from the head of the log he may still know; a log with versions forgets them one day."""
        log = self.expected[partition].log
        if log.config.strategy != "offset":
            return
        known = {
            record.key: record.value for record in client.state[partition].values() if self._is_there(partition, record)
        }
        told = {
            key: value
            for _, each in self.store.read(TOPIC, partition, latest=True)
            for key, value in [(each.key, each.value)]
        }
        assert known == told

    def _is_there(self, partition: int, record: Record) -> bool:
        return record.value is not None and record.offset >= self.starts[partition]


TestReaders = pytest.mark.timeout(3600)(ReadersMachine.TestCase)
TestReaders.settings = settings(
    max_examples=examples(20),
    stateful_step_count=25,
    deadline=None,
    derandomize=not is_soak(),
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
