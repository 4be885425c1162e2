"""After a power loss a purge finds no journal whose files a later one has told, and which is gone."""

from __future__ import annotations

from random import Random

from keptlog.table.removal.journal import DeletedFile, Journal, journal_folder, write_journal
from keptlog.table.removal.removal import Removal
from tests.sim.disk import Disk
from tests.sim.faults import KNOWN
from tests.sim.storage import WAREHOUSE, SimulatedFiles, Storage
from tests.sim.world import World

LOCATION = f"{WAREHOUSE}/keptlog/t"
EARLIER, LATER = (f"{journal_folder(LOCATION)}{name}.json" for name in ("a", "b"))


def settled() -> Disk:
    """Two journals that named one file, both settled; nothing was synced since."""
    storage = Storage(World(0, KNOWN))
    files = SimulatedFiles(storage=storage)
    journal = Journal((1,), (DeletedFile(f"{LOCATION}/data/gone.parquet", 4),), ())
    removal = Removal(files, LOCATION, {EARLIER: journal, LATER: journal})
    for path in removal.journals:
        write_journal(files, path, journal)
    own = removal.own(lambda _: True, ())
    told = removal.settle(own, lambda *_: None)
    assert [len(told[path].paths) for path in (EARLIER, LATER)] == [0, 1]
    return storage.disk


def test_a_journal_does_not_come_back_without_the_one_that_took_its_files_over() -> None:
    found = set()
    for seed in range(50):
        disk = settled()
        disk.lose_power(Random(seed))
        found.add((EARLIER in disk.files, LATER in disk.files))
    assert found == {(False, False), (False, True)}
