"""What must hold of the chain of receipts, commit by commit and file by file.

    draft      written below its topic                no file in it is in another receipt
    sealed     a commit of the chain's table          it names the hash of the one before, is signed, and is there once
    deleted    the draft                              only once it is sealed, with every file that it tells
    later                                             no sealed receipt changes, goes, or is lost with the power

At the end, when nothing goes wrong any more, no draft waits, and the whole chain is verified as anybody would.

The complication: two purges of one topic at once may each tell of the same file, in a receipt of their own. Both are
true; whether that is so is known from who wrote journal and draft of each, and whether any two of them have met.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.table import Table
from typing_extensions import override

from keptlog.receipts.receipt import Receipt
from keptlog.receipts.signing import SigningKey
from keptlog.table.chain.receipt_chain import ReceiptChain
from keptlog.table.chain.receipt_files import ChainEnd, ReceiptName, chain_folder
from keptlog.table.chain.receipt_verification import verify_receipts
from keptlog.table.namespaces import RECEIPTS
from keptlog.table.removal.journal import id_of
from tests.sim.catalog import Landed
from tests.sim.storage import WatchedStorage, Watcher
from tests.sim.world import Actor, World

KEY = SigningKey(bytes(range(32)))
"""Of every world: signatures are the same in each process."""


@dataclass
class ChainOracle(Landed, Watcher):
    """Watches drafts, sealed receipts and the table of the chain."""

    world: World
    storage: WatchedStorage
    sealed: dict[str, Receipt] = field(default_factory=dict)
    """By id."""
    told: dict[str, str] = field(default_factory=dict)
    """File that is gone to the id of the receipt that says so, draft or sealed."""
    namespace: str = RECEIPTS
    _told_alone: dict[str, None] = field(default_factory=dict)
    """Those of them that have a receipt of their own."""
    _writers: dict[str, list[Actor]] = field(default_factory=dict)
    """Who wrote the journal or the draft of an id."""
    _end: ChainEnd = field(default_factory=ChainEnd)
    _sealed_files: dict[str, None] = field(default_factory=dict)
    """What sealed receipts say is gone."""
    _contents: dict[str, bytes] = field(default_factory=dict)
    """Of the files of sealed receipts, by path."""
    _needed: set[str] = field(default_factory=set)
    """Files without which the chain's table can't be read now."""

    @override
    def committed(self, name: str, before: Table | None, after: Table) -> None:
        end = ChainEnd.of(after.properties)
        if end != self._end:
            self._seal(chain_folder(after), end)
        elif before and before.metadata.current_snapshot_id != after.metadata.current_snapshot_id:
            self.world.fail("a commit to the chain seals nothing")
        head = {chain_folder(after) + end.head_file} if end.head_file else set()
        lists = {snapshot.manifest_list for snapshot in after.metadata.snapshots}
        self._needed = head | lists | {after.metadata_location}
        stored = self.storage.disk.files
        for path in sorted(self._needed):
            if path not in stored:
                self.world.fail(f"the chain of receipts needs {path}, which is not there")

    def _seal(self, folder: str, end: ChainEnd) -> None:
        """What one commit adds to the chain: the files of its attempt, which is that of the head."""
        attempt = (end.head_file or "").partition("~")[2]
        named = [(path, ReceiptName.of(path)) for path, _ in self.storage.disk.below(folder)]
        paths = {name.sequence: path for path, name in named if name and f"{name.attempt}.json" == attempt}
        if end.length <= self._end.length:
            self.world.fail(f"the chain ends with receipt {end.length}, and ended with {self._end.length} before")
        sha256 = self._end.sha256
        for number in range(self._end.length + 1, end.length + 1):
            if number not in paths:
                self.world.fail(f"receipt {number} is sealed, and its file is not there")
            content = self._contents[paths[number]] = self.storage.disk.files[paths[number]].content
            receipt = Receipt.of(content)
            if not KEY.public.has_signed(receipt.signed_bytes, receipt.signature):
                self.world.fail(f"receipt {number} has no true signature")
            if (receipt.sequence, receipt.previous_sha256) != (number, sha256):
                self.world.fail(f"receipt {number} does not follow the one before")
            if receipt.id in self.sealed:
                self.world.fail(f"receipt {receipt.id} is sealed twice: {self.sealed[receipt.id].sequence}, {number}")
            self.sealed[receipt.id] = receipt
            self._sealed_files |= dict.fromkeys(told_files(receipt.content))
            sha256 = receipt.sha256
        if sha256 != end.sha256:
            self.world.fail(f"the chain does not end with receipt {end.length}, as its table says")
        self._end = end

    @override
    def written(self, path: str) -> None:
        """A draft tells of no file that another receipt tells of."""
        draft = self._draft(path)
        if self.world.current and (draft or "/metadata/gc/" in path):
            self._writers.setdefault(id_of(path), []).append(self.world.current)
        if draft is None:
            return
        self._told_alone |= dict.fromkeys(told_files(draft["content"], alone=True))
        for gone in told_files(draft["content"]):
            other = self.told.setdefault(gone, draft["id"])
            if other != draft["id"] and not self._have_met(other, draft["id"]):
                self.world.fail(f"{gone} is in two receipts, {other} and {draft['id']}")

    def _have_met(self, one_id: str, other_id: str) -> bool:
        return any(one.meets(other) for one in self._writers[one_id] for other in self._writers[other_id])

    @override
    def deleting(self, path: str) -> None:
        if path in self._contents or path in self._needed:
            self.world.fail(f"{path} is deleted, and belongs to the chain of receipts")
        draft = self._draft(path)
        if draft is None:
            return
        if draft["id"] not in self.sealed:
            self.world.fail(f"draft {draft['id']} is deleted, and was never sealed")
        # What somebody else could not delete is told by the receipt of another journal, which is still to come.
        journals = self.storage.disk.below(f"{path.partition('/metadata/receipts/')[0]}/metadata/gc")
        coming = b"".join(file.content for _, file in journals)
        gone = [each for each in told_files(draft["content"], alone=True) if each not in self._sealed_files]
        untold = [each for each in gone if each.encode() not in coming]
        if untold:
            self.world.fail(f"draft {draft['id']} is deleted, and no sealed receipt tells of {untold[:3]}")

    def _draft(self, path: str) -> dict[str, Any] | None:
        """The draft of a path; null for any other file, and for half a draft."""
        if not is_draft(path):
            return None
        file = self.storage.disk.files.get(path)
        try:
            found: dict[str, Any] = json.loads(file.content) if file else {}
        except ValueError:
            return None
        return found or None

    def after_power_loss(self) -> None:
        """What was sealed is there, byte for byte."""
        files = self.storage.disk.files
        for path, content in self._contents.items():
            if path not in files or files[path].content != content:
                self.world.fail(f"sealed receipt {path} is lost, or another one, after a power loss")

    def require_sealed(self, chain: ReceiptChain, locations: list[str]) -> None:
        """No draft waits below these locations, and the chain is whole."""
        for location in locations:
            waiting = [path for path, _ in self.storage.disk.below(location) if is_draft(path)]
            if waiting:
                self.world.fail(f"draft {waiting[0]} is never sealed")
        with self.world.quiet():
            found = verify_receipts(chain, [KEY.public])
        if not found.is_sound or found.receipts != len(self.sealed):
            self.world.fail(f"the chain has {found.receipts} of {len(self.sealed)} receipts: {found.findings[:3]}")
        for path, name in self.told.items():
            if path in self._told_alone and path not in self._sealed_files:
                self.world.fail(f"{path} was told as gone in draft {name}, and is in no sealed receipt")


def is_draft(path: str) -> bool:
    """Whether this is where a draft lies."""
    folder, _, name = path.rpartition("/")
    return folder.endswith("/metadata/receipts") and name.endswith(".json")


def told_files(content: Any, *, alone: bool = False) -> list[str]:
    """The files that a receipt says are gone; ``alone``: those that have a receipt although no segment went with them.

    Metadata of expired snapshots has none by itself.
    """
    files = content.get("files", ())
    return [str(each["path"]) for each in files if not alone or each["why"] != "retired" or "/data/" in each["path"]]
