"""An erasure that a topic has forgotten, 30 days after it ended, is not asked for anew by mistake: its receipt tells.

Whoever asks again for all of his tickets, however old, means what each was about. Asked anew, one of them would take
what its customer has written since. So an id that a receipt of the topic has is refused, and none of them is read: the
request stands in the receipt's name.

Where the chain is damaged, or was put back with the catalog, it tells of nothing, and keeps nobody from asking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, LogCorrupt
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
            StorageUnavailable: nobody can tell now.
        """
        number = self._receipts and self._receipts.newest(id_beginning(topic.id, self.request_id))
        if number is not None:
            raise InvalidConfig(
                f"topic {topic.name}: request {self.request_id} was verified there, and the topic has forgotten it "
                f"(keptlog receipt show {number}): nothing is asked. What has come since is new: ask under another id"
            )

    @cached_property
    def _receipts(self) -> ReceiptFiles | None:
        try:
            with reaching("receipts can't be listed"):
                return self.list_receipts()
        except LogCorrupt:
            return None  # ``receipt verify`` and doctor say so
