"""The chain of receipts of a home to which nobody has opened the catalog yet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from keptlog.errors import KeptlogError
from keptlog.table.catalogs.embedded import embedded_locations
from keptlog.table.catalogs.home_location import warehouse_named
from keptlog.table.chain.sealed_receipts import CHAIN, SealedReceipts
from keptlog.table.io.files import TableFiles
from keptlog.table.namespaces import RECEIPTS
from keptlog.table.reading.bare import as_table, bare_table

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table


class UnopenedReceipts(SealedReceipts):
    """Reads the chain by its table's own files; ``open_catalog`` is called when there is no other way."""

    def __init__(self, home: Path, files: TableFiles, open_catalog: Callable[[], Catalog]) -> None:
        self._home = home
        self._files = files
        self._open_catalog = open_catalog

    @property
    @override
    def files(self) -> TableFiles:
        return self._files

    @override
    def table(self) -> Table | None:
        """The table of the chain as it is now; null if nothing was ever sealed."""
        locations = embedded_locations(self._home, namespace=RECEIPTS)
        if locations is not None and CHAIN not in locations:
            return None
        bare = bare_table((RECEIPTS, CHAIN), locations[CHAIN]) if locations else None
        if bare:
            return as_table(bare)
        from keptlog.table.chain.receipt_chain import chain_table  # noqa: PLC0415  # what is wrong, PyIceberg says

        return chain_table(self._open_catalog())

    @override
    def default_location(self) -> str | None:
        """Where the catalog puts the chain's table; null where only a server knows."""
        if embedded_locations(self._home) is not None:
            return f"{warehouse_named(self._home)}/{RECEIPTS}/{CHAIN}"
        from keptlog.table.chain.receipt_chain import chain_location  # noqa: PLC0415  # asked where there is no chain alone

        return chain_location(self._open_catalog())

    @override
    def why_not_believed(self) -> KeptlogError | None:
        if embedded_locations(self._home) is not None:
            return None
        from keptlog.table.catalogs.emptied import emptied  # noqa: PLC0415  # asked where there is no chain alone

        return emptied(self._open_catalog())
