"""Signatures: Ed25519, small and without choices. The same key gives the same bytes the same signature.

A key is named by its id, the first 16 hex digits of the SHA-256 of its public half. A receipt says the id only: who
checks it brings the public key along, from where he trusts it to come. One that lies beside receipts proves nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

_KEY_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Tells whether a key has signed something."""

    raw: bytes

    @property
    def key_id(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()[:_KEY_ID_DIGITS]

    def has_signed(self, content: bytes, signature: str) -> bool:
        """Whether a signature, as hex, is of this key and of this content."""
        from keptlog.receipts import ed25519

        return ed25519.has_signed(self.raw, content, signature)

    def to_pem(self) -> bytes:
        """The text that is handed to others."""
        from keptlog.receipts import ed25519

        return ed25519.public_to_pem(self.raw)

    @classmethod
    def of_pem(cls, pem: bytes) -> PublicKey:
        """Read such a text.

        Raises:
            ValueError: it is none, or of another kind of key.
        """
        from keptlog.receipts import ed25519

        return cls(ed25519.public_from_pem(pem))


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Signs. Whoever has its 32 bytes can sign in our name, so nothing shows them."""

    raw: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key, from the system's dice."""
        from keptlog.receipts import ed25519

        return cls(ed25519.new_private())

    @property
    def public(self) -> PublicKey:
        from keptlog.receipts import ed25519

        return PublicKey(ed25519.public_of(self.raw))

    def sign(self, content: bytes) -> str:
        """The signature, as 128 hex digits."""
        from keptlog.receipts import ed25519

        return ed25519.signature_of(self.raw, content).hex()

    def to_pem(self) -> bytes:
        """The text that lies in its file, without a password."""
        from keptlog.receipts import ed25519

        return ed25519.private_to_pem(self.raw)

    @classmethod
    def of_pem(cls, pem: bytes) -> SigningKey:
        """Read such a text.

        Raises:
            ValueError: it is none, of another kind of key, or has a password.
        """
        from keptlog.receipts import ed25519

        return cls(ed25519.private_from_pem(pem))
