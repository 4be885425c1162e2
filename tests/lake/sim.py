"""The simulator's programs and oracles (``tests/sim``) on the servers of a lake, behind proxies that lose and refuse.

              the simulator                          here
    disk      in memory, loses power                 a bucket
    catalog   a dictionary                           Postgres, or a REST catalog
    faults    drawn at seams                         the proxies'; programs die and tasks run twice at seams, as there
    time      as it is drawn                         the wall clock's: a day is some seconds
    ids, order of programs                           drawn from the seed; which request meets a fault is not

Everything else is the same: appends and repeats, ingests, cleans, zombies, retention, deletions of records and topics,
purges, altered settings, readers, another engine's commits and their repair, copied homes, damaged files. The oracles
are the same too, and look past the proxies: each commit is judged when it has landed.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from typing_extensions import override

from examples.lake.proxied_catalog import ProxiedCatalog
from examples.lake.s3_server import S3Server
from keptlog.table.catalogs.catalog import files_of
from keptlog.table.namespaces import CATALOG_NAME
from tests.lake.faults import disturbed
from tests.lake.sim_bucket import BucketDisk, BucketFiles, BucketStorage
from tests.lake.sim_catalog import LakeCatalog, watched
from tests.lake.stores import opened_catalog
from tests.sim.catalog import table_identifier
from tests.sim.faults import CRASHES, Known
from tests.sim.faults import Fault as ProgramFault
from tests.sim.history import History, SimulatedStore
from tests.sim.jobs import TASK
from tests.sim.run import Outcome, played
from tests.sim.world import Actor, Pace, World

PACE = Pace(minute_ms=30, hour_ms=150, day_ms=2_000, orphan_grace_ms=2_000, most_skew_ms=0)
"""A store tells times in seconds, so the grace is more than one."""
_LONGEST_STEP_SECONDS = 600
_LONGEST_PAUSE_SECONDS = 0.05
_OURS = frozenset({*CRASHES, *TASK})


class LakeWorld(World):
    """A world on the wall clock. Only a program's own thread meets seams: what it waits for side by side has none."""

    def __init__(self, seed: int) -> None:
        # Clocks are right here, and a REST catalog takes the times of some commits from its own.
        super().__init__(seed, frozenset({Known.CLOCK_SKEW}), pace=PACE, longest_step_seconds=_LONGEST_STEP_SECONDS)
        self.dice.enabled &= _OURS
        self.is_opening = False

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    @now_ms.setter
    def now_ms(self, then_ms: int) -> None:
        """Wait until it shows this."""
        time.sleep(max(0, then_ms - self.now_ms) / 1000)

    @property
    def is_disturbed(self) -> bool:
        """Whether requests may meet faults now; a program has started before its history begins."""
        actor = self.current
        return actor is not None and not (actor.is_spared or self.dice.are_held or self.is_opening)

    @override
    def sleep(self, seconds: float) -> None:
        self.seam("sleep", f"{seconds:.3f}", always_switch=True)
        time.sleep(min(seconds, _LONGEST_PAUSE_SECONDS))

    @override
    def seam(
        self, what: str, where: str, possible: Sequence[ProgramFault] = (), *, always_switch: bool = False
    ) -> ProgramFault | None:
        actor: Actor | None = self.current
        if actor and actor.thread is not threading.current_thread():
            return None
        return super().seam(what, where, possible, always_switch=always_switch)


@contextmanager
def history_on(ground: ProxiedCatalog, s3: S3Server, seed: int) -> Iterator[tuple[History, Counter[str]]]:
    """A history that was begun, and what the proxies do to it meanwhile."""
    happened = Counter[str]()
    with ExitStack() as opened:
        copies = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="keptlog-copies-")))
        world = LakeWorld(seed)

        def catalog_at(properties: Mapping[str, str]) -> Catalog:
            catalog = opened_catalog(properties)
            opened.callback(catalog.close)
            return catalog

        def copy(pointers: Mapping[str, str]) -> Catalog:
            return _copy(copies / f"{world.new_id()}.db", ground.straight, pointers)

        disk = BucketDisk(s3.client(), ground.bucket)
        storage = BucketStorage(world, disk)
        lake = LakeCatalog(world, catalog_at(ground.straight), catalog_at(ground.straight), copy)
        watched(lake.another, lake)

        def open_store(seen: LakeCatalog, skew_ms: int) -> SimulatedStore:
            world.is_opening = True
            catalog = watched(catalog_at(ground.proxied) if seen is lake else seen.another, seen)
            world.is_opening = False
            return SimulatedStore(world, catalog, BucketFiles(files_of(catalog).properties, storage=storage), skew_ms)

        with disturbed(ground, Random(f"{seed}/requests"), happened, lambda: world.is_disturbed):
            yield History.on(storage, lake, open_store), happened


def play(ground: ProxiedCatalog, s3: S3Server, seed: int, actions: int) -> tuple[Outcome, Counter[str]]:
    """One history from its beginning to its end, and what happened to its requests."""
    with history_on(ground, s3, seed) as (history, happened):
        return played(history, actions), happened


def _copy(database: Path, straight: Mapping[str, str], pointers: Mapping[str, str]) -> Catalog:
    """Another catalog that names the same metadata."""
    store = {name: value for name, value in straight.items() if name.startswith("s3.")}
    properties = {"type": "sql", "uri": f"sqlite:///{database}", "py-io-impl": "keptlog.table.io.file_io.DurableFileIO"}
    catalog = load_catalog(CATALOG_NAME, **properties, **store)
    for name, location in pointers.items():
        namespace, table = table_identifier(name)
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace((namespace,))
        catalog.register_table((namespace, table), location)
    return catalog
