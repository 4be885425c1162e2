"""Whether a topic was asked for an erasure before: its register tells, and of what it has forgotten the receipt does.

A register remembers what has ended for 30 days, and nobody who asks counts days. A script may ask again for all of its
tickets, however old: asked anew, the request would take what its customer has written since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.log.erasures.erasure import Erasure
from keptlog.log.erasures.receipt_id import id_beginning
from keptlog.passes.erasures.erasure_receipt import erasure_of
from keptlog.table.chain.sealed_erasures import SealedErasures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore


@dataclass(frozen=True, slots=True)
class AskedBefore:
    """A request that a topic had already."""

    erasure: Erasure
    receipt: int | None = None
    """The number of its receipt, if that alone still tells of it."""


def asked_before(store: LogStore, topic: Topic, request_id: str, known: Iterable[Erasure]) -> AskedBefore | None:
    """The request of an id; ``known`` is what the topic remembers. Null if it was never asked for there.

    Raises:
        LogCorrupt: it has ended, and its receipt can't be read: nobody knows what it was. Or the chain can't.
        StorageUnavailable: nobody can tell now.
    """
    for each in known:
        if each.id == request_id:
            return AskedBefore(each)
    chain = SealedErasures(store.committer.catalog)
    receipt_id = chain.newest_id(id_beginning(topic.id, request_id))
    if receipt_id is None:
        return None
    try:
        receipt = chain.find(receipt_id)
        why = "it is none of the chain that the catalog knows"
        if receipt is not None:
            return AskedBefore(erasure_of(receipt), receipt.sequence)
    except (LogCorrupt, KeyError, TypeError) as error:
        why = str(error)
    raise LogCorrupt(
        f"topic {topic.name}: request {request_id} was verified before, and its receipt {receipt_id} can't be read "
        f"({why}): nothing is asked; ask under another id"
    )
