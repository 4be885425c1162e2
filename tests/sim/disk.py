"""A disk that forgets what was not synced.

Everyone sees what was written at once; what a power loss leaves is another thing. A file's content is there for sure
once the file was synced, its name once its folder was. Whatever else happened may or may not have reached the disk:

    write, sync file, sync folder    there
    write                            gone, or empty, or a part of it, or there
    delete                           gone, or there again, until something else syncs the folder

What the product really syncs is not repeated here but taken from it: ``tests/sim/test_disk.py`` records the calls that
``TableFiles`` and ``DurableFileIO`` make, and ``storage.py`` does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DiskFile:
    """A file with its content; ``modified_ms`` is the storage's own clock."""

    content: bytes
    modified_ms: int


class WatchedDisk(Protocol):
    """What a history and its oracles ask of a disk, besides what the programs do."""

    @property
    def files(self) -> Mapping[str, DiskFile]:
        """By path, as they are now."""

    def below(self, folder: str) -> list[tuple[str, DiskFile]]:
        """Files below a folder, by path."""

    def delete(self, path: str) -> bool:
        """Says whether it was there."""

    def rot(self, path: str, content: bytes) -> None:
        """Other content at the same place; nobody wrote it."""

    def lose_power(self, chance: Random) -> list[str]:
        """Forget what is not durable; gives the paths that changed by it."""


@dataclass
class Disk:
    """Files by path; folders come with their files."""

    files: dict[str, DiskFile] = field(default_factory=dict)
    _durable: dict[str, DiskFile] = field(default_factory=dict)
    _unsynced: dict[str, None] = field(default_factory=dict)
    """Paths that differ, or may, from what a power loss would leave; in the order in which they were touched."""

    def write(self, path: str, content: bytes, now_ms: int) -> None:
        self.files[path] = DiskFile(content, now_ms)
        self._unsynced[path] = None

    def delete(self, path: str) -> bool:
        """Says whether it was there."""
        found = self.files.pop(path, None)
        if found:
            self._unsynced[path] = None
        return found is not None

    def sync(self, path: str) -> None:
        """The file and its name, and with its folder what was deleted there."""
        folder = path.rpartition("/")[0]
        self._settle(path)
        for other in [each for each in self._unsynced if each.rpartition("/")[0] == folder]:
            if other not in self.files:
                self._settle(other)

    def sync_deletions(self, folder: str) -> None:
        """The folder and those below it."""
        for path in list(self._unsynced):
            if path.startswith(folder.rstrip("/") + "/") and path not in self.files:
                self._settle(path)

    def below(self, folder: str) -> list[tuple[str, DiskFile]]:
        """Files below a folder, by path."""
        prefix = folder.rstrip("/") + "/"
        return sorted((path, file) for path, file in self.files.items() if path.startswith(prefix))

    def lose_power(self, chance: Random) -> list[str]:
        """Forget; gives what changed by it."""
        changed = []
        for path in list(self._unsynced):
            survivor = self._survivor(path, chance)
            if survivor != self.files.get(path):
                changed.append(path)
            if survivor is None:
                self.files.pop(path, None)
            else:
                self.files[path] = survivor
            self._settle(path)
        return changed

    def rot(self, path: str, content: bytes) -> None:
        """Other content at the same place; nobody wrote it."""
        self.files[path] = self._durable[path] = DiskFile(content, self.files[path].modified_ms)

    def _survivor(self, path: str, chance: Random) -> DiskFile | None:
        now, durable = self.files.get(path), self._durable.get(path)
        if now is None:
            return durable if chance.random() < 0.5 else None
        kept = chance.choice([0.0, 0.5, 1.0, None])
        if kept is None:
            return durable
        return DiskFile(now.content[: int(len(now.content) * kept)], now.modified_ms)

    def _settle(self, path: str) -> None:
        self._unsynced.pop(path, None)
        if path in self.files:
            self._durable[path] = self.files[path]
        else:
            self._durable.pop(path, None)
