"""One history: the world, what is stored in it, and what its programs have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from typing_extensions import override

from keptlog.engine.engine import Engine
from keptlog.errors import CommitStateUnknown, InvariantViolated, KeptlogError, LogCorrupt, UnsupportedFormat
from keptlog.log.broker import COMMIT_MAX_BYTES, BrokerConfig
from keptlog.log.record import NewRecord, Record
from keptlog.passes.clean import Cleaner
from keptlog.table.chain.receipt_chain import ReceiptChain
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.sim.book import Appending
from tests.sim.catalog import SimulatedCatalog, WatchedCatalog
from tests.sim.chain import KEY, ChainOracle
from tests.sim.faults import Known
from tests.sim.jobs import simulated_engine
from tests.sim.ledger import Ledger
from tests.sim.oracles import FileOracle
from tests.sim.source import SourceLogs
from tests.sim.storage import SimulatedFiles, Storage, WatchedStorage
from tests.sim.world import Actor, World

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
APPENDED, INGESTED = "t", "s"
EVERY_TOPIC = ""
"""What a program works on that works on all of them."""
PARTITIONS = 2
KEYS = tuple(b"key-%d" % number for number in range(6))
Given = TypeVar("Given")


class SimulatedStore(LogStore):
    """A store of one world, over files that are watched, which seals receipts into the chain of its catalog."""

    def __init__(self, world: World, catalog: Catalog, files: TableFiles, skew_ms: int) -> None:
        self._simulated = files
        super().__init__(catalog, {}, world.sleep, world.new_id)
        self.clock_guard.clock_ms = lambda: world.now_ms + skew_ms
        self.chain = ReceiptChain(self.committer, lambda: KEY, world.new_id, "simulated")
        self.seal = self.chain.append

    @property
    @override
    def files(self) -> TableFiles:
        return self._simulated


@dataclass
class History:
    """What all programs of one history work on."""

    world: World
    storage: WatchedStorage
    catalog: WatchedCatalog
    open_store: Callable[[Any, int], SimulatedStore]
    """Over such a catalog, with a clock that is so many ms wrong."""
    ledger: Ledger
    oracle: FileOracle
    chain: ChainOracle
    stores: dict[int, SimulatedStore] = field(default_factory=dict)
    """By host; a crash takes it along, with all that it remembered."""
    copies: list[WatchedCatalog] = field(default_factory=list)
    """Homes as they were when somebody copied them."""
    late: list[Callable[[], object]] = field(default_factory=list)
    unsettled: dict[str, Appending] = field(default_factory=dict)
    """Appends that may have landed, or not: their run is sent again within a day, for so long its id is remembered."""
    there: SourceLogs = field(default_factory=lambda: SourceLogs([[] for _ in range(PARTITIONS)], [0] * PARTITIONS))
    source_config: dict[str, str] = field(default_factory=dict)
    by_timestamp: bool = False
    commit_max_bytes: int = COMMIT_MAX_BYTES
    """Where it is small, cleans go in legs."""
    _values: int = 0

    @classmethod
    def begun(cls, seed: int, known: frozenset[Known]) -> History:
        """On the simulated disk."""
        world = World(seed, known)
        storage = Storage(world)

        def open_store(catalog: SimulatedCatalog, skew_ms: int) -> SimulatedStore:
            return SimulatedStore(world, catalog, SimulatedFiles(storage=storage), skew_ms)

        return cls.on(storage, SimulatedCatalog(world, storage), open_store)

    @classmethod
    def on(
        cls, storage: WatchedStorage, catalog: WatchedCatalog, open_store: Callable[[Any, int], SimulatedStore]
    ) -> History:
        """On any disk with any catalog, which the oracles watch from now on."""
        world = storage.world
        ledger = Ledger(world, storage)
        catalog.watchers.append(ledger)
        oracle, chain = FileOracle(world, storage, ledger), ChainOracle(world, storage)
        catalog.watchers.append(chain)
        storage.watchers += [oracle, chain]
        history = cls(world, storage, catalog, open_store, ledger, oracle, chain)
        world.on_crash = history.after_crash
        world.on_power_loss = history.after_power_loss
        return history

    def after_crash(self, actor: Actor) -> None:
        self.stores.pop(actor.host, None)

    def after_power_loss(self) -> None:
        self.stores.clear()
        self.late.clear()
        changed = self.storage.disk.lose_power(self.world.dice.chance)
        for path in changed:
            self.world.tell(f"lost or back: {path}")
        self.oracle.after_power_loss(changed)
        self.chain.after_power_loss()

    def store(self, host: int) -> SimulatedStore:
        if host not in self.stores:
            self.stores[host] = self.open_store(self.catalog, self.world.skews_ms[host])
        return self.stores[host]

    def store_over(self, copy: WatchedCatalog) -> SimulatedStore:
        """A store over a copied home."""
        return self.open_store(copy, 0)

    def engine(self, host: int) -> Engine:
        return simulated_engine(self.world, self.store(host).files, self.late)

    def cleaner(self, host: int) -> Cleaner:
        return Cleaner(
            self.store(host), self.engine(host), BrokerConfig(keptlog_cleaner_commit_max_bytes=self.commit_max_bytes)
        )

    def attempt(self, work: Callable[[], Given]) -> tuple[Given | None, Exception | None]:
        """What work gives, or the error that it ends with; only errors that tell something else may come out."""
        try:
            return work(), None
        except (KeptlogError, OSError) as error:
            self.judge(error)
            return None, error
        except (CommitFailedException, ValueError) as error:
            if not (self.world.current and self.world.current.is_foreign):
                raise
            return None, error  # another program's, which has no better ones

    def judge(self, *errors: Exception) -> None:
        """No error says that keptlog is broken, and none that a log is, unless somebody else has done it."""
        for error in errors:
            self.world.tell(f"{type(error).__name__}: {error}")
            is_bug = isinstance(error, InvariantViolated | UnsupportedFormat)
            is_touched = any(book.damaged or book.was_moved for book in self.ledger.books.values())
            if is_bug or (isinstance(error, LogCorrupt) and not is_touched):
                self.world.fail(f"{type(error).__name__}: {error}")

    def is_alone(self, actor: Actor) -> bool:
        """Whether nobody else works on its topic."""
        topics = {actor.topic, EVERY_TOPIC}
        return all(other is actor or other.topic not in topics for other in self.world.actors)

    def is_behind(self, copy: WatchedCatalog, topic: str) -> bool:
        """Whether the topic has gone on by two commits or more since the copy was made."""
        with self.world.quiet():
            if self.catalog.pointers.get(topic) is None or copy.pointers[topic] not in self.storage.disk.files:
                return False
            now, then = self.catalog.table(topic), copy.table(topic)
        is_same = now.metadata.table_uuid == then.metadata.table_uuid
        return is_same and now.last_sequence_number >= then.last_sequence_number + 2

    def may_sweep(self, actor: Actor, jump_ms: int = 0) -> bool:
        """Whether a purge sweeps nothing from under a program that has looked for its files and not committed yet.

        Until that is mended, an old program must be stopped before its last look, and stay so until the purge is over.
        """
        world = self.world
        if Known.SWEEP_AGAINST_COMMIT in world.known:
            now_ms = world.now_ms + jump_ms
            old = [each for each in world.actors if each is not actor and now_ms - each.begun_ms > DAY_MS - HOUR_MS]
            if not all(each.is_stopped for each in old):
                return False
            if old:
                world.alone = actor
        if jump_ms and any(each.name.startswith(("append", "repeat")) for each in world.actors):
            return False  # a run id is remembered for a day
        world.now_ms += jump_ms
        return True

    def value(self) -> bytes:
        """A value that no other record has."""
        self._values += 1
        return b"value-%06d-" % self._values + self.world.chance.randbytes(6).hex().encode()

    def batch(self) -> dict[int, list[Record]]:
        """Some records by partition, without offsets."""
        chance = self.world.chance
        chosen = chance.choice([(0,), (1,), (0, 1), (0, 1)])
        return {partition: [self.record(0) for _ in range(chance.randint(1, 5))] for partition in chosen}

    def record(self, offset: int) -> Record:
        chance = self.world.chance
        value = None if chance.random() < 0.3 else self.value()
        back_ms = chance.choice([0, 0, 1, 5 * MINUTE_MS, DAY_MS]) if self.by_timestamp else 0
        return Record(offset, KEYS[chance.randrange(len(KEYS))], value, self.world.now_ms - back_ms)


def as_new(batch: Mapping[int, list[Record]]) -> list[NewRecord]:
    return [
        NewRecord(record.key, record.value, record.timestamp_ms, partition)
        for partition, records in batch.items()
        for record in records
    ]


def is_unknown(error: Exception | None) -> bool:
    return isinstance(error, CommitStateUnknown)
