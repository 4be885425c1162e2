"""Keys by their keyed hashes: whoever holds a hash can recognise the key, and nobody can tell the key from it.

A hash is HMAC-SHA-256 of the key's bytes under a secret. Without the secret no list of likely keys can be tried.
A hash alone does not tell which secret made it, so one that is handed on has the secret's fingerprint before it:
a hash of another secret would find nothing, and look as if nothing were there.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_BLOCK_BYTES = 64
_INNER, _OUTER = 0x36, 0x5C
_FINGERPRINT_DIGITS = 16
_TOLD = re.compile(rf"([0-9a-f]{{{_FINGERPRINT_DIGITS}}}):([0-9a-f]{{64}})", re.IGNORECASE)

TOLD_FORM = (
    "16 hex digits, a colon, 64 hex digits, as `keptlog erase --hash` and `keptlog erasure show` print them; where the "
    "first 16 are lacking, put secret_fingerprint before it, if it is of a receipt, and else make it anew"
)
"""What a hash looks like that is handed on."""


@dataclass(frozen=True, slots=True)
class ToldHash:
    """The hash of a key as somebody hands it on, with the fingerprint of the secret that made it."""

    fingerprint: str
    key_hash: bytes

    def __str__(self) -> str:
        return f"{self.fingerprint}:{self.key_hash.hex()}"


def told_hash(text: str) -> ToldHash:
    """What a text says that is of ``TOLD_FORM``.

    Raises:
        ValueError: it is not; perhaps it is a key, so nothing of it is told.
    """
    parts = _TOLD.fullmatch(text)
    if not parts:
        raise ValueError("no keyed hash")
    return ToldHash(parts[1].lower(), bytes.fromhex(parts[2]))


@dataclass(frozen=True)
class KeyHasher:
    """Hashes keys under one secret. It pickles, and its text shows nothing of the secret."""

    secret: bytes = field(repr=False)
    is_kept: bool = True
    """False: it was made just now, to serve once. No hash that somebody has was made with it."""

    @property
    def fingerprint(self) -> str:
        """Tells one secret from another, and nothing else of it."""
        return hmac.digest(self.secret, b"keptlog fingerprint", "sha256").hex()[:_FINGERPRINT_DIGITS]

    def hash(self, key: bytes) -> bytes:
        """The hash of a key, 32 bytes."""
        return hmac.digest(self.secret, key, "sha256")

    def told(self, key: bytes) -> ToldHash:
        """The hash of a key, to be handed on."""
        return ToldHash(self.fingerprint, self.hash(key))

    def hashes(self, keys: Iterable[bytes]) -> list[bytes]:
        """The hashes of many keys, in their order, in less than half the time."""
        # OpenSSL looks its HMAC up anew at each call. The two states that only depend on the secret are made once here.
        secret = self.secret if len(self.secret) <= _BLOCK_BYTES else hashlib.sha256(self.secret).digest()
        padded = secret.ljust(_BLOCK_BYTES, b"\0")
        inner = hashlib.sha256(bytes(byte ^ _INNER for byte in padded)).copy
        outer = hashlib.sha256(bytes(byte ^ _OUTER for byte in padded)).copy
        found = []
        for key in keys:
            within, around = inner(), outer()
            within.update(key)
            around.update(within.digest())
            found.append(around.digest())
        return found
