"""Where the receipts of a chain lie, and which of the files there are the chain's.

    <location>/receipts/<table uuid>/000000000/000000000017-<id>~<attempt>.json    receipt 17; a thousand in a folder
    <location>/receipts/<table uuid>/heads/000000000017~<attempt>.json             the head of a chain that ends there

The table says how many receipts the chain has, and the hash of the newest. What is behind that number is of writers who
are at work, or were killed before their commit. A table that is made anew has a folder of its own: it never takes
receipts of an earlier one for its own.

The complication: a writer that was killed leaves files, and the next one seals receipts of the same numbers. Then two
files have one number, and which of them is the chain's is told by the receipt behind it, which names its hash, or for
the newest by the table. An attempt never writes to the name of another, so nobody ever writes over a sealed receipt.
What killed writers left is not deleted: if the catalog was put back to an older state, it may have been sealed once.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from keptlog.errors import LogCorrupt
from keptlog.log.words.counted import counted
from keptlog.receipts.receipt import Receipt, sha256_of
from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles, local_path

if TYPE_CHECKING:
    from pyiceberg.table import Table

LENGTH, HEAD_SHA256, HEAD_FILE = "chain.length", "chain.head", "chain.head-file"
"""Properties of the chain's table."""
_Read = TypeVar("_Read", bound=Receipt | None)
_IN_A_FOLDER = 1000
_NAME = re.compile(r"(\d{12})-([A-Za-z0-9._-]+)~([^~/]+)\.json")
_HEAD_NAME = re.compile(r"(\d{12})~[^~/]+\.json")


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """How far a chain goes, as its table says."""

    length: int = 0
    sha256: str | None = None
    """Of the newest receipt's file."""
    head_file: str | None = None
    """The name of its signed head, below the chain's folder."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ChainEnd:
        """Read the properties of the chain's table.

        Raises:
            LogCorrupt: they are not what was written.
        """
        length = properties.get(LENGTH, "0")
        sha256 = properties.get(HEAD_SHA256)
        if not length.isdecimal() or (length != "0") != bool(sha256):
            raise LogCorrupt(
                f"the chain of receipts: property {LENGTH}={length!r} with {HEAD_SHA256}={sha256!r} is no end of a "
                "chain; set them back to the values in the table's metadata file before that change"
            )
        return cls(int(length), sha256, properties.get(HEAD_FILE))


def all_folders(location: str) -> str:
    """Where the files of all chains at a location lie; ends with a slash."""
    return f"{location}/receipts/"


def chain_folder(table: Table) -> str:
    """Where the files of a table's chain lie; ends with a slash."""
    return f"{all_folders(table.location())}{table.metadata.table_uuid}/"


def receipt_path(folder: str, receipt: Receipt, attempt: str) -> str:
    """Where a receipt is written."""
    return f"{folder}{_part(receipt.sequence)}/{receipt.sequence:012d}-{receipt.id}~{attempt}.json"


def head_name(sequence: int, attempt: str) -> str:
    """The name of a head, below the chain's folder."""
    return f"heads/{sequence:012d}~{attempt}.json"


def head_sequence(path: str) -> int | None:
    """The number of the receipt that a head is of; null for any other file."""
    form = _HEAD_NAME.fullmatch(path.rpartition("/")[2])
    return int(form[1]) if form else None


def _part(sequence: int) -> str:
    return f"{sequence // _IN_A_FOLDER:09d}"


@dataclass(frozen=True, slots=True)
class ReceiptName:
    """What the name of a receipt's file says."""

    sequence: int
    id: str
    attempt: str

    @classmethod
    def of(cls, path: str) -> ReceiptName | None:
        """Null for any other file."""
        form = _NAME.fullmatch(path.rpartition("/")[2])
        return cls(int(form[1]), form[2], form[3]) if form else None


