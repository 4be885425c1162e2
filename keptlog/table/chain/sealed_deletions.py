"""What the chain has of the deletion of a topic: an earlier call has sealed it, and what it told of is gone by now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from keptlog.errors import KeptlogError, LogCorrupt
from keptlog.table.catalogs.catalog import files_of
from keptlog.table.catalogs.emptied import emptied
from keptlog.table.chain.receipt_chain import chain_location, chain_table
from keptlog.table.chain.receipt_files import ReceiptName
from keptlog.table.chain.sealed_receipts import SealedReceipts
from keptlog.table.removal.journal import DELETION, DELETION_NAME
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from keptlog.table.io.files import TableFiles


@dataclass(frozen=True)
class SealedDeletions(SealedReceipts):
    """Reads the chain of a catalog for whoever finishes a deletion; called with the id of the topic's table."""

    catalog: Catalog

    @property
    @override
    def files(self) -> TableFiles:
        return files_of(self.catalog)

    @override
    def table(self) -> Table | None:
        return chain_table(self.catalog)

    @override
    def default_location(self) -> str | None:
        return chain_location(self.catalog)

    @override
    def why_not_believed(self) -> KeptlogError | None:
        return emptied(self.catalog)

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
