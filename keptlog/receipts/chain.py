"""Whether some files are a whole chain of receipts, all as they were signed. Needs the files and the public keys only.

    receipt 1 <- receipt 2 <- receipt 3 <- head: 3        each names the hash of the one before, and signs that too

    a byte was changed        its file is damaged, or its signature is not true
    one is missing            its number is; at the end the head tells
    two are swapped           each is in a file of the other's name
    one was signed anew       its key is not known; or the next one names another hash, or the head does
    two chains are mixed      a number is there twice, or a receipt does not follow the one before

What the signatures can't tell: a whole chain that was cut off, with an older head beside it. Whoever keeps a newer head
than that, an export of before for one, sees it.

A file says nothing of where it lies, so files may be renamed, given twice, and come from several folders. Only a name
of keptlog's own form, ``000000000017-<id>.json``, is compared with what is in it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

from keptlog.receipts.coverage import NOT_COVERED
from keptlog.receipts.receipt import HEAD_FORMAT, Draft, Head, Receipt, sha256_of
from keptlog.receipts.signing import PublicKey, SigningKey

HEAD_FILE = "head.json"
_NAME = re.compile(r"(\d{12})-([A-Za-z0-9._-]+)(~[^~/]*)?\.json")
_RANGES_SHOWN = 20


class Flaw(StrEnum):
    """What is wrong with a chain."""

    DAMAGED = "damaged"
    MISSING = "missing"
    SWAPPED = "swapped"
    TWICE = "twice"
    NOT_LINKED = "not linked"
    UNKNOWN_KEY = "unknown key"
    OTHER_END = "other end"
    NO_END = "no end"
    PUT_BACK = "put back"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, in a sentence."""

    flaw: Flaw
    text: str
    files: tuple[str, ...] = ()
    sequences: tuple[int, ...] = ()
    """Numbers of receipts: single ones; first and last of each range that is missing; or the head's and the newest."""


@dataclass(frozen=True, slots=True)
class ChainVerification:
    """What was found of a chain."""

    receipts: int
    """How many different ones were whole and truly signed."""
    first: int | None
    last: int | None
    """The smallest and the largest of their numbers."""
    key_ids: tuple[str, ...]
    """Whose signatures these were."""
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def name_of(receipt: Receipt) -> str:
    """The name of a receipt's file."""
    return f"{receipt.sequence:012d}-{receipt.id}.json"


def sealed(draft: Draft, sequence: int, previous_sha256: str | None, key: SigningKey, version: str) -> Receipt:
    """A draft as the receipt of a number. It says what it does not cover, whoever wrote the draft."""
    receipt = Receipt(
        sequence=sequence,
        id=draft.id,
        kind=draft.kind,
        at_ms=draft.at_ms,
        previous_sha256=previous_sha256,
        key_id=key.public.key_id,
        keptlog_version=version,
        content={"not_covered": list(NOT_COVERED)} | dict(draft.content),
    )
    signed = replace(receipt, signature=key.sign(receipt.signed_bytes))
    read = Receipt.of(signed.to_bytes())
    # Many drafts may share a long list, such as that of all files of a topic: it is not copied for each.
    return signed if signed == read else read


def signed_head(newest: Receipt, key: SigningKey) -> Head:
    """The head of a chain that ends with a receipt."""
    head = Head(newest.sequence, newest.sha256, newest.at_ms, key.public.key_id)
    return replace(head, signature=key.sign(head.signed_bytes))


def verify_chain(
    files: Iterable[tuple[str, bytes]], keys: Iterable[PublicKey], *, is_part: bool = False
) -> ChainVerification:
    """Check the files of a chain, its head among them; memory is that of their names.

    ``files`` are names and contents, in any order. ``is_part`` says that they are only some of the chain's: what is
    missing between them and behind them is no finding then.
    """
    check = _Check({key.key_id: key for key in keys})
    for name, content in files:
        check.look(name, content)
    return check.ended(is_part=is_part)