def earlier_chains(paths: Iterable[str]) -> dict[str, list[str]]:
    """What is to be told of receipts that the catalog no longer knows: a sentence for each chain, with its files."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        if ReceiptName.of(path):
            by_folder[path.rsplit("/", 2)[0]].append(path)
    return {
        f"{folder} has {counted(len(found), 'receipt')} of an earlier chain, which the catalog no longer knows: "
        f"keptlog receipt verify {shlex.quote(local_path(folder) or folder)} checks them; keep them elsewhere": found
        for folder, found in sorted(by_folder.items())
    }


@dataclass
class ReceiptFiles:
    """The files of one chain, as far as they were listed. Receipts never change, so each folder is listed but once."""

    files: TableFiles
    folder: str
    end: ChainEnd = field(default_factory=ChainEnd)
    """The chain up to which it was looked."""
    _by_number: dict[int, list[str]] = field(default_factory=dict)
    _numbers: dict[str, list[int]] = field(default_factory=dict)
    """By id."""
    _settled: set[int] = field(default_factory=set)
    """Numbers of which there were several files, and it is known by now which are the chain's."""

    def went_on_to(self, end: ChainEnd) -> bool:
        """Look up to there, and tell whether the chain goes on from here to it; if not, it was put back: list it anew.

        One that was put back may be longer by now. Then the receipt behind the end of here names another hash.

        If the storage does not answer, nothing has changed here, and the next call asks for that hash again.
        """
        known = self.end
        if known == end or known.length >= end.length:
            return known == end
        before = known, self._by_number.copy(), self._numbers.copy(), self._settled.copy()
        goes_on = False
        try:
            self.look(end)
            goes_on = not known.length or self._previous_sha256(known.length + 1) == known.sha256
        finally:
            if not goes_on:
                self.end, self._by_number, self._numbers, self._settled = before
        return goes_on

    def look(self, end: ChainEnd) -> None:
        """Take in what the chain has got since the last look; ``end`` is not before that."""
        first = self.end.length + 1
        for part in range(first // _IN_A_FOLDER, end.length // _IN_A_FOLDER + 1):
            for file in self.files.list(f"{self.folder}{part:09d}"):
                self._add(file, first, end.length)
        self.end = end

    def _add(self, file: StoredFile, first: int, last: int) -> None:
        name = ReceiptName.of(file.path)
        if name and first <= name.sequence <= last and file.path not in self._by_number.get(name.sequence, ()):
            # New lists: what is put back after a look in vain has those that were there.
            self._by_number[name.sequence] = [*self._by_number.get(name.sequence, ()), file.path]
            self._numbers[name.id] = [*self._numbers.get(name.id, ()), name.sequence]

    @property
    def missing(self) -> list[int]:
        """Numbers of receipts of which no file is there."""
        return [number for number in range(1, self.end.length + 1) if number not in self._by_number]

    def number_of(self, receipt_id: str) -> int | None:
        """The number of the receipt of an id; null if the chain has none."""
        for number in self._numbers.get(receipt_id, ()):
            name = ReceiptName.of(self._candidates(number)[0])
            if name and name.id == receipt_id:
                return number
        return None

    def newest(self, beginning: str) -> int | None:
        """The number of the newest receipt whose id is that and a time; null if there is none."""
        meant = (each for each in self._numbers if each.startswith(beginning))
        numbers = (self.number_of(each) for each in meant if each.removeprefix(beginning).isdecimal())
        return max((number for number in numbers if number is not None), default=None)

    def receipt(self, number: int) -> Receipt:
        """The receipt of a number; whether its signature is true is another question.

        Raises:
            LogCorrupt: its file is damaged or gone.
        """
        return self._read(number, Receipt.of)

    def receipt_if(self, number: int, is_meant: Callable[[Receipt], bool]) -> Receipt | None:
        """The same, or null if it is none of those that are meant: that is seen sooner.

        Raises:
            LogCorrupt: its file is damaged or gone. Of one that names its topics, and is not meant, not each byte is
                compared.
        """

        def read(content: bytes) -> Receipt | None:
            receipt = Receipt.at_first_sight(content)
            is_wanted = is_meant(receipt)
            if is_wanted or not receipt.topics:  # keptlog writes none that names no topic
                receipt.require_written_as(content)
            return receipt if is_wanted else None

        return self._read(number, read)

    def _read(self, number: int, reading: Callable[[bytes], _Read]) -> _Read:
        why = f"no file of receipt {number} is in {self.folder}"
        for path, content in self.contents(number):
            try:
                return reading(content)
            except ValueError as error:
                why = f"the file of receipt {number}, {path}, is damaged: {error}"
        raise LogCorrupt(why)

    def contents(self, number: int) -> Iterator[tuple[str, bytes]]:
        """The file of a receipt, with its content: none if it is gone, all if nobody can tell which one it is."""
        for path in self._candidates(number):
            with contextlib.suppress(FileNotFoundError):
                yield path, self.files.read_bytes(path)
                if number in self._settled:
                    return

    def all_contents(self) -> Iterator[tuple[str, bytes]]:
        """The files of all receipts in their order, with their contents."""
        for number in range(1, self.end.length + 1):
            yield from self.contents(number)

    def own_paths(self, first: int = 1) -> set[str]:
        """All files that may be the chain's, from a number on."""
        return {path for number in range(first, self.end.length + 1) for path in self._candidates(number)}

    def stored(self, first: int, last: int) -> list[str]:
        """All files of receipts of some numbers, the chain's or not, also beyond its end."""
        parts = range(first // _IN_A_FOLDER, last // _IN_A_FOLDER + 1)
        paths = [file.path for part in parts for file in self.files.list(f"{self.folder}{part:09d}")]
        return [path for path in paths if (name := ReceiptName.of(path)) and first <= name.sequence <= last]

    def _candidates(self, number: int) -> list[str]:
        """The files that may be the receipt of a number; all with the same content once it is settled which it is."""
        above = number
        while len(self._by_number.get(above, ())) > 1 and above not in self._settled:
            above += 1
        for each in range(above - 1, number - 1, -1):
            wanted = self.end.sha256 if each == self.end.length else self._previous_sha256(each + 1)
            found = [path for path in self._by_number[each] if wanted and self._sha256(path) == wanted]
            if not found:
                break
            self._by_number[each] = found
            self._settled.add(each)
        return self._by_number.get(number, [])

    def _previous_sha256(self, number: int) -> str | None:
        with contextlib.suppress(LogCorrupt):
            return self.receipt(number).previous_sha256
        return None

    def _sha256(self, path: str) -> str | None:
        try:
            return sha256_of(self.files.read_bytes(path))
        except FileNotFoundError:
            return None
