"""The simulated disk forgets what a real one may forget, and nothing else.

That the product syncs what it writes, and its folders, is shown on a real disk in ``tests/table/test_files.py``.
"""

from __future__ import annotations

from random import Random

from tests.sim.disk import Disk

SYNCED, WRITTEN, DELETED = "a/synced", "a/written", "b/deleted"


def after_power_losses(disk: Disk, path: str) -> set[bytes | None]:
    """What may be at a path afterwards; null where there is no file."""
    found: set[bytes | None] = set()
    for seed in range(50):
        again = Disk(dict(disk.files), dict(disk._durable), dict(disk._unsynced))
        again.lose_power(Random(seed))
        file = again.files.get(path)
        found.add(file.content if file else None)
    return found


def test_what_was_synced_is_there() -> None:
    disk = Disk()
    disk.write(SYNCED, b"1234", 0)
    disk.sync(SYNCED)
    assert after_power_losses(disk, SYNCED) == {b"1234"}


def test_what_was_only_written_is_gone_or_in_part_or_there() -> None:
    disk = Disk()
    disk.write(WRITTEN, b"1234", 0)
    assert after_power_losses(disk, WRITTEN) == {None, b"", b"12", b"1234"}


def test_what_was_deleted_may_be_there_again_until_its_folder_is_synced() -> None:
    disk = Disk()
    disk.write(DELETED, b"1234", 0)
    disk.sync(DELETED)
    disk.delete(DELETED)
    assert after_power_losses(disk, DELETED) == {None, b"1234"}
    disk.write("b/other", b"", 0)
    disk.sync("b/other")
    assert after_power_losses(disk, DELETED) == {None}
