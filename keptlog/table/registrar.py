"""What a catalog that was lost, or put back to an older time, does not know of topics and receipts any more.

    propose --> told, and asked about --> one step of the catalog
     |
     data; changes nothing

Which state is the newest stands in ``keptlog.table.changes.registration``. Here it is found where the table lies, and
seen whether all that the state refers to is there: an attempt that died while it wrote is none to go on from.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from keptlog.errors import Action, InvalidConfig, KeptlogError, LogCorrupt, StalePlan, StorageUnavailable, UnknownTopic
from keptlog.log.words.advice import if_deleted
from keptlog.log.words.counted import some_of
from keptlog.table.catalogs.catalog import make_namespace, metadata_locations, usual_location
from keptlog.table.catalogs.embedded import unfinished_deletion
from keptlog.table.catalogs.emptied import emptied
from keptlog.table.chain.receipt_chain import chain_location, chain_table
from keptlog.table.chain.receipt_files import HEAD_SHA256, LENGTH, ChainEnd
from keptlog.table.chain.sealed_receipts import CHAIN
from keptlog.table.changes.registration import StoredState, StoredStates, database_of, register
from keptlog.table.io.files import local_path
from keptlog.table.metadata.partitions import partition_count, remembered_logs
from keptlog.table.metadata.references import Manifests, below, comparable, comparable_forms, references_in_reach
from keptlog.table.metadata.state import LogState, damaged_notes, log_end_offset
from keptlog.table.namespaces import CONFIGURED, NAMESPACE, RECEIPTS
from keptlog.table.removal.metadata_elsewhere import METADATA_PATH, places_of_metadata
from keptlog.table.removal.own_folder import table_in
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.table.store import LogStore

_NAMED = 3
_RECEIPTS = "the chain of receipts"
_CHAIN_TODO = "keptlog receipt verify names receipts that the catalog does not know, and keptlog doctor what to do then"
"""No state of it can be named: a receipt that was sealed before another one can't be sealed behind it."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What a catalog would name of a table, and what it names now."""

    table: tuple[str, str]
    what: str
    """The same in words: ``topic users``."""
    before: str | None
    """The metadata file that it names; null if it has no such table."""
    state: StoredState
    ends: Mapping[str, tuple[int | None, int]]
    """By topic-partition: the log end offset as the catalog has it, and as it would be. Of the receipts how many there
    are, by the name of their table. The first is null where nobody can tell it."""

    @property
    def is_receipts(self) -> bool:
        """Whether it is of the chain of receipts, and not of a topic."""
        return self.table[0] == RECEIPTS


@dataclass(frozen=True, slots=True)
class Proposals:
    """What would be registered of some topics and of the receipts; null where the catalog names it already."""

    topics: Mapping[str, CatalogEntry | None]
    receipts: CatalogEntry | None
    failed: Mapping[str, KeptlogError]

    @property
    def proposals(self) -> list[CatalogEntry]:
        """All of them, in the order in which they are carried out.

        Receipts first: where the catalog has a topic and no chain, the next purge of it begins a new one.
        """
        return [each for each in (self.receipts, *self.topics.values()) if each]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a table lies, and what the catalog says of it."""

    location: str
    before: str | None = None
    table: Table | None = None
    """Null if the catalog has no such table, or what it names can't be read."""
    damage: LogCorrupt | None = None
    """Why what it names can't be read."""


