"""Keys in texts that people write: an id, a reason, a message. Such a text is stored or shown, and a key is not to be.

A key that is given as it is counts where it stands as a word, and if it is long enough within one too. Of one that is
given by its hash only words can be tried. A key in another form, say the customer's name, nobody can recognise.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterable, Iterator

from keptlog.storage.key_hash import KeyHasher

_LONG = 4
"""Characters from which on a key is no chance within a word."""
_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 12
_BY_CHANCE = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
"""A UUID: part of it is nobody's key."""
_HEX = re.compile(r"([0-9a-f]{2})+", re.IGNORECASE)


def quotes(text: str, keys: Iterable[bytes]) -> bool:
    """Whether one of the keys stands anywhere in a text, in any form that a message may show it in."""
    return any(form in text for key in keys for form in (*_forms(key), repr(key)[2:-1]) if form)


def names_key(text: str, keys: Iterable[bytes]) -> bool:
    """Whether a text that somebody has written has one of the keys in it."""
    if _BY_CHANCE.fullmatch(text):
        return not _as_a_whole(text).isdisjoint(keys)
    return any(_stands_in(text, form) for key in keys for form in _forms(key) if form)


def names_hashed_key(text: str, key_hashes: Collection[bytes], hasher: KeyHasher) -> bool:
    """Whether some words of a text are a key of which only the hash is known."""
    if not key_hashes:
        return False
    pieces = _as_a_whole(text) if _BY_CHANCE.fullmatch(text) else set(_pieces(text))
    return not set(key_hashes).isdisjoint(hasher.hashes(pieces))


def _forms(key: bytes) -> tuple[str, ...]:
    return key.decode(errors="replace"), key.hex(), key.hex().upper(), base64.b64encode(key).decode()


def _stands_in(text: str, form: str) -> bool:
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if len(form) >= _LONG or not (text[:at][-1:].isalnum() or text[end : end + 1].isalnum()):
            return True
        at = text.find(form, at + 1)
    return False


def _as_a_whole(uuid: str) -> set[bytes]:
    digits = uuid.replace("-", "")
    return {uuid.encode(), digits.encode(), bytes.fromhex(digits)}


def _pieces(text: str) -> Iterator[bytes]:
    """Neighbouring words with what stands between them, also what they are as hex."""
    words = list(_WORD.finditer(text))
    for first, word in enumerate(words):
        for last in words[first : first + _MOST_WORDS]:
            piece = text[word.start() : last.end()]
            yield piece.encode()
            if _HEX.fullmatch(piece):
                yield bytes.fromhex(piece)
