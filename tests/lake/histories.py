"""A history on a lake: programs append, repeat, clean and purge at once, while proxies disturb all they send.

    programs (``tests.crash.traffic``)   ──>  proxies: lost answers, 503, resets, half answers, slow  ──>  S3, catalog
    between two rounds, undisturbed      ──>  nothing acknowledged is missing, doubled or resurrected
    at the end                           ──>  what is in doubt is sent again; two cleans make what the reference makes

A seed draws the programs and the faults; which request meets which fault depends on how the programs' requests meet.
"""

from __future__ import annotations

import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from examples.lake.proxied_catalog import ProxiedCatalog
from keptlog.errors import CommitStateUnknown, StalePlan, StorageUnavailable
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.crash import traffic
from tests.crash.workload import SETTINGS, TOPIC, clean, wall_clock_ms
from tests.in_process import in_process_engine
from tests.lake.faults import disturbed
from tests.lake.stores import open_lake

PROGRAMS = 2
GRACE_MS = 60_000
"""Of orphans: requests are slow here."""


@dataclass
class History:
    """One history. ``happened`` counts what did."""

    ground: ProxiedCatalog
    folder: Path
    chance: Random
    happened: Counter[str] = field(default_factory=Counter)

    def play(self, rounds: int, actions: int) -> None:
        """So many rounds of so many actions for each program, then the end."""
        calm = open_lake(self.ground.straight)
        calm.create_topic(TOPIC, 1, SETTINGS)
        programs = [Cleaner(store, in_process_engine(store.files)) for store in self._stores()]
        for _ in range(rounds):
            with disturbed(self.ground, self.chance, self.happened), ThreadPoolExecutor(PROGRAMS) as threads:
                dice = [Random(self.chance.random()) for _ in programs]
                numbers = range(1, PROGRAMS + 1)
                done = threads.map(self._act, programs, numbers, dice, [actions] * PROGRAMS)
                broken = [text for text in done if text]
            assert not broken, "\n".join(broken)
            traffic.require_whole(calm, self.folder)
        self._require_the_end(calm)
        calm.delete_topic(TOPIC, wall_clock_ms())

    def _stores(self) -> list[LogStore]:
        return [open_lake(self.ground.proxied) for _ in range(PROGRAMS)]

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
