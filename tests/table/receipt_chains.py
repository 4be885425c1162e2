"""Chains of receipts in real homes, for the tests."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog import Catalog

from keptlog.receipts.chain import ChainVerification
from keptlog.receipts.receipt import Draft
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.chain.receipt_chain import ReceiptChain
from keptlog.table.chain.receipt_verification import verify_receipts
from keptlog.table.chain.sealed_receipts import SealedReceipts
from keptlog.table.commits.commit import Committer
from keptlog.table.io.files import TableFiles
from tests.receipts.chains import KEY, VERSION
from tests.table.stores import new_id


def chain_over(catalog: Catalog) -> ReceiptChain:
    """A chain that does not really wait between attempts."""
    files = TableFiles(tuple(sorted(catalog.properties.items())))
    return ReceiptChain(Committer(catalog, lambda _: None, files), lambda: KEY, new_id, VERSION)


def chain_at(home: Path) -> ReceiptChain:
    return chain_over(open_catalog(home))


def draft(name: object) -> Draft:
    return Draft(f"draft-{name}", "purge", 1_700_000_000_000, {"topic": "users", "deleted_files": [str(name)]})


def ids(chain: SealedReceipts) -> list[str]:
    return [receipt.id for receipt in chain.receipts()]


def check(chain: SealedReceipts) -> ChainVerification:
    return verify_receipts(chain, [KEY.public])


def require_sound(chain: ReceiptChain) -> None:
    found = check(chain)
    assert found.is_sound, [each.text for each in found.findings]


def stored(chain: ReceiptChain) -> list[Path]:
    """The files of receipts in storage, of the chain or not."""
    table = chain.table()
    assert table
    folder = Path(table.location().removeprefix("file://")) / "receipts"
    return sorted(path for path in folder.rglob("*.json") if path.parent.name != "heads")
