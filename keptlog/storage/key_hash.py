"""Keys by their keyed hashes: whoever holds a hash can recognise the key, and nobody can tell the key from it.

A hash is HMAC-SHA-256 of the key's bytes under a secret. Without the secret no list of likely keys can be tried.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field

_BLOCK_BYTES = 64
_INNER, _OUTER = 0x36, 0x5C
_FINGERPRINT_DIGITS = 16


@dataclass(frozen=True)
class KeyHasher:
    """Hashes keys under one secret. It pickles, and its text shows nothing of the secret."""

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Tells one secret from another, and nothing else of it."""
        return hmac.digest(self.secret, b"keptlog fingerprint", "sha256").hex()[:_FINGERPRINT_DIGITS]

    def hash(self, key: bytes) -> bytes:
        """The hash of a key, 32 bytes."""
        return hmac.digest(self.secret, key, "sha256")

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
