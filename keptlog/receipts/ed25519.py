"""Ed25519 as cryptography has it: keys are their 32 bytes, or a text in PEM.

Whoever only reads receipts checks no signature, and does without this import.
"""

from __future__ import annotations

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


def has_signed(public: bytes, content: bytes, signature: str) -> bool:
    """Whether a signature, as hex, is of this key and of this content."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(bytes.fromhex(signature), content)
    except (InvalidSignature, ValueError):
        return False
    return True


def signature_of(private: bytes, content: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(private).sign(content)


def new_private() -> bytes:
    """A new key, from the system's dice."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_of(private: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def public_to_pem(public: bytes) -> bytes:
    return Ed25519PublicKey.from_public_bytes(public).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_to_pem(private: bytes) -> bytes:
    """Without a password."""
    key = Ed25519PrivateKey.from_private_bytes(private)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_from_pem(pem: bytes) -> bytes:
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
    return key.public_bytes_raw()


def private_from_pem(pem: bytes) -> bytes:
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
    return key.private_bytes_raw()
