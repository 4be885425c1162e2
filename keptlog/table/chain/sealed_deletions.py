"""What the chain has of the deletion of a topic: an earlier call has sealed it, and what it told of is gone by now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from keptlog.errors import LogCorrupt
from keptlog.table.chain.catalog_receipts import CatalogReceipts
from keptlog.table.chain.receipt_files import ReceiptName
from keptlog.table.removal.journal import DELETION, DELETION_NAME
from keptlog.table.waiting.reaching import reaching


class SealedDeletions(CatalogReceipts):
    """Reads the chain of a catalog for whoever finishes a deletion; called with the id of the topic's table."""

    def __call__(self, table_id: str) -> Iterator[Mapping[str, Any]]:
        """The contents of its receipts, the oldest first; one that can't be read costs only itself.

        Raises:
            StorageUnavailable: nobody can tell now.
        """
        with contextlib.suppress(LogCorrupt), reaching("receipts can't be read"):
            listed = self.listed()
            names = filter(None, map(ReceiptName.of, listed.own_paths()))
            for number in sorted({each.sequence for each in names if each.id.startswith(DELETION_NAME)}):
                with contextlib.suppress(LogCorrupt):
                    receipt = listed.receipt(number)
                    if receipt.kind == DELETION and receipt.content.get("table_uuid") == table_id:
                        yield receipt.content
