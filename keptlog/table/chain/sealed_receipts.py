"""The receipts of a chain, for whoever reads them; how they come into it stands in ``receipt_chain``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, LogCorrupt
from keptlog.receipts.receipt import Head, Receipt
from keptlog.table.chain.receipt_files import ChainEnd, ReceiptFiles, all_folders, chain_folder, earlier_chains
from keptlog.table.io.files import TableFiles
from keptlog.table.waiting.reaching import reaching

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

    @abstractmethod
    def default_location(self) -> str | None:
        """Where the catalog puts the chain's table, also one that was dropped; null where only a server knows."""

    @abstractmethod
    def why_not_believed(self) -> KeptlogError | None:
        """The error for whoever is told by the catalog that there is no chain, where it is not believed; else null."""

    def paths_without_table(self) -> list[str]:
        """The files in the place of the chain, for whoever finds no table: it may have been dropped."""
        location = self.default_location()
        return [file.path for file in self.files.list(all_folders(location))] if location else []

    def receipts(self, is_meant: Callable[[Receipt], bool] = lambda _: True) -> Iterator[Receipt]:
        """All that was sealed and is meant, from the first on. One that can't be read costs only itself.

        Raises:
            LogCorrupt: at the end, if some could not be read; says which. Where none is meant, those that were passed
                over have to be written as receipts are: one that an editor has written may be what is asked for.
        """
        problems: list[str] = []
        passed_over: list[int] = []
        is_any = False
        with reaching("receipts can't be read"):
            listed = self.listed()
            for number in range(1, listed.end.length + 1):
                try:
                    if receipt := listed.receipt_if(number, is_meant):
                        is_any = True
                        yield receipt
                    else:
                        passed_over.append(number)
                except LogCorrupt as error:
                    problems.append(str(error))
            problems += [] if is_any else _damage_of(listed, passed_over)
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
            LogCorrupt: its file is damaged or gone, or the catalog has lost the chain.
        """
        with reaching("the chain of receipts can't be read"):
            table = self._table_or_none_ever()
            end = ChainEnd.of(table.properties) if table else ChainEnd()
            if table is None or not end.length:
                return None
            path = f"{chain_folder(table)}{end.head_file}"
            try:
                return Head.of(self.files.read_bytes(path))
            except (FileNotFoundError, ValueError) as error:
                raise LogCorrupt(f"the head of the chain of receipts, {path}, can't be read: {error}") from None

    def listed(self) -> ReceiptFiles:
        """The files of the chain as it is now.

        Raises:
            LogCorrupt: the catalog has lost the chain, or its table contradicts itself.
            StorageUnavailable: there is no chain, and the catalog has lost all topics, or is another than is meant.
        """
        table = self._table_or_none_ever()
        if table is None:
            return ReceiptFiles(self.files, "")
        listed = ReceiptFiles(self.files, chain_folder(table))
        listed.look(ChainEnd.of(table.properties))
        return listed

    def _table_or_none_ever(self) -> Table | None:
        """The table; receipts without one are not told as none."""
        table = self.table()
        lost = earlier_chains(self.paths_without_table()) if table is None else {}
        if lost:
            raise LogCorrupt("; ".join(lost))
        if table is None and (error := self.why_not_believed()):
            raise error
        return table


def _damage_of(listed: ReceiptFiles, numbers: Iterable[int]) -> list[str]:
    problems: list[str] = []
    for number in numbers:
        try:
            listed.receipt(number)
        except LogCorrupt as error:
            problems.append(str(error))
    return problems
