"""What the chain has of an erasure that its topic has forgotten: its receipt, found by its name.

The names of all receipts are listed, and none is read but the one. Those of an earlier chain count as well, which the
catalog no longer knows: what was proved once is not asked for anew because a table is gone.
"""

from __future__ import annotations

from keptlog.table.chain.catalog_receipts import CatalogReceipts
from keptlog.table.chain.receipt_files import ReceiptName, all_folders
from keptlog.table.waiting.reaching import reaching


class SealedErasures(CatalogReceipts):
    """Reads the chain of a catalog for whoever asks for an erasure."""

    def newest_id(self, beginning: str) -> str | None:
        """The newest of the receipts whose id is that and a time; null if there is none.

        Raises:
            StorageUnavailable: nobody can tell now.
            LogCorrupt: the table of the chain can't be read.
        """
        with reaching("receipts can't be read"):
            return max(self._ids(beginning), key=lambda each: int(each.removeprefix(beginning)), default=None)

    def _ids(self, beginning: str) -> set[str]:
        table = self.table()
        location = table.location() if table else self.default_location()
        files = self.files.list(all_folders(location)) if location else ()
        names = filter(None, (ReceiptName.of(file.path) for file in files if beginning in file.path))
        return {each.id for each in names if _is_of(each.id, beginning)}


def _is_of(receipt_id: str, beginning: str) -> bool:
    return receipt_id.startswith(beginning) and receipt_id.removeprefix(beginning).isdecimal()
