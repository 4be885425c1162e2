"""The home whose topics a code location looks after.

Opening a catalog costs time and connections, and a sensor ticks for ever in one process; so a process opens each home
once and keeps it, with what its sensors have seen of the logs. A home that can't be opened is not remembered: the next
tick tries again. And one whose folder was deleted is opened anew, or its old catalog would be read on through an open
connection, whatever was put in its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from keptlog.home import Home, monotonic_ms, open_home
from keptlog.ingest.ingest_pass import Ingest
from keptlog.log.broker import BrokerConfig
from keptlog.log.holder import Holdings
from keptlog.passes.clean import Cleaner
from keptlog.passes.erase import Eraser
from keptlog.passes.observer import Observer
from keptlog.passes.purge import Purger
from keptlog.passes.retain import Retainer
from keptlog.settings import home_path
from keptlog.table.store import LogStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class _Opened:
    """A home as this process knows it."""

    home: Home
    observer: Observer
    folder: int | None
    """The folder's identity when the home was opened; null if there was no folder."""


_opened: dict[Path, _Opened] = {}
_opening = threading.Lock()


class LogStoreResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Topics in a home: ``home``, or KEPTLOG_HOME, or ``./.keptlog``; read when it is used, not when it is defined."""

    home: str | None = None

    @property
    def path(self) -> Path:
        return Path(self.home).absolute() if self.home else home_path()

    @property
    def store(self) -> LogStore:
        """The store, opened once in a process.

        Raises:
            InvalidConfig: a broker setting is unknown or out of range.
            StorageUnavailable: the catalog can't be opened.
        """
        return self._open().home.store

    @property
    def broker(self) -> BrokerConfig:
        """The home's broker settings; raises what ``store`` does."""
        return self._open().home.broker

    @property
    def observer(self) -> Observer:
        """What looks at all logs, and remembers them from tick to tick: one in a process."""
        return self._open().observer

    @property
    def holdings_here(self) -> Holdings:
        """What lies on this machine and may be of any topic."""
        return self._open().home.holdings_here

    def cleaner(self, session: Callable[[], SparkSession] | None = None) -> Cleaner:
        """A cleaner; ``session`` is called when there is something to rewrite, not before."""
        return self._open().home.cleaner(session)

    @property
    def retainer(self) -> Retainer:
        """What removes old segments."""
        return self._open().home.retainer

    @property
    def purger(self) -> Purger:
        """What deletes files that were replaced."""
        return self._open().home.purger

    def eraser(self, session: Callable[[], SparkSession] | None = None) -> Eraser:
        """What erases keys; ``session`` is called when files are looked through or records dropped, not before."""
        home = self._open().home
        return replace(home.eraser, engine=home.cleaner(session).engine)

    def ingest(self, session: Callable[[], SparkSession]) -> Ingest:
        """An ingest into the home's topics; ``session`` is called when there is something to read, not before."""
        return self._open().home.ingest(session)

    def _open(self) -> _Opened:
        path = self.path
        with _opening:
            folder = path.stat().st_ino if path.exists() else None
            opened = _opened.get(path)
            if opened is None or opened.folder != folder:
                home = open_home(path)
                opened = _opened[path] = _Opened(home, Observer(home.store, monotonic_ms), folder)
            return opened
