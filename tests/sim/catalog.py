"""A catalog as a dictionary, with PyIceberg's own rules: a commit checks its requirements, writes the new metadata and
then moves one pointer, if nobody else did. Between any two of these another program may come first, or all may end.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, Protocol

import requests
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromByteStream
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from sqlalchemy.exc import OperationalError
from typing_extensions import override

from keptlog.table.metadata.forward_in_time import ForwardInTime
from keptlog.table.namespaces import NAMESPACE
from tests.sim.faults import Fault
from tests.sim.storage import WAREHOUSE, SimulatedIO, Storage
from tests.sim.world import World

LOAD = (Fault.UNREACHABLE, Fault.CRASH_BEFORE)
REQUEST = (Fault.LOST_REQUEST, Fault.REFUSED, Fault.LOCKED, Fault.CRASH_BEFORE)
SINGLE = (Fault.LOST_REQUEST, Fault.LOCKED, Fault.CRASH_BEFORE)
"""Of a request that competes with nobody."""
ANSWER = (Fault.LOST_ANSWER, Fault.LANDED_THEN_REFUSED, Fault.CRASH_AFTER, Fault.POWER_LOSS)
SINGLE_ANSWER = (Fault.LOST_ANSWER, Fault.CRASH_AFTER, Fault.POWER_LOSS)
MOST_LOST_RACES = 3
"""Of a purge, before it lands."""


class Landed:
    """Whoever wants to know of every commit to a namespace, at the moment from which on it is visible."""

    namespace = NAMESPACE

    def committed(self, name: str, before: Table | None, after: Table) -> None:
        """A table was changed, or is new."""

    def dropped(self, name: str) -> None:
        """A table is gone."""

    def looked_at(self, name: str) -> None:
        """The current actor has loaded a table."""


class WatchedCatalog(Protocol):
    """What a history asks of its catalog, besides what the product does."""

    watchers: list[Landed]

    @property
    def pointers(self) -> Mapping[str, str]:
        """Table to the location of its current metadata; those that are being deleted with their namespace in front."""

    def table(self, name: str) -> Table:
        """A table as it is now; nobody is told."""

    def load_table(self, identifier: Any) -> Table:
        """A table as another program gets it."""

    def copied(self) -> WatchedCatalog:
        """What ``cp`` makes of it: another catalog with the same paths in it."""


class SimulatedCatalog(ForwardInTime, NoopCatalog):
    """The tables of one world."""

    def __init__(self, world: World, storage: Storage) -> None:
        super().__init__("keptlog", warehouse=WAREHOUSE)
        self.world, self.storage = world, storage
        self.now_ms = lambda: world.clock_ms
        self.pointers: dict[str, str] = {}
        """Table to the location of its current metadata; those that are being deleted with their namespace in front."""
        self.watchers: list[Landed] = []
        self._namespaces: dict[str, None] = {}
        self._parsed: dict[bytes, TableMetadata] = {}

    def copied(self) -> SimulatedCatalog:
        """What ``cp`` makes of it: another catalog with the same paths in it."""
        copy = SimulatedCatalog(self.world, self.storage)
        copy.pointers, copy._namespaces = dict(self.pointers), dict(self._namespaces)
        return copy

    @override
    def _load_file_io(self, properties: Any = None, location: str | None = None) -> FileIO:
        return SimulatedIO(self.storage)

    @override
    def namespace_exists(self, namespace: Any) -> bool:
        return _text(namespace) in self._namespaces

    @override
    def create_namespace(self, namespace: Any, properties: Any = None) -> None:
        if _text(namespace) in self._namespaces:
            raise NamespaceAlreadyExistsError(_text(namespace))
        self._namespaces[_text(namespace)] = None

    @override
    def load_namespace_properties(self, namespace: Any) -> Any:
        return {}

    @override
    def list_namespaces(self, namespace: Any = ()) -> list[Any]:
        self._unreachable(self.world.seam("list namespaces", "", LOAD))
        return [(name,) for name in sorted(self._namespaces)]

    @override
    def list_tables(self, namespace: Any) -> list[Any]:
        self._unreachable(self.world.seam("list tables", "", LOAD))
        wanted = _text(namespace)
        if wanted not in self._namespaces:
            raise NoSuchNamespaceError(wanted)
        identifiers = [table_identifier(key) for key in sorted(self.pointers)]
        return [identifier for identifier in identifiers if identifier[0] == wanted]

    @override
    def load_table(self, identifier: Any) -> Table:
        name = table_key(identifier)
        self._unreachable(self.world.seam("load", name, LOAD))
        table = self.table(name)
        for watcher in self._watchers_of(name):
            watcher.looked_at(name)
        return table

    def table(self, name: str) -> Table:
        """A table as it is now."""
        location = self.pointers.get(name)
        if location is None:
            raise NoSuchTableError(name)
        with SimulatedIO(self.storage).new_input(location).open() as stream:
            content = stream.read(-1)
        if content not in self._parsed:
            self._parsed[content] = FromByteStream.table_metadata(BytesIO(content))
        return Table(table_identifier(name), self._parsed[content], location, SimulatedIO(self.storage), self)

    @override
    def create_table(self, identifier: Any, schema: Any, location: Any = None, *args: Any, **how: Any) -> Table:
        name = table_key(identifier)
        self._refuse(self.world.seam("create table", name, SINGLE))
        staged = self._create_staged_table(identifier, schema, location, *args, **how)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        if name in self.pointers:
            raise TableAlreadyExistsError(name)
        self.pointers[name] = staged.metadata_location
        with self.world.quiet():
            table = self.table(name)
            for watcher in self._watchers_of(name):
                watcher.committed(name, None, table)
        self._answer(self.world.seam("created", name, SINGLE_ANSWER))
        return table

    @override
    def drop_table(self, identifier: Any) -> None:
        name = table_key(identifier)
        self._refuse(self.world.seam("drop table", name, SINGLE))
        if self.pointers.pop(name, None) is None:
            raise NoSuchTableError(name)
        self._tell_dropped(name)
        self._answer(self.world.seam("dropped", name, SINGLE_ANSWER))

    @override
    def rename_table(self, from_identifier: Any, to_identifier: Any) -> Table:
        name, new_name = table_key(from_identifier), table_key(to_identifier)
        self._refuse(self.world.seam("rename table", f"{name} to {new_name}", SINGLE))
        if name not in self.pointers:
            raise NoSuchTableError(name)
        if new_name in self.pointers:
            raise TableAlreadyExistsError(new_name)
        self.pointers[new_name] = self.pointers.pop(name)
        self._tell_dropped(name)
        self._answer(self.world.seam("renamed", name, SINGLE_ANSWER))
        return self.load_table(to_identifier)

    def _tell_dropped(self, name: str) -> None:
        for watcher in self._watchers_of(name):
            watcher.dropped(name)

    def _watchers_of(self, name: str) -> list[Landed]:
        return [watcher for watcher in self.watchers if watcher.namespace == table_identifier(name)[0]]

    @override
    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        name = table_key(table.name())
        self._refuse(self.world.seam("commit", name, REQUEST))
        with self.world.quiet():
            current = self.table(name) if name in self.pointers else None
        try:
            staged = self._update_and_stage_table(current, table.name(), requirements, updates)
        except CommitFailedException:
            self._lost_race()
            raise
        if current is None:
            raise CommitFailedException(f"Table is gone: {name}")
        if staged.metadata == current.metadata:
            return CommitTableResponse(metadata=current.metadata, **{"metadata-location": current.metadata_location})
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.world.seam("swap", name, (Fault.CRASH_BEFORE,))
        if self.pointers.get(name) != current.metadata_location:
            self._lost_race()
            raise CommitFailedException(f"Table has been updated by another process: {name}")
        self.pointers[name] = staged.metadata_location
        with self.world.quiet():
            after = self.table(name)
            for watcher in self._watchers_of(name):
                watcher.committed(name, current, after)
        if self.world.current:
            self.world.current.lost_races = 0
        self._answer(self.world.seam("landed", name, ANSWER))
        return CommitTableResponse(metadata=after.metadata, **{"metadata-location": after.metadata_location})

    def _lost_race(self) -> None:
        """A purge must not starve beside writers."""
        actor = self.world.current
        if actor:
            actor.lost_races += 1
            if actor.name.startswith("purge") and actor.lost_races > MOST_LOST_RACES:
                self.world.fail(f"{actor.name} lost {actor.lost_races} races in a row")

    def _unreachable(self, fault: Fault | None) -> None:
        if fault is Fault.UNREACHABLE:
            raise requests.ConnectionError("simulated: the catalog can't be reached")

    def _refuse(self, fault: Fault | None) -> None:
        if fault is Fault.REFUSED:
            raise CommitFailedException("simulated: refused")
        if fault is Fault.LOCKED:
            raise OperationalError("update", {}, Exception("database is locked"))
        if fault is Fault.LOST_REQUEST:
            raise requests.ConnectionError("simulated: the request was lost")

    def _answer(self, fault: Fault | None) -> None:
        if fault is Fault.LANDED_THEN_REFUSED:
            raise CommitFailedException("simulated: landed, and asked again by the client")
        if fault is Fault.CRASH_AFTER:
            self.world.crash()
        if fault is Fault.LOST_ANSWER:
            if self.world.dice.chance.random() < 0.5:
                raise CommitStateUnknownException("simulated: the service failed after it had landed")
            raise requests.ReadTimeout("simulated: the answer was lost")


def _text(namespace: Any) -> str:
    return namespace if isinstance(namespace, str) else ".".join(namespace)


def table_key(identifier: Any) -> str:
    """A table by its name, with its namespace in front if it is no topic."""
    namespace, _, name = _text(identifier).rpartition(".")
    return name if namespace == NAMESPACE else f"{namespace}.{name}"


def table_identifier(key: str) -> tuple[str, str]:
    """Namespace and name of a key."""
    namespace, _, name = key.rpartition(".")
    return namespace or NAMESPACE, name
