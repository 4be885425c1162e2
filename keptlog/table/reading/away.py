"""Whether the stores answer that hold the tables: memory would go on to answer for a store that is gone.

    topics of a bucket   all as they were when they were read   -->   memory answers, and nothing is asked of the bucket
    nobody can commit    so no topic ever moves                 -->   that would be so for good

A disk of this machine is asked for each file before memory answers (``metadata_files``). Of an object store it is
enough that it answers at all: one small request each, whatever it holds. The catalog answers without it, and says only
that nothing has changed.

Two topics are asked for before a store is called away. One may be refused for itself; and a metadata file that is gone
is no outage, for the store has answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol

from keptlog.errors import StorageUnavailable
from keptlog.table.io.vending import with_credentials
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.table.io.files import TableFiles

_ASKED = 2


class HasFiles(Protocol):
    """Topics whose files can be asked for: a ``LogStore``, or a home that is not opened yet."""

    @property
    def files(self) -> TableFiles:
        """Where the tables lie."""

    def load_table(self, topic: str) -> object:
        """Load a topic's table, and with it what its catalog gives to open its files."""


class AwayStore(NamedTuple):
    """A store that does not give what it holds."""

    name: str
    """As paths begin: ``s3://lake``."""
    topics: tuple[str, ...]
    """Whose metadata lies there."""
    why: StorageUnavailable


def stores_away(store: HasFiles, locations: Mapping[str, str], turn: int) -> list[AwayStore]:
    """The stores that don't answer, of those where these topics lie.

    ``locations`` are those of the topics' metadata. ``turn`` says which of them are asked for: another one each time.
    """
    by_store: defaultdict[str, list[str]] = defaultdict(list)
    for topic, location in locations.items():
        if name := _store_of(location):
            by_store[name].append(topic)
    away = []
    for name, topics in by_store.items():
        first = turn % len(topics)
        asked = [*topics[first:], *topics[:first]][:_ASKED]
        silent = (_why_silent(store, name, topic, locations[topic]) for topic in asked)
        why = [each for each in takewhile(bool, silent) if each]
        if why and len(why) == len(asked):
            away.append(AwayStore(name, tuple(topics), why[0]))
    return away


def _why_silent(store: HasFiles, name: str, topic: str, location: str) -> StorageUnavailable | None:
    """Why the metadata file of a topic can't be asked for; null if it can, also if it is not there."""
    files = store.files
    try:
        with reaching(f"{name} can't be read"):
            with_credentials(
                files.properties, location, lambda: store.load_table(topic), lambda: files.exists(location)
            )
    except StorageUnavailable as error:
        return error
    except Exception:  # noqa: BLE001  # what is wrong with the topic is told by whoever reads it
        return None
    return None


def _store_of(location: str) -> str | None:
    """The bucket in which a file lies; null for a disk of this machine."""
    scheme, sign, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if sign and scheme != "file" else None
