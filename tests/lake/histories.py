"""A history on a lake: programs append, repeat, clean and purge at once, while proxies disturb all they send.

    programs (``tests.crash.traffic``)   ──>  proxies: lost answers, 503, resets, half answers, slow  ──>  S3, catalog
    between two rounds, undisturbed      ──>  nothing acknowledged is missing, doubled or resurrected
    at the end                           ──>  what is in doubt is sent again; two cleans make what the reference makes

A seed draws the programs and the faults; which request meets which fault depends on how the programs' requests meet.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from examples.lake.fault_proxy import Decide, Fault, Request
from keptlog.errors import CommitStateUnknown, StalePlan, StorageUnavailable
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.crash import traffic
from tests.crash.workload import SETTINGS, TOPIC, clean, wall_clock_ms
from tests.in_process import in_process_engine
from tests.lake.stores import Ground, open_lake

PROGRAMS = 2
GRACE_MS = 60_000
"""Of orphans: requests are slow here."""
_FAULTS = (Fault.RESET, Fault.LOST_ANSWER, Fault.CUT, Fault.SLOW_DOWN)
_ONE_IN = (6, 15, 40)
_DELAYS_MS = (0, 0, 5, 20)


@dataclass
class History:
    """One history. ``happened`` counts what did."""

    ground: Ground
    folder: Path
    chance: Random
    happened: Counter[str] = field(default_factory=Counter)

    def play(self, rounds: int, actions: int) -> None:
        """So many rounds of so many actions for each program, then the end."""
        calm = open_lake(self.ground.straight)
        calm.create_topic(TOPIC, 1, SETTINGS)
        programs = [Cleaner(store, in_process_engine(store.files)) for store in self._stores()]
        for _ in range(rounds):
            with _disturbed(self.ground, self.chance, self.happened), ThreadPoolExecutor(PROGRAMS) as threads:
                dice = [Random(self.chance.random()) for _ in programs]
                numbers = range(1, PROGRAMS + 1)
                done = threads.map(self._act, programs, numbers, dice, [actions] * PROGRAMS)
                broken = [text for text in done if text]
            assert not broken, "\n".join(broken)
            traffic.require_whole(calm, self.folder)
        self._require_the_end(calm)
        calm.delete_topic(TOPIC, wall_clock_ms())

    def _stores(self) -> list[LogStore]:
        return [open_lake(self.ground.disturbed) for _ in range(PROGRAMS)]

    def _act(self, cleaner: Cleaner, number: int, chance: Random, actions: int) -> str:
        """What broke, if something did."""
        journal = traffic.Journal(self.folder / f"worker-{number}")
        for _ in range(actions):
            try:
                traffic.do_something(cleaner, journal, number, chance, GRACE_MS)
                self.happened["done"] += 1
            except (StalePlan, CommitStateUnknown, StorageUnavailable) as error:
                self.happened[type(error).__name__] += 1
                self.happened["not one line"] += len(str(error).splitlines()) != 1
            except BaseException:  # noqa: BLE001  # whatever else comes out is a defect
                return traceback.format_exc()
        return ""

    def _require_the_end(self, calm: LogStore) -> None:
        for journal in traffic.journals_in(self.folder):
            for number in sorted(journal.batches("began") - journal.batches("acked")):
                calm.append(TOPIC, traffic.marked_batch(number), f"run-{number}", wall_clock_ms())
                journal.say("acked", number)
        written = traffic.require_whole(calm, self.folder)
        clean(calm)
        clean(calm)
        log = traffic.require_cleaned_once(calm, written)
        traffic.require_only_live_files(calm)
        assert traffic.without_horizons([record for _, record in calm.read(TOPIC)]) == log
        self.happened["batches"] += len(traffic.acknowledged(self.folder))


class _disturbed:  # noqa: N801  # it is used as a function is
    """Faults of a few drawn kinds, at a drawn rate, for as long as the block lasts."""

    def __init__(self, ground: Ground, chance: Random, happened: Counter[str]) -> None:
        self._ground, self._happened = ground, happened
        self._store = _drawn(chance)
        self._catalog = _drawn(chance)
        self._delay_ms = chance.choice(_DELAYS_MS)
        self._lost = _drawn_bytes(chance)

    def __enter__(self) -> None:
        self._set(self._store, self._catalog, self._lost, self._delay_ms)

    def __exit__(self, *_: object) -> None:
        self._set(None, None, None, 0)
        for proxy in (self._ground.store, self._ground.rest):
            if proxy:
                self._happened.update({f"{fault.name}": count for fault, count in proxy.injected.items()})
                proxy.injected.clear()
        if self._ground.sql:
            self._happened["LOST_ANSWER of Postgres"] += self._ground.sql.lost
            self._ground.sql.lost = 0

    def _set(
        self, store: Decide | None, catalog: Decide | None, lost: Callable[[bytes], bool] | None, delay_ms: float
    ) -> None:
        self._ground.store.fault, self._ground.store.delay_ms = store, delay_ms
        if self._ground.rest:
            self._ground.rest.fault, self._ground.rest.delay_ms = catalog, delay_ms
        if self._ground.sql:
            self._ground.sql.lose_answer_to, self._ground.sql.delay_ms = lost, delay_ms


def _drawn(chance: Random) -> Decide:
    kinds, one_in = chance.sample(_FAULTS, 2), chance.choice(_ONE_IN)
    dice, lock = Random(chance.random()), threading.Lock()

    def decide(_: Request) -> Fault | None:
        with lock:
            return dice.choice(kinds) if dice.random() * one_in < 1 else None

    return decide


def _drawn_bytes(chance: Random) -> Callable[[bytes], bool]:
    """Postgres's commits are what matters; now and then it is another answer."""
    dice = Random(chance.random())
    return lambda sent: dice.random() < (0.3 if b"COMMIT" in sent else 0.02)
