"""A real catalog in a history: what lands there is seen at once, whatever its client is told.

    program ──> keptlog's own catalog, through a proxy ──> Postgres, or a REST catalog
                        │ after each call                          │
    oracles <── what has landed? ────────── straight ──────────────┘

One program goes on at a time, and it hands on only at seams, so that between two looks at most one commit lands: the
one that is looked for. A request that the proxies let through is answered before the client is told anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from typing_extensions import override

from tests.sim.catalog import Landed, table_identifier, table_key
from tests.sim.faults import Fault
from tests.sim.world import World

_BEFORE = (Fault.CRASH_BEFORE,)
_AFTER = (Fault.CRASH_AFTER,)


@dataclass
class LakeCatalog:
    """The tables of one catalog as the oracles see them."""

    world: World
    straight: Catalog
    another: Catalog
    """Another engine's, which goes past the proxies too."""
    open_copy: Callable[[Mapping[str, str]], Catalog]
    """Opens another catalog that names these tables: table to the location of its metadata."""
    watchers: list[Landed] = field(default_factory=list)
    _seen: dict[str, Table] = field(default_factory=dict)
    """Each as it was when it was looked at last."""

    @property
    def pointers(self) -> Mapping[str, str]:
        return {name: table.metadata_location for name, table in self._seen.items()}

    def table(self, name: str) -> Table:
        return self.straight.load_table(table_identifier(name))

    def load_table(self, identifier: Any) -> Table:
        return self.another.load_table(identifier)

    def copied(self) -> LakeCatalog:
        copy = self.open_copy(self.pointers)
        return LakeCatalog(self.world, copy, copy, self.open_copy, _seen=dict(self._seen))

    def look(self, name: str) -> None:
        """Tell whoever watches what has become of a table."""
        with self.world.quiet():
            before, after = self._seen.get(name), self._now(name)
            if before and (after is None or after.metadata.table_uuid != before.metadata.table_uuid):
                del self._seen[name]
                before = None
                for watcher in self._watchers_of(name):
                    watcher.dropped(name)
            if after and (before is None or before.metadata_location != after.metadata_location):
                self._seen[name] = after
                for watcher in self._watchers_of(name):
                    watcher.committed(name, before, after)

    def looked_at(self, name: str) -> None:
        for watcher in self._watchers_of(name):
            watcher.looked_at(name)

    def _now(self, name: str) -> Table | None:
        try:
            return self.table(name)
        except NoSuchTableError:
            return None

    def _watchers_of(self, name: str) -> list[Landed]:
        return [watcher for watcher in self.watchers if watcher.namespace == table_identifier(name)[0]]


class _Watched(Catalog):
    """Stands before the class of a program's catalog."""

    lake: LakeCatalog

    @override
    def list_tables(self, namespace: Any) -> list[Any]:
        self.lake.world.seam("list tables", "", _BEFORE)
        return super().list_tables(namespace)  # type: ignore[safe-super]  # a catalog's class comes after this one

    @override
    def load_table(self, identifier: Any) -> Table:
        name = table_key(identifier)
        self.lake.world.seam("load", name, _BEFORE)
        table = super().load_table(identifier)  # type: ignore[safe-super]
        self.lake.looked_at(name)
        return table

    @override
    def create_table(self, identifier: Any, *how: Any, **named: Any) -> Table:
        with self._changes("create table", identifier), self.lake.world.quiet():
            return super().create_table(identifier, *how, **named)  # type: ignore[safe-super]

    @override
    def drop_table(self, identifier: Any, *how: Any, **named: Any) -> None:
        with self._changes("drop table", identifier), self.lake.world.quiet():
            super().drop_table(identifier, *how, **named)  # type: ignore[safe-super]

    @override
    def rename_table(self, from_identifier: Any, to_identifier: Any) -> Table:
        with self._changes("rename table", from_identifier, to_identifier), self.lake.world.quiet():
            return super().rename_table(from_identifier, to_identifier)  # type: ignore[safe-super]

    @override
    def commit_table(self, table: Table, requirements: Any, updates: Any) -> Any:
        with self._changes("commit", table.name()):
            return super().commit_table(table, requirements, updates)  # type: ignore[safe-super]

    @contextmanager
    def _changes(self, what: str, *identifiers: Any) -> Iterator[None]:
        """One request: what has landed is looked for, also if the client is told something else."""
        names = [table_key(identifier) for identifier in identifiers]
        self.lake.world.seam(what, " to ".join(names), _BEFORE)
        try:
            yield
        except Exception as error:
            self.lake.world.tell(f"{what}: {type(error).__name__}: {error}")
            raise
        finally:
            for name in names:
                self.lake.look(name)
        if self.lake.world.seam("done", what, _AFTER) is Fault.CRASH_AFTER:
            self.lake.world.crash()


class _WatchedMetastore(_Watched, MetastoreCatalog):
    """One that writes metadata in this process, and then moves a pointer."""

    @override
    def _write_metadata(self, *how: Any, **named: Any) -> None:  # type: ignore[override]
        super()._write_metadata(*how, **named)
        self.lake.world.seam("swap", "", _BEFORE)


def watched(catalog: Catalog, lake: LakeCatalog) -> Catalog:
    """The same catalog, with a seam at each request."""
    kind = type(catalog)
    if not isinstance(catalog, _Watched):
        first = _WatchedMetastore if isinstance(catalog, MetastoreCatalog) else _Watched
        catalog.__class__ = type(kind.__name__, (first, kind), {})
        catalog.lake = lake  # type: ignore[attr-defined]
    return catalog
