"""Verifies the chain of a home: its files as anybody would, and besides them what the catalog says of it.

    files    1 <- 2 <- 3 <- 4 <- head: 4        whole, as ``receipts/chain.py`` finds
    table    chain.length 4                     the same: nothing was cut off, and nothing put back
    table    chain.length 2                     3 and 4 had landed: the catalog was put back to an older state

A receipt that had landed is told from what a killed writer has left by the one behind it: who builds on a receipt has
seen it in the table. So what a kill leaves is no finding, and a catalog that was put back is, but for its last commit.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from keptlog.errors import LogCorrupt
from keptlog.receipts.chain import ChainVerification, Finding, Flaw, told_numbers, verify_chain
from keptlog.receipts.receipt import Head, Receipt
from keptlog.receipts.signing import PublicKey
from keptlog.table.chain.receipt_files import ReceiptFiles, ReceiptName, all_folders, chain_folder, earlier_chains
from keptlog.table.chain.sealed_receipts import SealedReceipts
from keptlog.table.io.files import TableFiles
from keptlog.table.waiting.reaching import reaching


def verify_receipts(chain: SealedReceipts, keys: Iterable[PublicKey]) -> ChainVerification:
    """Check all receipts of a home; ``keys`` are those whose signatures are taken for true.

    Raises:
        StorageUnavailable: catalog or storage can't be reached.
    """
    with reaching("receipts can't be verified"):
        table = chain.table()
        if table is None:
            none = verify_chain((), keys, is_part=True)
            return replace(none, findings=tuple(_of_other_tables(chain.paths_without_table())))
        try:
            listed = chain.listed()
        except LogCorrupt as error:
            return ChainVerification(0, None, None, (), (Finding(Flaw.OTHER_END, str(error)),))
        folder = chain_folder(table)
        trusted = list(keys)
        head = list(_contents(chain.files, [f"{listed.folder}{listed.end.head_file}"] if listed.end.length else []))
        # Where nothing has landed yet, there is no head to be missed.
        found = verify_chain(itertools.chain(head, listed.all_contents()), trusted, is_part=not listed.end.length)
        paths = [file.path for file in chain.files.list(all_folders(table.location()))]
        findings = [*found.findings, *_other_end(listed, head, found)]
        findings += _of_other_tables(path for path in paths if not path.startswith(folder))
        if _is_end(chain, listed):  # otherwise others have sealed receipts meanwhile
            own = listed.own_paths()
            left = [path for path in paths if path.startswith(folder) and path not in own]
            findings += _put_back(listed, _contents(chain.files, left), trusted)
    return replace(found, findings=tuple(findings))


def newest_put_back(
    chain: SealedReceipts, listed: ReceiptFiles, keys: Sequence[PublicKey], count: int
) -> list[Finding]:
    """Of receipts that had landed, those around the end that the catalog names: ``count`` before and behind it."""
    if not listed.folder:  # nothing was ever sealed
        return []
    first = max(1, listed.end.length - count + 1)
    stored = listed.stored(first, listed.end.length + count)
    left = sorted(set(stored) - listed.own_paths(first))
    # Otherwise others have sealed receipts meanwhile.
    return list(_put_back(listed, _contents(chain.files, left), keys)) if left and _is_end(chain, listed) else []


def _is_end(chain: SealedReceipts, listed: ReceiptFiles) -> bool:
    return chain.listed().end == listed.end


def _contents(files: TableFiles, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Paths with what is in them; a file that is gone is found to be missing."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield path, files.read_bytes(path)


def _other_end(listed: ReceiptFiles, head: Sequence[tuple[str, bytes]], found: ChainVerification) -> Iterator[Finding]:
    """Where the table says that the chain ends, beside where its head and its files do."""
    end = listed.end
    if not head:
        if (found.last or 0) < end.length:
            text = f"the table says that the chain ends with receipt {end.length}, and here it ends with {found.last}"
            yield Finding(Flaw.OTHER_END, text, sequences=(end.length,))
        return
    ((path, content),) = head
    with contextlib.suppress(ValueError):  # it is damaged, as was found already
        signed = Head.of(content)
        if (signed.sequence, signed.sha256) != (end.length, end.sha256):
            text = (
                f"the signed head {path} ends with receipt {signed.sequence} ({signed.sha256}), and the table says "
                f"{end.length} ({end.sha256}): somebody has changed the table"
            )
            yield Finding(Flaw.OTHER_END, text, (path,), (signed.sequence, end.length))


def _of_other_tables(paths: Iterable[str]) -> Iterator[Finding]:
    """Receipts of a table that was here before."""
    for text, found in earlier_chains(paths).items():
        yield Finding(Flaw.PUT_BACK, text, tuple(found))


def _put_back(listed: ReceiptFiles, left: Iterable[tuple[str, bytes]], keys: Sequence[PublicKey]) -> Iterator[Finding]:
    """Receipts that are not the chain's, and once were: another attempt has built on them."""
    by_id = {key.key_id: key for key in keys}
    receipts: list[tuple[str, str, Receipt]] = []
    for path, content in left:
        name = ReceiptName.of(path)
        with contextlib.suppress(ValueError):
            receipt = Receipt.of(content)
            key = by_id.get(receipt.key_id)
            if name and key and key.has_signed(receipt.signed_bytes, receipt.signature):
                receipts.append((path, name.attempt, receipt))
    built_on: dict[str | None, set[str]] = defaultdict(set)
    written_by: dict[str, set[str]] = defaultdict(set)  # several may have sealed the same drafts, to the byte
    for _, attempt, receipt in receipts:
        built_on[receipt.previous_sha256].add(attempt)
        written_by[receipt.sha256].add(attempt)
    landed = [
        (path, receipt)
        for path, _, receipt in receipts
        if built_on[receipt.sha256] - written_by[receipt.sha256] and not _is_of_chain(listed, receipt)
    ]
    if landed:
        numbers = sorted({receipt.sequence for _, receipt in landed})
        text = (
            f"{told_numbers(numbers)} had landed, and the catalog does not know that: it was put back to an older "
            f"state; their files are still there, such as {landed[0][0]}"
        )
        yield Finding(Flaw.PUT_BACK, text, tuple(path for path, _ in landed), tuple(numbers))


def _is_of_chain(listed: ReceiptFiles, receipt: Receipt) -> bool:
    """Whether the chain has it, to the byte: several writers may seal the same draft, one of them after the listing."""
    with contextlib.suppress(LogCorrupt):
        return listed.receipt(receipt.sequence).sha256 == receipt.sha256
    return False
