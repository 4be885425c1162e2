"""The home, for commands that change something: they open its catalog.

To import what that takes is most of what such a command costs. So a name that means nothing is told before, where the
embedded catalog's database alone can tell it (``table/unopened.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

from keptlog.cli.unopened import unopened_store
from keptlog.home import Home, open_home
from keptlog.passes.names import named_logs, refuse_unknown


def home_with(*topics: str, besides: str = "") -> Home:
    """The home, opened to change these topics; ``besides`` ends the message where one is not there.

    Raises:
        UnknownTopic: there certainly is no such topic.
    """
    refuse_unknown_topics(*topics, besides=besides)
    return open_home()


def home_with_logs(names: Iterable[str]) -> Home:
    """The home, opened to change these topics or topic-partitions; all of them, if none is named.

    Raises:
        UnknownTopic: one certainly means nothing.
    """
    refuse_unknown_logs(names)
    return open_home()


def refuse_unknown_topics(*topics: str, besides: str = "") -> None:
    """Refuse what certainly is no topic's name, and open nothing; ``besides`` ends the message.

    Raises:
        UnknownTopic: the first such name.
    """
    unopened_store().refuse_unknown(topics, besides)


def refuse_unknown_logs(names: Iterable[str]) -> None:
    """Refuse what certainly is the name of neither a topic nor a topic-partition, and open nothing.

    Raises:
        UnknownTopic: the first such name.
    """
    store = unopened_store()
    known = set(store.topics()) if store.is_embedded else set(names)
    if others := [name for name in names if name not in known]:
        refuse_unknown(named_logs(store, others).unreadable)
