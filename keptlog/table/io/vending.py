"""Credentials that a catalog gives for each table: whoever opens a file by its path takes those of its location.

    s3://lake/users     key A, for an hour      s3://lake/users/data/partition=0/000.parquet     is opened with A
    s3://lake/orders    key B                   s3://lake/elsewhere                              as the catalog says

They are renewed whenever the table is loaded. Who knows by heart what the table says, and opens files below it all the
same, does so in ``with_credentials``. What goes to a task takes along what is known then, of the places where
the task works and of no others; a task that works for longer than its credentials are good for fails, and is tried
again by the next run, which has new ones.

``MOST_VENDED`` are kept at most. Beyond, those of the table go that was loaded the longest ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from keptlog.storage.refusal import store_refusal_of

Done = TypeVar("Done")


class Vended(dict[str, tuple[tuple[str, str], ...]]):
    """Location to properties, sorted; and the locations for which the catalog gave none."""

    def __init__(self) -> None:
        super().__init__()
        self.given_none: dict[str, None] = {}
        """In the order in which they were asked for."""

    def knows(self, location: str) -> bool:
        """Whether the table there was loaded since this process has begun."""
        return any(place in self or place in self.given_none for place in _places(location))


VENDED = "s3.keptlog-vended"
"""The property under which they stand beside those of the catalog; its name says that it is about storage."""
MOST_VENDED = 100_000
"""As many topics as a home may have (docs/scale.md)."""
_NAMES_REFUSALS = ("s3://", "s3a://", "s3n://")
"""Stores that tell a refusal from an outage; of others nobody can tell the two apart."""
_OF_STORAGE = ("s3.", "client.", "gcs.", "adls.")


def credentials_in(of_table: Mapping[str, Any], of_catalog: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a table's properties say of storage that its catalog's don't."""
    told = {name: value for name, value in of_table.items() if name.startswith(_OF_STORAGE) and name != VENDED}
    return tuple(sorted((name, value) for name, value in told.items() if of_catalog.get(name) != value))


def remember(vended: Vended, location: str, credentials: tuple[tuple[str, str], ...]) -> None:
    """Keep what was given for a location just now; nothing where nothing was given."""
    vended.pop(location, None)
    vended.given_none.pop(location, None)
    if credentials:
        vended[location] = credentials
    else:
        vended.given_none[location] = None
    for kept in (vended, vended.given_none):
        while len(kept) > MOST_VENDED:
            kept.pop(next(iter(kept)), None)


def with_credentials(
    properties: Iterable[tuple[str, Any]], location: str, load: Callable[[], object], work: Callable[[], Done]
) -> Done:
    """Open files below a table's location with what its catalog gives for it; ``load`` loads the table.

    That is done where nothing was given since this process has begun. What was given says in no way that all stores
    share how long it is good for. So where it is refused the table is loaded too, and the work is done once more.
    """
    vended = dict(properties).get(VENDED)
    if not isinstance(vended, Vended):
        return work()
    if not vended.knows(location):
        load()
        if not vended.knows(location):
            vended.given_none[location] = None  # its files lie elsewhere: not to be asked for at each look
    before = for_path(((VENDED, vended),), location)
    try:
        return work()
    except Exception as error:
        if location.startswith(_NAMES_REFUSALS) and store_refusal_of(error) is None:
            raise
        load()
        if for_path(((VENDED, vended),), location) == before:
            raise
    return work()


def only_for(properties: tuple[tuple[str, Any], ...], paths: Iterable[str] | None) -> tuple[tuple[str, Any], ...]:
    """The same properties, with the credentials of locations in which one of the paths lies; null for all."""
    known = dict(properties)
    vended: Mapping[str, Any] = known.get(VENDED, {})
    if paths is None or not vended:
        return properties
    needed = {place for path in paths for place in _places(path) if place in vended}
    return tuple((known | {VENDED: {place: vended[place] for place in sorted(needed)}}).items())


def _places(path: str) -> Iterator[str]:
    """A path and what it lies in, from the inside outwards."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def for_path(properties: tuple[tuple[str, Any], ...], path: str) -> tuple[tuple[str, Any], ...]:
    """The properties with which a file is opened."""
    known = dict(properties)
    if VENDED not in known:
        return properties
    vended: Mapping[str, Any] = known.pop(VENDED)
    known |= dict(next((vended[place] for place in _places(path) if place in vended), ()))
    return tuple(sorted(known.items()))
