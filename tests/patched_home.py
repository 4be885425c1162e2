"""A home that a test breaks and mends, in ways that ``tests.broken_homes`` lists."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.table.store import LogStore
from tests.table.stores import COMPACTED, TOPIC, append_each


@dataclass
class Patched:
    """A home that is there at the beginning of each row as it was made: a topic of two commits, and another one."""

    home: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def whole(self) -> Path:
        return self.home.with_name("whole")

    def make(self) -> None:
        """The home from which all rows begin."""
        store = open_home(self.home).store
        store.create_topic(TOPIC, 1, COMPACTED)
        store.create_topic("orders", 2, COMPACTED)
        append_each(store, [("a", "1"), ("b", "1")], [("a", "2")])
        shutil.copytree(self.home, self.whole)

    def put_back(self) -> None:
        """What a backup of the whole folder is for."""
        if self.home.is_dir() and not self.home.is_symlink():
            shutil.rmtree(self.home)
        else:
            self.home.unlink(missing_ok=True)
        shutil.copytree(self.whole, self.home)

    @property
    def store(self) -> LogStore:
        return open_home(self.home).store

    def set(self, name: str, value: str) -> None:
        self.monkeypatch.setenv(name, value)

    def unset(self, name: str) -> None:
        self.monkeypatch.delenv(name)

    def write(self, name: str, text: str) -> None:
        (self.home / name).write_text(text)

    def segment(self) -> Path:
        return min((self.home / "warehouse").rglob("*.parquet"))


Act = Callable[[Patched], object]


@dataclass(frozen=True)
class BrokenHome:
    """One way."""

    id: str
    check: str
    """Which of doctor's checks finds it."""
    said: str
    do: Act
    command: str | None = None
    """The command that doctor names."""
    mend: Act | None = None
    """What a person does; null: the command is run."""