@dataclass(frozen=True, slots=True)
class Registrar:
    """Registers the topics of one store, and its receipts."""

    store: LogStore

    def begin_anew(self) -> None:
        """Let a configured catalog that was lost or emptied have topics again; it has none until they are registered.

        Raises:
            InvalidConfig: it is not lost, or only its server knows; or the home is a copy.
            StorageUnavailable: nobody can tell whether it is the one that is meant.
        """
        self.store.require_writable()
        catalog = self.store.committer.catalog
        with reaching(f"{CONFIGURED} can't be begun anew"):
            error = emptied(catalog)
            if error is None:
                raise InvalidConfig(f"{CONFIGURED} has not lost its topics: leave out --new-catalog")
            if error.action is Action.FIX_CONFIG:
                raise error
            make_namespace(catalog, NAMESPACE)

    def propose_all(self, topics: Sequence[str], metadata: str | None = None) -> Proposals:
        """What would be registered of some topics, each apart, and of the receipts. Changes nothing.

        Where nobody can tell what would be of the receipts, and the catalog has none, no topic is registered either.
        """
        failed: dict[str, KeptlogError] = {}
        found: dict[str, CatalogEntry | None] = {}
        receipts = None
        for topic in topics:
            try:
                found[topic] = self.propose(topic, metadata)
            except KeptlogError as error:
                failed[topic] = error
        try:
            receipts = self.propose_receipts()
        except KeptlogError as error:
            failed[_RECEIPTS] = error
            if not self._names_receipts():
                waits = self._waits(error)
                failed |= {topic: waits for topic, proposal in found.items() if proposal}
                found = {topic: None for topic, proposal in found.items() if not proposal}
        return Proposals(found, receipts, failed)

    def propose(self, topic: str, metadata: str | None = None) -> CatalogEntry | None:
        """What would be registered of a topic; null if the catalog names it already. Changes nothing.

        ``metadata`` is the path or the name of the state that is to count; null is the newest one.

        Raises:
            UnknownTopic: neither the catalog nor the storage has one of this name.
            LogCorrupt: nobody can tell which state is the newest, or files of it are gone.
            InvalidConfig: it can't be told where the topic lies, or another table lies there, or the home is a copy; or
                a catalog of this kind can't do it.
        """
        self.store.require_writable()
        with reaching(f"topic {topic} can't be looked for in the storage"):
            found = self._topic(topic, metadata)
            proposal = self._proposal((NAMESPACE, topic), f"topic {topic}", found, metadata)
        if found.before is None and proposal is None:
            raise UnknownTopic(f"there is no topic {topic}: the catalog has none, nor is there one in {found.location}")
        return proposal

    def propose_receipts(self) -> CatalogEntry | None:
        """The same for the chain of receipts; null also if there is none, or only a server knows where it would lie.

        Raises:
            LogCorrupt, InvalidConfig: as for a topic.
        """
        self.store.require_writable()
        with reaching("receipts can't be looked for in the storage"):
            found = self._chain()
            return self._proposal((RECEIPTS, CHAIN), _RECEIPTS, found, None) if found else None

    def register_all(self, proposals: Iterable[CatalogEntry]) -> dict[str, KeptlogError]:
        """Do it, each apart; what could not be done, by topic.

        Where the catalog is left without a chain, no topic is registered either: as in ``Proposals.proposals``.
        """
        failed: dict[str, KeptlogError] = {}
        without_chain: KeptlogError | None = None
        for each in proposals:
            name = _RECEIPTS if each.is_receipts else each.table[1]
            if without_chain:
                failed[name] = without_chain
                continue
            try:
                self.register(each)
            except KeptlogError as error:
                failed[name] = error
                if each.is_receipts and each.before is None and not isinstance(error, StalePlan):
                    without_chain = self._waits(error)
        return failed

    def register(self, proposal: CatalogEntry) -> None:
        """Do it.

        Raises:
            StalePlan: the catalog names something else by now; nothing was changed.
        """
        with reaching(f"the table {'.'.join(proposal.table)} can't be registered"):
            register(self.store.committer.catalog, proposal.table, proposal.before, proposal.state)

    def _names_receipts(self) -> bool:
        """Whether the catalog has a chain, be it damaged or of a newer keptlog; not if nobody can tell."""
        try:
            with reaching("the chain of receipts can't be looked for in the catalog"):
                return chain_table(self.store.committer.catalog) is not None
        except StorageUnavailable:
            return False
        except KeptlogError:
            return True

    def _waits(self, error: KeptlogError) -> KeptlogError:
        """Why topics are not registered, where this is what is wrong with the receipts."""
        with reaching("receipts can't be looked for in the storage"):
            # That of a newer format, which is to be fixed here, is whole.
            is_damaged = isinstance(error, LogCorrupt) and error.action is not Action.FIX_CONFIG
            folder = chain_location(self.store.committer.catalog) if is_damaged else None
        return error.reworded(
            "no topic is registered before the chain of receipts is, as the next purge would begin a new chain"
            + (f"; to let it do that, where there is no copy, move {folder}/metadata elsewhere" if folder else "")
        )

    def _proposal(
        self, identifier: tuple[str, str], what: str, found: _Place, metadata: str | None
    ) -> CatalogEntry | None:
        catalog = self.store.committer.catalog
        io = found.table.io if found.table else catalog._load_file_io(location=found.location)  # noqa: SLF001  # as it loads a table
        stored = self._stored(found)
        states = StoredStates.read(what, stored, io, *([_CHAIN_TODO] if identifier[0] == RECEIPTS else []))
        if not states.states and not states.unread and found.before is None:
            return None
        if not states.states and not states.unread and not metadata and identifier[0] != RECEIPTS:
            todo = f"put its files back, or mount their disk; {if_deleted(identifier[1])}, once receipts are registered"
            raise LogCorrupt(f"{what}: there is no metadata file of it that can be read: {todo}")
        table_id = str(found.table.metadata.table_uuid) if found.table else None
        state = states.named(metadata) if metadata else states.newest(found.before, table_id)
        table = Table(identifier, state.metadata, state.path, io, catalog)
        if found.before and _is_whole(found.before) and state.form == comparable(found.before):
            if found.damage:
                raise found.damage
            for _, number in _logs_of(None, table):
                _end_in(table, number, table.properties)  # refuses damaged ones: whoever is told can repair it
            return None
        _require_in_place(what, state)
        self._require_whole(what, table, stored)
        if found.before is not None:
            database_of(catalog, identifier, state)
        return CatalogEntry(identifier, what, found.before, state, _ends(found.table, table))

    def _topic(self, topic: str, metadata: str | None) -> _Place:
        try:
            named = _named(lambda: self.store.load_table(topic), lambda: self.store.metadata_locations().get(topic))
        except UnknownTopic:
            named = None
        return named or _Place(self._unknown(topic, metadata))

    def _chain(self) -> _Place | None:
        """Where the receipts lie; null where only a server knows."""
        catalog = self.store.committer.catalog

        def path() -> str | None:
            # The chain deletes metadata files as it goes on: an older catalog names one of those.
            return metadata_locations(catalog, RECEIPTS).get(CHAIN) if isinstance(catalog, SqlCatalog) else None

        if named := _named(lambda: chain_table(catalog), path):
            return named
        location = chain_location(catalog)
        return _Place(location) if location else None

    def _unknown(self, topic: str, metadata: str | None) -> str:
        """Where a topic lies that the catalog does not know."""
        catalog = self.store.committer.catalog
        if topic in self.store.being_deleted():
            raise unfinished_deletion(topic)
        given = _folder_of(_whole(metadata)) if metadata and "/" in metadata else None
        location = given or usual_location(catalog, NAMESPACE, topic)
        if location is None:
            raise InvalidConfig(
                f"topic {topic}: only its server knows where this catalog puts tables: name the newest metadata file "
                "with --metadata, by its whole path"
            )
        if other := table_in(catalog, location):
            raise InvalidConfig(f"topic {topic}: the table {other} lies in {location}: nothing was changed")
        return location

    def _stored(self, found: _Place) -> list[str]:
        elsewhere = places_of_metadata(found.table)[1:] if found.table else []
        return [each.path for place in (found.location, *elsewhere) for each in self.store.files.list(place)]

    def _require_whole(self, what: str, table: Table, stored: Sequence[str]) -> None:
        """Refuse a state whose files are not there.

        Raises:
            LogCorrupt: naming them.
        """
        snapshot = table.current_snapshot()
        found, unread = references_in_reach([snapshot] if snapshot else [], Manifests(table.name()[-1], table.io))
        gone = {each.path for each in unread} | set(self._gone([*found.data_bytes, *found.metadata_bytes], stored))
        if gone:
            raise LogCorrupt(
                f"{what}: {table.metadata_location} refers to what is gone or can't be read: "
                f"{some_of(sorted(gone), _NAMED)}. Put it back from a copy, or name an earlier state with --metadata"
            )

    def _gone(self, paths: Iterable[str], stored: Sequence[str]) -> Sequence[str]:
        there = set(comparable_forms(stored).values())
        return self.store.files.missing([path for path, form in comparable_forms(paths).items() if form not in there])


