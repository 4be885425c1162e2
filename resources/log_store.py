"""The home whose topics somebody looks after, or some of its topics.

Opening a catalog costs time and connections, and a sensor ticks for ever in one process; so a process opens each home
once and keeps it, with what its sensors have seen of the logs. A home that can't be opened is tried again by the next
tick. Where that was waited for, it is by the first tick after half a minute only, and keeps nobody of another home
waiting: a dozen sensors of a home tick after each other, and so do those of its neighbours. Runs try at once: each try
of theirs may be the last. And one whose folder or
catalog is another one now is opened anew, or the old catalog would be read on through an open connection, whatever was
put in its place. One whose catalog is away is not: it would be a home that nobody has begun, without topics, and all
that was known of them would be taken for gone.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import dagster as dg
from pydantic import Field

from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.home import Home, monotonic_ms, open_home
from keptlog.log.words.advice import CREATE_TOPIC
from keptlog.passes.observer import Observer
from keptlog.settings import home_path

if TYPE_CHECKING:
    from keptlog.ingest.ingest_pass import Ingest
    from keptlog.log.broker import BrokerConfig
    from keptlog.log.holder import Holdings
    from keptlog.passes.clean import Cleaner
    from keptlog.passes.erasures.erase import Eraser
    from keptlog.passes.purge import Purger
    from keptlog.passes.retain import Retainer
    from keptlog.spark.driver import Spark
    from keptlog.table.store import LogStore

Memory = TypeVar("Memory")
_File = tuple[int, int]
"""Device and number. A file system gives a number again once nothing has the file open."""


@dataclass(frozen=True)
class _Place:
    """A home's folder and its embedded catalog, told from others that are put there under the same names.

    A commit changes neither. The new folder may well have the number of the old one. The new catalog has not: the
    connection through which the old one would be read on has it open.
    """

    folder: _File | None
    catalog: _File | None
    """Null if there is none: nothing was written yet, or another catalog is configured."""

    @classmethod
    def of(cls, home: Path) -> _Place:
        from keptlog.table.catalogs.embedded import DATABASE  # noqa: PLC0415  # a tick needs it, loading does not

        return cls(_file(home), _file(home / DATABASE))


def _file(path: Path) -> _File | None:
    try:
        found = path.stat()
    except OSError:
        # Whoever opens the home says what is wrong with it.
        return None
    return found.st_dev, found.st_ino


@dataclass(frozen=True)
class _Opened:
    """A home as this process knows it."""

    home: Home
    observer: Observer
    place: _Place
    """Where it was opened."""
    memories: dict[tuple[type, str], object] = field(default_factory=dict)
    """By what they are, and whose."""


@dataclass
class _Which:
    """What told topics of a home from all others when its catalog was read last; null if it never was."""

    digest: str | None = None


@dataclass(frozen=True)
class _Failure:
    """That a home could not be opened although somebody waited for it."""

    error: StorageUnavailable
    place: _Place
    at_ms: int

    def holds(self, place: _Place, now_ms: int) -> bool:
        """Whether it is said again, in place of a try."""
        return place == self.place and now_ms < self.at_ms + _TRIED_AGAIN_MS


@dataclass
class _Door:
    """Where a home, or some topics of one, is opened by one thread at a time; others wait only for their own home."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    opened: _Opened | None = None
    failure: _Failure | None = None


_TRIED_AGAIN_MS = 30_000
"""A home that was waited for in vain is left alone for as long: about one round of its sensors."""
_WAITED_MS = 1000
"""Who fails sooner costs nobody anything, and is tried again at once."""

_opened: dict[tuple[Path, tuple[str, ...]], _Door] = {}
_doors = threading.Lock()
"""Held for a look into the dictionary only: whatever may wait for a disk or a catalog has the home's own lock."""


class LogStoreResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Topics in a home; where it is, is read when it is used, not when it is defined."""

    home: str | None = Field(default=None, description="The home: KEPTLOG_HOME, or ./.keptlog, if it is not given.")
    topics: list[str] = Field(
        default=[], description="Patterns of the topics that are meant, such as crm.*; all topics if there are none."
    )

    @property
    def path(self) -> Path:
        """The home's folder, also where it is named by an environment variable (``dg.EnvVar``).

        Raises:
            InvalidConfig: that variable is not set, or the home is named and has no name.
        """
        home = self.home
        if isinstance(home, dg.EnvVar):
            variable, home = home.env_var_name, home.get_value()
            if not home:
                raise InvalidConfig(
                    f"the home is to be where the variable {variable} says, and that is not set: set it, or another "
                    "home (KEPTLOG_HOME, or ./.keptlog) would be cleaned and purged in its place"
                )
        if home == "":
            raise InvalidConfig(
                "home='' names no folder: give one, or leave it out for that of KEPTLOG_HOME, which would be cleaned "
                "and purged in its place"
            )
        return Path(home).absolute() if home else home_path()

    @property
    def of_all(self) -> LogStoreResource:
        """The same home with all its topics."""
        return LogStoreResource(home=str(self.path))

    @property
    def identity(self) -> str:
        """The same for the same topics of the same home."""
        return f"{self.path} {' '.join(self.topics)}".rstrip()

    def which(self) -> str | None:
        """The same for the same topics of the same home, as a digest, and another one for those of any other home.

        The path alone does not say that: on two machines, or in two containers, homes may have the same. A catalog that
        is configured has no id of a home. Null where nothing tells it from others: it never had topics, or its catalog
        could not be read yet. Raises what ``store`` does.
        """
        known = self.remembered(_Which, lambda _: _Which())
        home = _which_home(self.path)
        if home is not None:
            text = f"{home} {' '.join(self.topics)}".rstrip()
            known.digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return known.digest

    @property
    def told(self) -> str:
        """The same in words."""
        return f"{self.path} ({', '.join(self.topics)})" if self.topics else str(self.path)

    @property
    def store(self) -> LogStore:
        """The store, opened once in a process.

        Raises:
            InvalidConfig: a broker setting is unknown or out of range.
            StorageUnavailable: the catalog can't be opened.
        """
        return self._open().home.store

    def why_unbegun(self) -> str | None:
        """What is said where no catalog is: a home without topics, or one whose disk is not mounted; nobody can tell.

        Null if there is one, or another is configured.

        Raises:
            InvalidConfig: it is no folder.
            StorageUnavailable: its catalog is lost.
        """
        from keptlog.table.catalogs.home_folder import why_unbegun  # noqa: PLC0415  # a tick needs it, loading does not

        return why_unbegun(self.path)

    def require_begun(self) -> None:
        """Refuse to take a home without a catalog for one without topics.

        Raises:
            InvalidConfig: it is no folder.
            StorageUnavailable: there is no catalog, or it is lost.
        """
        unbegun = self.why_unbegun()
        if unbegun:
            raise StorageUnavailable(
                f"{unbegun}; create a topic ({CREATE_TOPIC}), or, if it has some, mount its disk, or set PYICEBERG_… "
                "to the catalog that you mean"
            )

    def perhaps_away(self) -> str:
        """What a tick adds where it saw no topic; nothing if there is a catalog. Raises what ``why_unbegun`` does."""
        unbegun = self.why_unbegun()
        return f" ({unbegun})" if unbegun else ""

    @property
    def broker(self) -> BrokerConfig:
        """The home's broker settings; raises what ``store`` does."""
        return self._open().home.broker

    @property
    def observer(self) -> Observer:
        """What looks at all logs, and remembers them from tick to tick: one in a process.

        It is for ticks: that the home was waited for in vain is remembered, too.
        """
        return self._open(is_tick=True).observer

    @property
    def holdings_here(self) -> Holdings:
        """What lies on this machine and may be of any topic."""
        return self._open().home.holdings_here

    def cleaner(self, spark: Callable[[], Spark] | None = None) -> Cleaner:
        """A cleaner; ``spark`` is called when there is something to rewrite, not before."""
        return self._open().home.cleaner(spark)

    @property
    def retainer(self) -> Retainer:
        """What removes old segments."""
        return self._open().home.retainer

    @property
    def purger(self) -> Purger:
        """What deletes files that were replaced."""
        return self._open().home.purger

    def eraser(self, spark: Callable[[], Spark] | None = None) -> Eraser:
        """What erases keys; ``spark`` is called when files are looked through or records dropped, not before."""
        home = self._open().home
        return replace(home.eraser, engine=home.cleaner(spark).engine)

    def ingest(self, spark: Callable[[], Spark]) -> Ingest:
        """An ingest into the home's topics; ``spark`` is called when there is something to read, not before."""
        return self._open().home.ingest(spark)

    def remembered(self, kind: type[Memory], begin: Callable[[LogStore], Memory], mount: str = "") -> Memory:
        """What this process remembers of these topics; ``begin`` makes it. A home that is opened anew begins anew.

        ``mount`` is the name prefix of who remembers it, where two mounts of the home don't remember the same. For
        ticks, as ``observer`` is.
        """
        opened = self._open(is_tick=True)
        with self._door().lock:
            memory = opened.memories.get((kind, mount))
            if not isinstance(memory, kind):
                memory = opened.memories[kind, mount] = begin(opened.home.store)
            return memory

    def _door(self) -> _Door:
        with _doors:
            return _opened.setdefault((self.path, tuple(self.topics)), _Door())

    def _open(self, *, is_tick: bool = False) -> _Opened:
        door = self._door()
        with door.lock:
            place = _Place.of(self.path)
            if door.opened is None or door.opened.place != place:
                if door.opened and door.opened.place.catalog and not place.catalog:
                    self._require_not_lost()
                door.opened = self._open_anew(door, place, is_tick=is_tick)
            return door.opened

    def _open_anew(self, door: _Door, place: _Place, *, is_tick: bool) -> _Opened:
        began_ms = monotonic_ms()
        if is_tick and door.failure and door.failure.holds(place, began_ms):
            # Its trace is that of the try: each raise would make it longer.
            raise door.failure.error.with_traceback(None)
        try:
            home = open_home(self.path)
        except StorageUnavailable as error:
            now_ms = monotonic_ms()
            door.failure = _Failure(error, place, now_ms) if now_ms - began_ms >= _WAITED_MS else None
            raise
        door.failure = None
        home = home.only(tuple(self.topics)) if self.topics else home
        return _Opened(home, Observer(home.store, monotonic_ms), place)

    def _require_not_lost(self) -> None:
        from keptlog.table.catalogs.home_folder import lost_since  # noqa: PLC0415  # a tick needs it, loading does not

        # Where another catalog is configured, nobody misses the file.
        if self.why_unbegun():
            raise StorageUnavailable(lost_since(self.path))


def _which_home(path: Path) -> str | None:
    """What tells a home from all others; null if nothing does, or its catalog can't be read just now."""
    import sqlite3  # noqa: PLC0415  # a tick needs it, loading does not

    from keptlog.table.catalogs.configuration import catalog_told  # noqa: PLC0415  # the same
    from keptlog.table.catalogs.home_location import which_home  # noqa: PLC0415  # the same

    catalog = catalog_told()
    if catalog != "embedded":
        return f"{path} {catalog}"
    try:
        return which_home(path)
    except (sqlite3.Error, StorageUnavailable):
        return None
