"""Whether the stores answer that hold the tables: memory would go on to answer for a store that is gone.

    topics of a bucket   all as they were when they were read   -->   memory answers, and nothing is asked of the bucket
    nobody can commit    so no topic ever moves                 -->   that would be so for good

A disk of this machine is asked for each file before memory answers (``metadata_files``). Of an object store it is
enough that it answers at all: one small request each, whatever it holds. The catalog answers without it, and says only
that nothing has changed.

One topic is asked for. What it meets may be its own: its prefix is refused, the credentials that come with its table
have expired, the store is busy just now. So then others are asked for, from all over the list, and the store is called
away if none is answered. A metadata file that is gone is no outage, for the store has answered. A tick can't wait for a
store that hangs: what asks is less patient than what reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from keptlog.errors import StorageUnavailable
from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.impatience import impatient
from keptlog.table.io.vending import with_credentials
from keptlog.table.waiting.reaching import reaching
from keptlog.table.waiting.side_by_side import side_by_side

if TYPE_CHECKING:
    from keptlog.table.io.files import TableFiles

_MOST_ASKED = 16
"""So many topics more before a store is called away, side by side."""
_NOT_ASKED = {"NoBoto3"}
"""Refusals of ours, before anything is asked."""


class HasFiles(Protocol):
    """Topics whose files can be asked for: a ``LogStore``, or a home that is not opened yet."""

    @property
    def files(self) -> TableFiles:
        """Where the tables lie."""

    def load_table(self, topic: str) -> object:
        """Load a topic's table, and with it what its catalog gives to open its files."""


class AwayStore(NamedTuple):
    """A store that gives none of what it was asked for."""

    name: str
    """As paths begin: ``s3://lake``."""
    topics: tuple[str, ...]
    """Whose metadata lies there."""
    asked: Mapping[str, StorageUnavailable]
    """Those of them that were asked for, and why each was not had."""

    @property
    def why(self) -> StorageUnavailable:
        """What holds for the store: a topic that is refused may be so for itself, one without an answer hardly is."""
        return next(iter(self._waited_for.values()), next(iter(self.asked.values())))

    @property
    def silent(self) -> Mapping[str, StorageUnavailable]:
        """Topics that would be waited for in vain: all, but where the store has refused one it is there for others."""
        waited_for = self._waited_for
        return dict.fromkeys(self.topics, self.why) if len(waited_for) == len(self.asked) else waited_for

    @property
    def _waited_for(self) -> dict[str, StorageUnavailable]:
        return {topic: why for topic, why in self.asked.items() if not why.is_refused}


def stores_away(store: HasFiles, locations: Mapping[str, str], turn: int) -> list[AwayStore]:
    """The stores that don't answer, of those where these topics lie; they are asked side by side.

    ``locations`` are those of the topics' metadata. ``turn`` says which of them is asked for: another one each time.
    """
    by_store: defaultdict[str, list[str]] = defaultdict(list)
    for topic, location in locations.items():
        if name := _store_of(location):
            by_store[name].append(topic)

    def asked(name: str) -> dict[str, StorageUnavailable]:
        """Those asked for, and why they are not had; empty if one is."""
        topics = by_store[name]
        first = turn % len(topics)
        in_turn = [*topics[first:], *topics[:first]]
        found = _why_silent(store, name, in_turn[0], locations)
        if found is None:
            return {}
        others = in_turn[1 :: -(-len(topics) // _MOST_ASKED)]
        more = side_by_side(lambda topic: _why_silent(store, name, topic, locations), others)
        whys = {in_turn[0]: found} | {topic: why for topic, why in more.items() if why}
        return whys if len(whys) == 1 + len(more) else {}

    looked = side_by_side(asked, by_store)
    return [AwayStore(name, tuple(by_store[name]), whys) for name, whys in looked.items() if whys]


def _why_silent(store: HasFiles, name: str, topic: str, locations: Mapping[str, str]) -> StorageUnavailable | None:
    """Why the metadata file of a topic can't be asked for; null if it can, also if it is not there."""
    location = locations[topic]
    files = replace(store.files, properties=impatient(store.files.properties))
    try:
        with reaching(f"{name} can't be read"):
            with_credentials(
                files.properties, location, lambda: store.load_table(topic), lambda: files.exists(location)
            )
    except StorageUnavailable as error:
        refusal = error.__cause__
        return None if isinstance(refusal, StoreRefused) and refusal.code in _NOT_ASKED else error
    except Exception:  # noqa: BLE001  # what is wrong with the topic is told by whoever reads it
        return None
    return None


def _store_of(location: str) -> str | None:
    """The bucket in which a file lies; null for a disk of this machine."""
    scheme, sign, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if sign and scheme != "file" else None