def _named(load: Callable[[], Table | None], path: Callable[[], str | None]) -> _Place | None:
    """What the catalog names, also where that can't be read but for its ``path``; null if it names nothing."""
    try:
        table = load()
    except LogCorrupt as error:
        metadata = path()
        if not metadata:
            raise
        return _Place(_folder_of(metadata), metadata, damage=error)
    return _Place(table.location(), table.metadata_location, table) if table else None


def _require_in_place(what: str, state: StoredState) -> None:
    """Refuse a copy: whoever went on from it would write where the original lies, which another home may have.

    Raises:
        InvalidConfig: naming that place.
    """
    table, form = state.metadata, comparable(state.path)
    places = (table.location, table.properties.get(METADATA_PATH))
    if not any(below(place)(form) for place in places if place):
        raise InvalidConfig(
            f"{what}: {state.path} says that its table lies in {table.location}: it is a copy, or was moved. Nothing "
            "was changed: register it where it lies, or let a link lead from there to here if it was moved"
        )


def _whole(path: str) -> str:
    """A path as a catalog names it, for whoever reads it there may stand in another folder."""
    local = local_path(path)
    return path if local is None else f"file://{os.path.abspath(local)}"  # noqa: PTH100  # a Path keeps its ..


def _is_whole(path: str) -> bool:
    """Whether it leads to one place wherever one stands; whoever registers a table by hand may name another."""
    local = local_path(path)
    return local is None or local.startswith("/")