@dataclass(frozen=True, slots=True)
class _Link:
    """What is kept of a receipt once its file was looked at."""

    name: str
    sha256: str
    previous_sha256: str | None


@dataclass
class _Check:
    """What was seen so far."""

    keys: Mapping[str, PublicKey]
    links: dict[int, list[_Link]] = field(default_factory=dict)
    """By number; of different content where there are several."""
    heads: list[tuple[str, Head]] = field(default_factory=list)
    damaged: set[int] = field(default_factory=set)
    """Numbers that the names of damaged files say."""
    unknown: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Key id to the receipts that it has signed, with their files; 0 for a head."""
    signers: set[str] = field(default_factory=set)
    true: set[int] = field(default_factory=set)
    """Numbers with a true signature."""
    findings: list[Finding] = field(default_factory=list)

    def look(self, name: str, content: bytes) -> None:
        try:
            if f'"format": "{HEAD_FORMAT}"'.encode() in content:
                self._look_at_head(name, Head.of(content))
            else:
                self._look_at_receipt(name, Receipt.of(content), sha256_of(content))
        except ValueError as error:
            self._found_damaged(name, f"file {name} is damaged, or is no receipt: {error}")

    def _look_at_receipt(self, name: str, receipt: Receipt, sha256: str) -> None:
        form = _NAME.fullmatch(_last_part(name))
        if not self._is_true(name, receipt.sequence, receipt):
            return
        if form and (int(form[1]), form[2]) != (receipt.sequence, receipt.id):
            text = f"file {name} holds receipt {receipt.sequence} ({receipt.id}): it was swapped or renamed"
            self.findings.append(Finding(Flaw.SWAPPED, text, (name,), (receipt.sequence,)))
        links = self.links.setdefault(receipt.sequence, [])
        if all(link.sha256 != sha256 for link in links):
            links.append(_Link(name, sha256, receipt.previous_sha256))

    def _look_at_head(self, name: str, head: Head) -> None:
        if self._is_true(name, 0, head) and head.key_id in self.keys:
            self.heads.append((name, head))

    def _is_true(self, name: str, sequence: int, signed: Receipt | Head) -> bool:
        """Whether a signature may be true: it is, or its key is not known."""
        key = self.keys.get(signed.key_id)
        if key is None:
            self.unknown.setdefault(signed.key_id, []).append((sequence, name))
            return True
        if key.has_signed(signed.signed_bytes, signed.signature):
            self.signers.add(signed.key_id)
            self.true.update([sequence] if sequence else [])
            return True
        what = f"receipt {sequence}" if sequence else "the head"
        self._found_damaged(name, f"file {name}, {what}, is not what key {signed.key_id} has signed: it was changed")
        return False

    def _found_damaged(self, name: str, text: str) -> None:
        form = _NAME.fullmatch(_last_part(name))
        numbers = (int(form[1]),) if form else ()
        self.damaged.update(numbers)
        self.findings.append(Finding(Flaw.DAMAGED, text, (name,), numbers))

    def ended(self, *, is_part: bool) -> ChainVerification:
        self.findings += self._of_unknown_keys()
        self.findings += self._twice()
        self.findings += self._not_linked()
        self.findings += self._other_ends()
        if not is_part:
            self.findings += self._missing()
            self.findings += self._without_end()
        numbers = sorted(self.true)
        return ChainVerification(
            receipts=len(numbers),
            first=numbers[0] if numbers else None,
            last=numbers[-1] if numbers else None,
            key_ids=tuple(sorted(self.signers)),
            findings=tuple(self.findings),
        )

    def _of_unknown_keys(self) -> Iterator[Finding]:
        for key_id, signed in sorted(self.unknown.items()):
            numbers = sorted({number for number, _ in signed if number})
            what = [told_numbers(numbers)] if numbers else []
            what += ["the head"] if any(not number for number, _ in signed) else []
            verb = "are" if len(what) > 1 or len(numbers) > 1 else "is"
            text = (
                f"{' and '.join(what)} {verb} signed with key {key_id}, which is not known: if it is to be trusted, "
                "name its public key with --public-key"
            )
            yield Finding(Flaw.UNKNOWN_KEY, text, tuple(name for _, name in signed), tuple(numbers))

    def _twice(self) -> Iterator[Finding]:
        for number, links in sorted(self.links.items()):
            if len(links) > 1:
                names = tuple(link.name for link in links)
                text = f"receipt {number} is there more than once, each time another: {', '.join(names)}"
                yield Finding(Flaw.TWICE, f"{text}; two chains are mixed, or one was signed anew", names, (number,))

    def _not_linked(self) -> Iterator[Finding]:
        for number, links in sorted(self.links.items()):
            before = {link.sha256 for link in self.links.get(number - 1, ())}
            for link in links:
                if number == 1 and link.previous_sha256 is not None:
                    text = f"receipt 1 (file {link.name}) names one before it: it is of no chain that begins here"
                elif number > 1 and link.previous_sha256 is None:
                    text = f"receipt {number} (file {link.name}) names none before it"
                elif before and link.previous_sha256 not in before:
                    text = (
                        f"receipt {number} (file {link.name}) does not follow the receipt {number - 1} that is here: "
                        "one of them is of another chain, or was signed anew"
                    )
                else:
                    continue
                yield Finding(Flaw.NOT_LINKED, text, (link.name,), (number,))

    def _other_ends(self) -> Iterator[Finding]:
        for name, head in self.heads:
            links = self.links.get(head.sequence, [])
            if links and all(link.sha256 != head.sha256 for link in links):
                text = (
                    f"the head (file {name}) ends with another receipt {head.sequence} than {links[0].name}: "
                    "that was signed anew, or is of another chain"
                )
                yield Finding(Flaw.OTHER_END, text, (name, links[0].name), (head.sequence,))

    def _missing(self) -> Iterator[Finding]:
        present = self.damaged.union(self.links)
        end = max([*present, *(head.sequence for _, head in self.heads)], default=0)
        gaps = [(low + 1, high - 1) for low, high in pairwise([0, *sorted(present), end + 1]) if high - low > 1]
        if gaps:
            ranges = [number for gap in gaps for number in gap]
            count = sum(last - first + 1 for first, last in gaps)
            verb = "is" if count == 1 else "are"
            yield Finding(Flaw.MISSING, f"{_of_ranges(gaps)} {verb} missing", sequences=tuple(ranges))

    def _without_end(self) -> Iterator[Finding]:
        last = max(self.links, default=0)
        end = max((head.sequence for _, head in self.heads), default=None)
        if end is None:
            is_unknown = any(not number for signed in self.unknown.values() for number, _ in signed)
            why = "the key of the head is not known" if is_unknown else f"no signed head ({HEAD_FILE}) is here"
            yield Finding(Flaw.NO_END, f"{why}: whether receipts are missing at the end can't be told")
        elif last > end:
            text = (
                f"the head ends with receipt {end} and is older than {_of_ranges([(end + 1, last)])}: "
                "whether receipts are missing at the end can't be told"
            )
            yield Finding(Flaw.NO_END, text, sequences=(end, last))


def is_of_a_chain(name: str, content: bytes) -> bool:
    """Whether a file is what a chain has: by its name, however damaged it is, or by what is in it."""
    if _NAME.fullmatch(_last_part(name)):
        return True
    for form in (Receipt, Head):
        with contextlib.suppress(ValueError):
            form.of(content)
            return True
    return False


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def told_numbers(numbers: Sequence[int]) -> str:
    """``receipts 1 to 3, 7``."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return _of_ranges(ranges)


def _of_ranges(ranges: Sequence[tuple[int, int]]) -> str:
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:_RANGES_SHOWN]]
    more = len(ranges) - _RANGES_SHOWN
    is_one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"receipt{'' if is_one else 's'} {', '.join(texts)}" + (f" and {more} more places" if more > 0 else "")
