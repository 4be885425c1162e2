"""Keys by their keyed hashes."""

from __future__ import annotations

import hmac
import pickle

import pytest

from keptlog.storage.key_hash import KeyHasher


@pytest.mark.parametrize("secret", [b"", b"s", b"s" * 32, b"s" * 64, b"s" * 65, b"s" * 200])
def test_many_keys_have_the_hashes_that_hmac_gives_each_of_them(secret: bytes) -> None:
    keys = [b"", b"a", b"k" * 55, b"k" * 64, b"k" * 1000, bytes(range(256))]
    expected = [hmac.digest(secret, key, "sha256") for key in keys]
    hasher = KeyHasher(secret)
    assert hasher.hashes(keys) == expected
    assert [hasher.hash(key) for key in keys] == expected


def test_a_hasher_travels_and_its_text_shows_nothing_of_its_secret() -> None:
    hasher = KeyHasher(b"most secret")
    assert "secret" not in repr(hasher)
    assert pickle.loads(pickle.dumps(hasher)).hash(b"k") == hasher.hash(b"k")  # noqa: S301  # made here


def test_secrets_are_told_apart_by_their_fingerprints() -> None:
    assert KeyHasher(b"a").fingerprint == KeyHasher(b"a").fingerprint != KeyHasher(b"b").fingerprint