def _folder_of(metadata: str) -> str:
    """The folder of a table, from the path of one of its metadata files."""
    return metadata.rpartition("/")[0].rpartition("/")[0]


def _ends(before: Table | None, after: Table) -> dict[str, tuple[int | None, int]]:
    told = _but_damaged_notes(after)
    return {name: (_end(before, number), _end_in(after, number, told)) for name, number in _logs_of(before, after)}


def _but_damaged_notes(table: Table) -> Mapping[str, str]:
    """Its properties but for those that a repair writes anew, which it can do once the catalog names this state."""
    namespace, name = table.name()
    damaged = {} if namespace == RECEIPTS else damaged_notes(name, table.properties)
    return {key: text for key, text in table.properties.items() if key not in damaged}


def _logs_of(before: Table | None, after: Table) -> list[tuple[str, int]]:
    """The name of each log that the second has or the first remembers, and its number; of receipts their table's."""
    namespace, name = after.name()
    if namespace == RECEIPTS:
        return [(name, 0)]
    numbers = set(range(partition_count(name, after.properties)))
    numbers |= remembered_logs(before.properties) if before else set()  # its number of partitions may be damaged
    return [(f"{name}-{number}", number) for number in sorted(numbers)]


def _end(table: Table | None, number: int) -> int | None:
    """Null where nobody can tell it: damage of what the catalog names keeps nobody from taking another state.

    Of a log nothing but the end is read: damage of the rest would hide what such a state loses.
    """
    if table is None:
        return None
    names = {LENGTH, HEAD_SHA256, log_end_offset(number)}
    with suppress(LogCorrupt):
        return _end_in(table, number, {name: text for name, text in table.properties.items() if name in names})
    return None


def _end_in(table: Table, number: int, properties: Mapping[str, str]) -> int:
    """Where a log ends, or the chain, by these properties of its table; refuses whatever is damaged in them."""
    namespace, name = table.name()
    if namespace == RECEIPTS:
        return ChainEnd.of(properties).length
    return LogState.read(name, number, properties).log_end_offset
