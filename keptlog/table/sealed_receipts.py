"""The receipts of a chain, for whoever reads them; how they come into it stands in ``receipt_chain``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.receipts.receipt import Head, Receipt
from keptlog.table.files import TableFiles
from keptlog.table.reaching import reaching
from keptlog.table.receipt_files import ChainEnd, ReceiptFiles, chain_folder

if TYPE_CHECKING:
    from pyiceberg.table import Table

CHAIN = "chain"
"""The name of the table."""
_SHOWN = 3


class SealedReceipts(ABC):
    """Reads what was sealed, wherever the chain's table is had from."""

    @property
    @abstractmethod
    def files(self) -> TableFiles:
        """Where the receipts lie."""

    @abstractmethod
    def table(self) -> Table | None:
        """The table of the chain as it is now; null if nothing was ever sealed."""

    def receipts(self) -> Iterator[Receipt]:
        """All that was sealed, from the first on. One that can't be read costs only itself.

        Raises:
            LogCorrupt: at the end, if some could not be read; says which.
        """
        problems: list[str] = []
        with reaching("receipts can't be read"):
            listed = self.listed()
            for number in range(1, listed.end.length + 1):
                try:
                    yield listed.receipt(number)
                except LogCorrupt as error:
                    problems.append(str(error))
        if problems:
            more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise LogCorrupt(f"{'; '.join(problems[:_SHOWN])}{more}: keptlog receipt verify shows what else is wrong")

    def find(self, name: str) -> Receipt | None:
        """The receipt of an id, or else of a number; null if there is none.

        Raises:
            LogCorrupt: it can't be read.
        """
        with reaching("receipts can't be read"):
            listed = self.listed()
            number = listed.number_of(name)
            if number is None and name.isdecimal() and 1 <= int(name) <= listed.end.length:
                number = int(name)
            return None if number is None else listed.receipt(number)

    def head(self) -> Head | None:
        """The signed end of the chain; null if nothing was sealed.

        Raises:
            LogCorrupt: its file is damaged or gone.
        """
        with reaching("the chain of receipts can't be read"):
            table = self.table()
            end = ChainEnd.of(table.properties) if table else ChainEnd()
            if table is None or not end.length:
                return None
            path = f"{chain_folder(table)}{end.head_file}"
            try:
                return Head.of(self.files.read_bytes(path))
            except (FileNotFoundError, ValueError) as error:
                raise LogCorrupt(f"the head of the chain of receipts, {path}, can't be read: {error}") from None

    def listed(self) -> ReceiptFiles:
        """The files of the chain as it is now."""
        table = self.table()
        if table is None:
            return ReceiptFiles(self.files, "")
        listed = ReceiptFiles(self.files, chain_folder(table))
        listed.look(ChainEnd.of(table.properties))
        return listed
