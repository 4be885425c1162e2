"""A receipt: what was done, when and by whom, and which receipt stands before it.

    draft      id, kind, at_ms, content                      what there is to say
    receipt    the same, and its number in the chain,        sealed: nobody can change it, take one out
               the hash of the one before, a signature       or put one in without being found out

A receipt is a file of JSON that people can read. The same receipt always has the same bytes: names sorted, one space
for each level, ASCII, whole numbers only, a line end behind it. What is written in any other way is no receipt, so each
byte of it counts. The signature covers all of them, but for itself.

    {
     "at_ms": 1700000000000,
     "content": {…},                what this kind of receipt tells
     "format": "keptlog receipt 1",
     "id": "5f2c…",                 of the draft: who seals it again finds the receipt, and seals nothing twice
     "keptlog_version": "0.1.0",
     "key_id": "0badcafe01234567",  whose signature it is
     "kind": "purge",
     "previous_sha256": "9d1e…",    of the bytes of receipt 16; null for the first
     "sequence": 17,                counted from 1
     "signature": "…"               Ed25519, as hex
    }
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from typing_extensions import override

from keptlog.foreign_json import json_value
from keptlog.log.run_id import valid_run_id

RECEIPT_FORMAT = "keptlog receipt 1"
HEAD_FORMAT = "keptlog receipt head 1"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEY_ID = re.compile(r"[0-9a-f]{16}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_KIND = re.compile(r"[a-z][a-z-]{0,40}")
_LONGEST_SHOWN = 100
_DEEPEST = 50
"""Levels of a content, far more than any has: how many Python reads depends on how deep in calls it is asked."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a receipt is to say, before it is sealed.

    ``id`` is that of what was done (letters, digits, ``.``, ``_`` and ``-``): of all drafts with one id, one is ever
    sealed. ``kind`` is one word, ``purge``, or several with hyphens. ``content`` is JSON without fractions.

    Raises:
        InvalidConfig: the id is not possible.
        ValueError, TypeError: kind or content can't be written.
    """

    id: str
    kind: str
    at_ms: int
    content: Mapping[str, Any] = field(hash=False)

    def __post_init__(self) -> None:
        valid_run_id(self.id)
        if not _KIND.fullmatch(self.kind):
            raise ValueError(f"receipt {self.id}: kind {self.kind!r} is not in small letters and hyphens")
        _require_plain(self.content, f"receipt {self.id}: content")


class _Signed:
    """What has a signature over all of its fields but for the signature itself."""

    __slots__ = ()
    _what: ClassVar[str]
    signature: str

    @property
    def signed_bytes(self) -> bytes:
        """What the signature covers."""
        return canonical(self._fields())

    def to_bytes(self) -> bytes:
        """The content of its file."""
        return canonical(self._fields() | {"signature": self.signature})

    def require_written_as(self, content: bytes) -> None:
        """Refuse a file that says the same in other bytes.

        Raises:
            ValueError: it does.
        """
        try:
            is_same = self.to_bytes() == content
        except RecursionError:
            is_same = False  # from 3.12 on Python reads JSON that is nested more deeply than it writes
        if not is_same:
            raise ValueError(f"it is not written as keptlog writes a {self._what}")

    def _fields(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Receipt(_Signed):
    """A sealed draft. Without a signature it is about to be."""

    _what = "receipt"
    sequence: int
    """Its number in the chain, from 1."""
    id: str
    kind: str
    at_ms: int
    previous_sha256: str | None
    """Of the file of the receipt before it; null for the first."""
    key_id: str
    keptlog_version: str
    """Of the program that sealed it."""
    content: Mapping[str, Any] = field(hash=False)
    signature: str = ""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that it is about; none if what it says of them is neither a name nor a list."""
        topics = self.content.get("topics", self.content.get("topic"))
        named = topics if isinstance(topics, list | tuple) else ()
        return (topics,) if isinstance(topics, str) else tuple(map(str, named))

    @property
    def request(self) -> str | None:
        """Of an erasure: the id of its request, which the receipt's own id need not have in it."""
        request = self.content.get("request")
        return request if isinstance(request, str) else None

    def is_of_request(self, request: str) -> bool:
        """Whether it proves an erasure, or is of the deletion of a topic with which that erasure ended."""
        ended = self.content.get("erasures")
        named = ended if isinstance(ended, list) else []
        return request == self.request or any(isinstance(e, Mapping) and e.get("request") == request for e in named)

    @property
    def sha256(self) -> str:
        """Of its file; the next receipt names it."""
        return sha256_of(self.to_bytes())

    @override
    def _fields(self) -> dict[str, Any]:
        return {
            "format": RECEIPT_FORMAT,
            "sequence": self.sequence,
            "id": self.id,
            "kind": self.kind,
            "at_ms": self.at_ms,
            "previous_sha256": self.previous_sha256,
            "key_id": self.key_id,
            "keptlog_version": self.keptlog_version,
            "content": self.content,
        }

    @classmethod
    def of(cls, content: bytes) -> Receipt:
        """Read a file; whether the signature is true is another question.

        Raises:
            ValueError: it is no receipt, byte for byte; says why.
        """
        receipt = cls.at_first_sight(content)
        receipt.require_written_as(content)
        return receipt

    @classmethod
    def at_first_sight(cls, content: bytes) -> Receipt:
        """The same for who asks first what it is about: ``require_written_as`` takes several times as long as this.

        Raises:
            ValueError: it is no receipt, however it is written; says why.
        """
        stored = _parsed(content, cls._what, RECEIPT_FORMAT, _OF_RECEIPT)
        return cls(**{name: value for name, value in stored.items() if name != "format"})


