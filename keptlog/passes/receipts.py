"""What is done with the receipts of a home: they are listed, shown, verified and handed to others.

Sealing them is the business of whoever deletes (``keptlog.table.chain.receipt_chain``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt
from keptlog.log.given.given import any_text
from keptlog.receipts.chain import HEAD_FILE, ChainVerification, Finding, Flaw, name_of, told_numbers, verify_chain
from keptlog.receipts.folder import require_receipts_alone
from keptlog.receipts.key_files import public_keys
from keptlog.receipts.receipt import Head
from keptlog.table.chain.receipt_verification import newest_put_back, verify_receipts
from keptlog.table.chain.sealed_receipts import SealedReceipts
from keptlog.table.removal.journal import id_of
from keptlog.table.waiting.reaching import reaching
from keptlog.whole_file import replace_file

if TYPE_CHECKING:
    from keptlog.receipts.receipt import Receipt
    from keptlog.receipts.signing import PublicKey


Chain = TypeVar("Chain", bound=SealedReceipts)
_OF_THIS_HOME = "this home has the public key of who signs"
_AT_A_GLANCE = 50
"""How many receipts are read by who does not read all: a home gets one from each purge."""


@dataclass(frozen=True, slots=True)
class Glance:
    """What a look at the end of a chain has found, a sentence each."""

    flaws: tuple[str, ...]
    put_back: tuple[str, ...]
    """What had landed and the catalog does not know: in a copy of a home that is what the original has sealed since."""
    unknown_keys: tuple[str, ...]
    """What is signed with keys that are not here, where others are: no damage if several homes share the catalog."""


@dataclass(frozen=True)
class Receipts(Generic[Chain]):
    """The receipts of a home. All of it raises StorageUnavailable if catalog or storage can't be reached."""

    chain: Chain
    trusted: Callable[[], Iterable[PublicKey]]
    """The public keys that are trusted where none is named."""

    def list(self, topic: str | None = None, *, request: str | None = None) -> Iterator[Receipt]:
        """All receipts from the first on, or those of one topic, also of one that is deleted.

        ``request`` is the id of an erasure: those that prove it, or tell that it ended with its topic.

        Raises:
            StorageUnavailable: the folder can't be listed.
            LogCorrupt: at the end, if some can't be read; says which. Beside some that are meant, one of others is told
                only if it is no receipt at all; before none is, each has to be written as receipts are. ``verify``
                finds whatever was changed.
        """

        def is_meant(receipt: Receipt) -> bool:
            is_of_topic = topic is None or topic in receipt.topics
            return is_of_topic and (request is None or receipt.is_of_request(request))

        yield from self.chain.receipts(is_meant)

    def show(self, name: str) -> Receipt:
        """The receipt of an id, or else of a number, or else of an erasure by its request's id.

        A request whose id is a receipt's number too is found by ``list``: who gives a number waits for no other.

        Raises:
            InvalidConfig: there is none, or the erasure has several.
            LogCorrupt: it can't be read, or is not what its key has signed. Or others can't be read, which may be of
                the erasure too; ``shown`` has it then.
        """
        [receipt] = self.shown(name)
        return receipt

    def shown(self, name: str) -> Iterator[Receipt]:
        """The same for who has a use for it although others can't be read: that is raised behind it."""
        receipt = self.chain.find(any_text(name, "the id or number of a receipt"))
        if receipt:
            yield self._as_signed(receipt)
        else:
            yield from self._of_request(name)

    def _of_request(self, request: str) -> Iterator[Receipt]:
        found: list[Receipt] = []
        more = ""
        try:
            found += self.list(request=request)  # those before an error stay
        except LogCorrupt as error:
            if not found:
                raise  # what can't be read may be the one that is asked for
            more = f"there may be more of request {request!r}: {error}"
        if not found:
            raise InvalidConfig(f"there is no receipt {request!r}: see keptlog receipt list")
        if len(found) > 1:
            named = ", ".join(f"{each.sequence} of {', '.join(each.topics)}" for each in found)
            told = f"{len(found)} receipts are of request {request!r}: {named}: show one by its number"
            raise InvalidConfig(f"{told}; {more}" if more else told)
        yield self._as_signed(found[0])
        if more:
            raise LogCorrupt(more)

    def _as_signed(self, receipt: Receipt) -> Receipt:
        keys = self._keys_of(receipt)
        if keys and not any(key.has_signed(receipt.signed_bytes, receipt.signature) for key in keys):
            raise LogCorrupt(
                f"receipt {receipt.sequence} is not what key {receipt.key_id} has signed: it was changed; put its file "
                "back from a copy of the storage (keptlog receipt verify names it, and all else that is wrong)"
            )
        return receipt

    def is_checked(self, receipt: Receipt) -> bool:
        """Whether ``show`` has compared a receipt with its signature: it can't where no such key is trusted."""
        return bool(self._keys_of(receipt))

    def _keys_of(self, receipt: Receipt) -> Sequence[PublicKey]:
        try:
            return [key for key in self.trusted() if key.key_id == receipt.key_id]
        except KeptlogError:
            return []

    def verify(self, keys: Iterable[Path | str] = ()) -> ChainVerification:
        """Check the whole chain against its signatures, and against what the catalog says of it.

        ``keys`` are files of the public keys that are trusted; by default those in the home, ``receipts*.pub``.

        Raises:
            InvalidConfig: a file of a public key is damaged, or a named one is not there.
            StorageUnavailable: this user may not read one, or list the home.
        """
        named = [Path(key) for key in keys]
        trusted = list(public_keys(named) if named else self.trusted())
        found = verify_receipts(self.chain, trusted)
        if found.is_sound:
            whose = "a public key of who signs was named" if named else _OF_THIS_HOME
            return replace(found, findings=tuple(self._lost_chain(trusted, whose)))
        return found

    def at_a_glance(self) -> Glance:
        """What is wrong with the chain as far as catalog, head, a listing and the newest receipts tell.

        Raises:
            LogCorrupt: the catalog has lost the chain, or its table or head can't be read.
            InvalidConfig: a public key is damaged.
            StorageUnavailable: this user may not read one, or list the home.
        """
        trusted = list(self.trusted())
        head = self.chain.head()
        with reaching("receipts can't be listed"):
            listed = self.chain.listed()
        missing = [f"no file of {told_numbers(listed.missing)} is in {listed.folder}"] if listed.missing else []
        newest = range(max(1, listed.end.length - _AT_A_GLANCE + 1), listed.end.length + 1)
        ends = [(f"{listed.folder}{listed.end.head_file}", head.to_bytes())] if head else []
        with reaching("receipts can't be read"):
            found = verify_chain(
                chain(ends, (each for number in newest for each in listed.contents(number))), trusted, is_part=True
            )
            put_back = newest_put_back(self.chain, listed, trusted, _AT_A_GLANCE)
        wrong = [each for each in found.findings if each.flaw is not Flaw.UNKNOWN_KEY]
        unknown = [each.text for each in found.findings if each.flaw is Flaw.UNKNOWN_KEY] if trusted else []
        flaws = (*missing, *(each.text for each in [*wrong, *self._lost_chain(trusted)]))
        return Glance(flaws, tuple(each.text for each in put_back), tuple(unknown))

    def sealed_among(self, drafts: Sequence[str]) -> set[str]:
        """Of drafts those that are sealed, and could not be deleted then; none if the chain is damaged."""
        try:
            with reaching("receipts can't be listed"):
                listed = self.chain.listed() if drafts else None
        except LogCorrupt:
            return set()  # who looks at the chain tells what is wrong with it
        return {path for path in drafts if listed and listed.number_of(id_of(path)) is not None}

    def _lost_chain(self, trusted: Sequence[PublicKey], whose: str = _OF_THIS_HOME) -> Sequence[Finding]:
        """That there is no chain where something was signed: a home leaves its public key then, and has one by then.

        So somebody has signed as well where a key was named.
        """
        with reaching("receipts can't be verified"):
            table = self.chain.table()
        if table is not None:
            return []
        ids = ", ".join(key.key_id for key in trusted)
        text = (
            f"the catalog has no chain of receipts, and {whose} (key {ids}): if "
            "anything was sealed, the chain was dropped or the catalog put back, and whether receipts are missing "
            "can't be told"
        )
        return [Finding(Flaw.NO_END, text)] if ids else []

    def export(self, folder: Path | str) -> int:
        """Copy all receipts, and the head, into a folder, for whoever verifies them elsewhere; gives their number.

        A folder with an earlier export of the same chain gets what came since.

        Raises:
            InvalidConfig: the folder has another receipt of the same name, or a head that this chain has lost;
                nothing of that is overwritten. Or it has JSON that is no receipt, which a verification of the folder
                would call a damaged one.
            StorageUnavailable: the folder can't be listed.
            LogCorrupt: at the end, if some can't be read; says which.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        head = self.chain.head()
        if head is None:
            return 0
        require_receipts_alone(folder)
        there = _head_in(folder)
        if there and there.sequence > head.sequence:
            raise _lost(folder, there)
        count = 0
        try:
            for receipt in self.chain.receipts():
                if there and receipt.sequence == there.sequence and receipt.sha256 != there.sha256:
                    raise _lost(folder, there)
                if receipt.sequence <= head.sequence:  # others may seal meanwhile
                    _put(folder / name_of(receipt), receipt.to_bytes())
                    count += 1
        except LogCorrupt:
            replace_file(folder / HEAD_FILE, head.to_bytes())
            raise
        replace_file(folder / HEAD_FILE, head.to_bytes())
        return count


def _put(path: Path, content: bytes) -> None:
    if not path.exists():
        replace_file(path, content)
    elif path.read_bytes() != content:
        raise InvalidConfig(
            f"{path} is there, and is not what this home's chain has: export into another folder, and keep that one"
        )


def _head_in(folder: Path) -> Head | None:
    """The head of an earlier export; null if there is none, or none that can be read, which is written anew."""
    try:
        return Head.of((folder / HEAD_FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _lost(folder: Path, there: Head) -> InvalidConfig:
    return InvalidConfig(
        f"{folder / HEAD_FILE} tells of receipt {there.sequence}, which this home's chain has lost or has another one "
        "for: its catalog was put back. Export into another folder, and keep that one: it alone shows what is missing"
    )
