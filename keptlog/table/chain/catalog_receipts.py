"""The receipts of a catalog's chain, for whoever has the catalog and seals nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from keptlog.errors import KeptlogError
from keptlog.table.catalogs.catalog import files_of
from keptlog.table.catalogs.emptied import emptied
from keptlog.table.chain.receipt_chain import chain_location, chain_table
from keptlog.table.chain.sealed_receipts import SealedReceipts

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from keptlog.table.io.files import TableFiles


@dataclass(frozen=True)
class CatalogReceipts(SealedReceipts):
    """Reads the chain of a catalog."""

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
