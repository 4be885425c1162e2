"""Where the metadata of all topics lies now: every commit moves it, so it says what has changed since the last look.

    SQL        one query
    Glue       a request for each hundred of tables, one after the other
    REST       a list, and of each topic whether it has moved: "not modified" is an answer without a body; side by side
    others     a list, and each topic's table is loaded, one after the other: their clients are not made for more

Only SQL tells all at once. Whoever has little time (``Patience``) is told of the other topics as they were when they
were asked last. The next look goes on with those that wait longest; ``Locations`` says how long.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.errors import LogCorrupt, StorageUnavailable, UnknownTopic
from keptlog.table.catalogs.catalog import TellsLocations, metadata_locations
from keptlog.table.catalogs.emptied import require_not_emptied
from keptlog.table.catalogs.one_at_a_time import is_rest
from keptlog.table.commits.loading import metadata_location, topic_names
from keptlog.table.metadata.logs import Locations
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.waiting.reaching import reaching
from keptlog.table.waiting.side_by_side import AT_ONCE, Patience, side_by_side

if TYPE_CHECKING:
    from keptlog.table.catalogs.conditional import Question


_SILENT_AGAIN_MS = 60_000
"""After this time a topic that did not answer is not put off any more."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the catalog said of a topic."""

    location: str
    asked_ms: int | None = None
    """By the clock of whoever had little time; for who had none, when it was told last. Null if it never was."""
    etag: str | None = None
    """By which the catalog knows the answer again."""
    outage: StorageUnavailable | None = None


@dataclass
class LocationLook:
    """Asks one catalog again and again, and remembers what it said."""

    catalog: Catalog
    _asked: dict[str, _Asked] = field(default_factory=dict)
    _told_ms: int | None = None
    _reached: tuple[str | None, dict[str, _Asked]] = (None, {})
    """The page that is to be asked for next, and what those before it have told."""

    def now(self, patience: Patience | None = None) -> Locations:
        """All topics, as far as there is time.

        Raises:
            StorageUnavailable: that of none can be had, or none is known and files of topics are there.
        """
        found = self._found(patience)
        if not found and not found.to_be_asked:
            require_not_emptied(self.catalog)
        return found

    def _found(self, patience: Patience | None) -> Locations:
        if isinstance(self.catalog, SqlCatalog):
            return Locations(metadata_locations(self.catalog))
        if isinstance(self.catalog, TellsLocations):
            return self._by_pages(self.catalog, patience)
        began_ms = self._told_ms = patience.monotonic_ms() if patience else self._told_ms
        names = topic_names(self.catalog)
        known = {name: self._asked[name] for name in names if name in self._asked}
        silent = {name for name, asked in known.items() if asked.outage}
        again_ms = began_ms - _SILENT_AGAIN_MS if began_ms is not None and _answered_last(known.values()) else None
        in_turn = sorted(names, key=lambda name: _turn(known.get(name), again_ms))
        question = self._question()
        at_once = AT_ONCE if question else 1
        told = side_by_side(lambda name: self._ask(name, known.get(name), question), in_turn, at_once, patience)
        for name, asked in told.items():
            if asked is None:
                known.pop(name, None)
            else:
                known[name] = replace(asked, asked_ms=began_ms)
        self._asked = known
        outages = [asked.outage for asked in told.values() if asked and asked.outage]
        others = [each for name, each in known.items() if name not in told]
        if outages and len(outages) == len(told) and not _is_theirs_alone(told.keys() - silent, others):
            raise outages[0]
        found = _locations({name: known[name] for name in names if name in known}, began_ms)
        found.to_be_asked = sum(name not in known and name not in told for name in names)
        return found

    def _by_pages(self, catalog: TellsLocations, patience: Patience | None) -> Locations:
        """The next page at least; who has little time goes on behind it in the next look."""
        began_ms = patience.monotonic_ms() if patience else None
        page, met = self._reached if patience else (None, {})
        self._reached = (None, {})  # a page that is refused may be too old: then the next look begins anew
        while True:
            told, page = catalog.location_page(NAMESPACE, page)
            met = met | {name: _Asked(location, began_ms) for name, location in told.items()}
            if page is None:
                self._asked = met
                return _locations(met, began_ms)
            if patience and patience.is_over:
                self._reached = (page, met)
                found = _locations(self._asked | met, began_ms)
                found.to_be_asked = 0 if self._asked else 1  # nobody knows how many lie on the pages behind
                return found

    def _ask(self, name: str, known: _Asked | None, question: Question | None) -> _Asked | None:
        """Null if it was deleted just now."""
        try:
            with reaching(f"topic {name} can't be loaded"):
                moved = _moved(question, name, known) if question else None
                return moved or _Asked(metadata_location(self.catalog, name))
        except UnknownTopic:
            return None
        except LogCorrupt:
            return _Asked("")
        except StorageUnavailable as error:
            return _Asked("", outage=error)

    def _question(self) -> Question | None:
        """What a REST catalog is asked; null for any other."""
        if not is_rest(self.catalog):
            return None
        from keptlog.table.catalogs.conditional import Question  # noqa: PLC0415  # as in is_rest

        return Question(self.catalog, NAMESPACE)


def _moved(question: Question, name: str, known: _Asked | None) -> _Asked | None:
    """Where a topic is; null for an answer that PyIceberg is to make sense of."""
    told = question.ask(name, known.etag if known else None)
    if told.status == HTTPStatus.NOT_MODIFIED and known and known.etag:
        return replace(known, outage=None)
    return _Asked(told.location, etag=told.etag) if told.location else None


def _turn(asked: _Asked | None, again_ms: int | None) -> tuple[bool, int]:
    """Who was asked longest ago comes first.

    What did not answer comes last, or a few such topics would take all the time of look after look. So that it is asked
    at all where the others take it, it has its turn if that was before ``again_ms``; null after a look that met nothing
    else, as two of those are an outage.
    """
    if asked is None:
        return False, -1
    asked_ms = asked.asked_ms or 0
    return asked.outage is not None and (again_ms is None or asked_ms > again_ms), asked_ms


def _is_theirs_alone(newly_silent: Collection[str], others: Collection[_Asked]) -> bool:
    """Whether topics that took all the time, and of which none answered, say nothing of the catalog.

    Those that did not answer before say nothing while another one does. One more says nothing if what was asked just
    before it answered.
    """
    if newly_silent:
        return len(newly_silent) == 1 and _answered_last(others)
    return any(each.outage is None for each in others)


def _answered_last(others: Collection[_Asked]) -> bool:
    """Whether of the topics that were asked last one has answered."""
    last_ms = max((each.asked_ms or 0 for each in others), default=0)
    return any(each.outage is None for each in others if (each.asked_ms or 0) == last_ms)


def _locations(known: dict[str, _Asked], began_ms: int | None) -> Locations:
    found = Locations({name: asked.location for name, asked in known.items()})
    asked_ms = [each.asked_ms for each in known.values() if each.asked_ms is not None]
    found.asked_ago_ms = max(began_ms - min(asked_ms), 0) if asked_ms and began_ms is not None else 0
    return found
