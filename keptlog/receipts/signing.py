"""Signatures: Ed25519, small and without choices. The same key gives the same bytes the same signature.

A key is named by its id, the first 16 hex digits of the SHA-256 of its public half. A receipt says the id only: who
checks it brings the public key along, from where he trusts it to come. One that lies beside receipts proves nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

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
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(bytes.fromhex(signature), content)
        except (InvalidSignature, ValueError):
            return False
        return True

    def to_pem(self) -> bytes:
        """The text that is handed to others."""
        key = Ed25519PublicKey.from_public_bytes(self.raw)
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @classmethod
    def of_pem(cls, pem: bytes) -> PublicKey:
        """Read such a text.

        Raises:
            ValueError: it is none, or of another kind of key.
        """
        try:
            key = load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("it is no public key in PEM") from None
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError("it is no key of Ed25519")  # noqa: TRY004  # of a file, not of a caller
        return cls(key.public_bytes_raw())


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Signs. Whoever has its 32 bytes can sign in our name, so nothing shows them."""

    raw: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> SigningKey:
        """A new key, from the system's dice."""
        return cls(Ed25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> PublicKey:
        return PublicKey(self._key.public_key().public_bytes_raw())

    def sign(self, content: bytes) -> str:
        """The signature, as 128 hex digits."""
        return self._key.sign(content).hex()

    def to_pem(self) -> bytes:
        """The text that lies in its file, without a password."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @classmethod
    def of_pem(cls, pem: bytes) -> SigningKey:
        """Read such a text.

        Raises:
            ValueError: it is none, of another kind of key, or has a password.
        """
        try:
            key = load_pem_private_key(pem, password=None)
        except TypeError:
            raise ValueError("it has a password, and keptlog asks for none") from None
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("it is no private key in PEM") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError("it is no key of Ed25519")  # noqa: TRY004  # of a file, not of a caller
        return cls(key.private_bytes_raw())

    @property
    def _key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.raw)
