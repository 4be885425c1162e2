"""Chains of receipts for the tests, as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keptlog.receipts.chain import HEAD_FILE, ChainVerification, name_of, sealed, signed_head, verify_chain
from keptlog.receipts.receipt import Draft, Receipt
from keptlog.receipts.signing import SigningKey

KEY = SigningKey(bytes(range(32)))
OTHER_KEY = SigningKey(bytes(32))
VERSION = "0.1.0"
LENGTH = 20


def draft(number: int, home: str = "a") -> Draft:
    return Draft(f"{home}-{number}", "purge", 1_700_000_000_000 + number, {"topic": "users", "deleted_files": [number]})


def receipts(count: int = LENGTH, key: SigningKey = KEY, home: str = "a") -> list[Receipt]:
    found: list[Receipt] = []
    for number in range(1, count + 1):
        found.append(sealed(draft(number, home), number, found[-1].sha256 if found else None, key, VERSION))
    return found


def files_of(chain: Iterable[Receipt], key: SigningKey = KEY, *, with_head: bool = True) -> dict[str, bytes]:
    """Name to content, as an export has them."""
    chain = list(chain)
    files = {name_of(each): each.to_bytes() for each in chain}
    return files | ({HEAD_FILE: signed_head(chain[-1], key).to_bytes()} if with_head else {})


def verified(files: Mapping[str, bytes], *keys: SigningKey, is_part: bool = False) -> ChainVerification:
    return verify_chain(files.items(), [key.public for key in keys or (KEY,)], is_part=is_part)