@dataclass(frozen=True, slots=True)
class Head(_Signed):
    """How far a chain goes, signed: without it nobody can tell whether receipts are missing at its end."""

    _what = "head of a chain"
    sequence: int
    """The number of the newest receipt."""
    sha256: str
    """Of its file."""
    at_ms: int
    """When what it tells was done."""
    key_id: str
    signature: str = ""

    @override
    def _fields(self) -> dict[str, Any]:
        return {
            "format": HEAD_FORMAT,
            "sequence": self.sequence,
            "sha256": self.sha256,
            "at_ms": self.at_ms,
            "key_id": self.key_id,
        }

    @classmethod
    def of(cls, content: bytes) -> Head:
        """Read a file; whether the signature is true is another question.

        Raises:
            ValueError: it is no head, byte for byte; says why.
        """
        stored = _parsed(content, cls._what, HEAD_FORMAT, _OF_HEAD)
        head = cls(**{name: value for name, value in stored.items() if name != "format"})
        head.require_written_as(content)
        return head


def canonical(value: Mapping[str, Any]) -> bytes:
    """JSON in the one way in which receipts are written."""
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n").encode("ascii")


def sha256_of(content: bytes) -> str:
    """The hash by which receipts name each other, as hex."""
    return hashlib.sha256(content).hexdigest()


def _require_plain(value: Any, where: str, levels: int = _DEEPEST) -> None:
    """Refuse what is not JSON that can be written in one way only, and read again by everybody.

    Raises:
        TypeError: it can be written in several ways, or in none.
        ValueError: it is nested too deeply.
    """
    if not levels:
        raise ValueError(f"{where[:_LONGEST_SHOWN]} is nested too deeply")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise TypeError(f"{where} has a name that is not text: {name!r}")
            _require_plain(inner, f"{where}.{name}", levels - 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _require_plain(inner, where, levels - 1)
    elif not (value is None or isinstance(value, bool | int | str)):
        raise TypeError(f"{where} is {value!r}: use text, whole numbers, true, false, null, lists and objects")


def _is_time(value: Any) -> bool:
    return type(value) is int


def _is_number(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_text(form: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and form.fullmatch(value) is not None


def _is_hash_or_null(value: Any) -> bool:
    return value is None or _is_text(_SHA256)(value)


_OF_HEAD: dict[str, Callable[[Any], bool]] = {
    "sequence": _is_number,
    "sha256": _is_text(_SHA256),
    "at_ms": _is_time,
    "key_id": _is_text(_KEY_ID),
    "signature": _is_text(_SIGNATURE),
}
_OF_RECEIPT: dict[str, Callable[[Any], bool]] = {
    "sequence": _is_number,
    "id": _is_text(re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")),
    "kind": _is_text(_KIND),
    "at_ms": _is_time,
    "previous_sha256": _is_hash_or_null,
    "key_id": _is_text(_KEY_ID),
    "keptlog_version": lambda value: isinstance(value, str),
    "content": lambda value: isinstance(value, dict),
    "signature": _is_text(_SIGNATURE),
}


def _parsed(content: bytes, what: str, form: str, fields: Mapping[str, Callable[[Any], bool]]) -> dict[str, Any]:
    try:
        stored = json_value(content.decode("ascii"), _refuse_number)
    except ValueError as error:
        raise ValueError(f"it is not JSON as keptlog writes it ({error})") from None
    if not isinstance(stored, dict) or not str(stored.get("format", "")).startswith("keptlog receipt"):
        raise ValueError(f"it is no {what}")
    if stored["format"] != form:
        raise ValueError(f"it is a {stored['format']!r}, and this keptlog reads {form!r}")
    if set(stored) != {"format", *fields}:
        raise ValueError(f"its fields are not those of a {what}")
    for name, is_possible in fields.items():
        if not is_possible(stored[name]):
            raise ValueError(f"its {name} is {str(stored[name])[:40]!r}")
    return stored


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a whole number")
