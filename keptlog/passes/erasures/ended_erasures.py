"""Erasures of a home to which nobody has opened the catalog: those that have ended are told as they are remembered.

How far an open one is only a look at snapshots, logs and storage tells, which is also remembered (``erase``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError
from keptlog.log.given.given import texts
from keptlog.passes.erasures.erasure_request import ErasureList, ErasureRow
from keptlog.passes.erasures.lost_topics import requests_of_lost_topics
from keptlog.passes.names import require_topics
from keptlog.table.metadata.state import read_open_erasures, remembers_erasures
from keptlog.table.removal.erasure_look import read_register

if TYPE_CHECKING:
    from keptlog.table.unopened import UnopenedStore


def only_ended(store: UnopenedStore, names: Iterable[str] = (), ids: Iterable[str] = ()) -> ErasureList | None:
    """As an eraser lists them, with these ids if any are given; null if one is open, or a topic can't be read.

    Raises:
        UnknownTopic: a name is no topic's.
    """
    named, known = list(dict.fromkeys(texts(names, "the topics of erasures"))), store.topics()
    require_topics(named, known)
    rows: list[ErasureRow] = []
    try:
        for topic in named or known:
            properties = store.load_table(topic).properties
            if read_open_erasures(topic, properties).count:
                return None
            if remembers_erasures(topic, properties):
                remembered = read_register(store.files, partial(store.load_table, topic))
                rows += [ErasureRow(topic, each) for each in remembered]
    except (KeptlogError, OSError):
        return None
    if any(row.erasure.is_open for row in rows):
        return None
    ids = texts(ids, "the ids of erasures")
    return ErasureList(tuple(rows), {} if named else requests_of_lost_topics(store, ids)).of(ids)
