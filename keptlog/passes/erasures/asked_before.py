"""An erasure that a topic has forgotten, 30 days after it ended, is not asked for anew by mistake: its receipt tells.

Whoever asks again for all of his tickets, however old, means what each was about. Asked anew, one of them would take
what its customer has written since. So an id that a receipt of the topic has is refused, and none of them is read: the
request stands in the receipt's name.

Who may not read the receipts, or gets no answer, asks nothing: not looked at is not never asked. An id that was made
just now needs no look. A chain that is damaged, or was put back with the catalog, tells of nothing, and keeps nobody
from asking: what it had is gone, and a request has its deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, LogCorrupt, StorageUnavailable
from keptlog.log.erasures.receipt_id import id_beginning
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.table.chain.receipt_files import ReceiptFiles
    from keptlog.table.commits.topics import Topic


@dataclass(frozen=True)
class AskedBefore:
    """What the receipts say of a request, listed once for all of its topics."""

    request_id: str
    list_receipts: Callable[[], ReceiptFiles]

    def require_new(self, topic: Topic) -> None:
        """Refuse a request that was verified there.

        Raises:
            InvalidConfig: it was; names the receipt.
            StorageUnavailable: nobody can tell now, or this user may not.
        """
        try:
            with reaching("receipts can't be read"):
                receipts = self._receipts
                if isinstance(receipts, StorageUnavailable):
                    raise receipts
                number = receipts and receipts.newest(id_beginning(topic.id, self.request_id))
        except LogCorrupt:
            return  # ``receipt verify`` and doctor say so
        except StorageUnavailable as error:
            told = f"topic {topic.name}: whether request {self.request_id} was verified there before can't be told"
            raise error.reworded(f"{told}, so nothing is asked: {error}") from error
        if number is not None:
            raise InvalidConfig(
                f"topic {topic.name}: request {self.request_id} was verified there before, and is not among its "
                f"erasures any more (keptlog receipt show {number}): nothing is asked. Ask under another id for what "
                "is there now"
            )

    @cached_property
    def _receipts(self) -> ReceiptFiles | StorageUnavailable:
        try:
            with reaching("receipts can't be listed"):
                return self.list_receipts()
        except StorageUnavailable as error:
            return error  # asked once, also of hundreds of topics
