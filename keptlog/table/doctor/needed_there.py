"""Folders without a topic in which a topic has live files all the same: whoever deletes such a folder deletes records.

Another program has brought them in (``add_files``), or had moved the topic's table there for a while. The topics' own
manifests tell, so it is asked where such a folder was found and its deletion is advised, and not by each look at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError
from keptlog.table.doctor.unowned import UnownedFolder, unowned_folders
from keptlog.table.metadata.references import Manifests, below, live_references
from keptlog.table.waiting.reaching import reaching
from keptlog.table.waiting.side_by_side import side_by_side

if TYPE_CHECKING:
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore

NOT_LISTED = "folders without a topic"
"""Stands for all of them where nobody can list them."""


def unowned_and_needed(store: LogStore | UnopenedStore) -> list[UnownedFolder]:
    """As ``unowned_folders``, each with the topics that have live files there; raises what that does."""
    found = unowned_folders(store)
    return with_topics(store, found)


def with_topics(store: LogStore | UnopenedStore, found: Sequence[UnownedFolder]) -> list[UnownedFolder]:
    """These folders, each with the topics that have live files there."""
    if not found:
        return []

    def live(topic: str) -> set[str] | None:
        try:
            table = store.load_table(topic)
            with reaching(f"topic {topic} can't be read"):
                return live_references(table, Manifests(topic, table.io)).keys()
        except KeptlogError:
            return None  # it is told by itself, and may need anything

    needed = side_by_side(live, store.topics())
    unread = tuple(topic for topic, forms in needed.items() if forms is None)

    def by(folder: UnownedFolder) -> tuple[str, ...]:
        is_below = below(folder.path)
        return tuple(topic for topic, forms in needed.items() if any(map(is_below, forms or ())))

    return [replace(each, needed_by=by(each), unread_topics=unread) for each in found]
