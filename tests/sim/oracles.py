"""What must hold besides the logs' content: of the files, of receipts, of what was acknowledged.

at each deletion       no table refers to the file
at each receipt        its files are gone, and no other file holds a value that only they had
after each action      every file that a table refers to is there
at the end             everything else, with nothing going wrong any more (``the_end``)
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from tests.sim.book import Book, decoded
from tests.sim.chain import is_draft, told_files
from tests.sim.faults import Known
from tests.sim.ledger import Ledger
from tests.sim.storage import WatchedStorage, Watcher
from tests.sim.world import World


@dataclass
class FileOracle(Watcher):
    """Watches every file that comes and goes."""

    world: World
    storage: WatchedStorage
    ledger: Ledger

    @override
    def deleting(self, path: str) -> None:
        for topic in self.ledger.current:
            if path in self.ledger.referenced(topic):
                self.world.fail(f"{path} is deleted, and topic {topic} refers to it")
        self._require_old(path)

    def _require_old(self, path: str) -> None:
        """What was never live is swept only once it is older than the grace: its run may be under way."""
        actor, file = self.world.current, self.storage.disk.files.get(path)
        was_live = path in self.ledger.ever_referenced
        if actor is None or file is None or was_live or "/data/" not in path or not actor.name.startswith("purge"):
            return
        if not any(path.startswith(f"{self.ledger.books[each].location}/") for each in self.ledger.current.values()):
            return  # it finishes the deletion of a topic
        age_ms, pace = self.world.now_ms - self.storage.begun_at_ms(path), self.world.pace
        if age_ms < pace.orphan_grace_ms - pace.most_skew_ms:
            self.world.fail(f"{path} is swept, and is {age_ms} ms old")

    @override
    def written(self, path: str) -> None:
        for book in self.ledger.books.values():
            if path not in book.ever_live:
                # A deletion that is begun anew writes the same journal again: the receipt was true of the one before.
                book.receipts.pop(path, None)
        if is_draft(path):
            self._judge_receipt(json.loads(self.storage.disk.files[path].content))

    def _judge_receipt(self, receipt: dict[str, object]) -> None:
        content = receipt["content"]
        assert isinstance(content, dict)
        book, paths = self.ledger.books[content["table_uuid"]], told_files(content)
        stored = self.storage.disk.files
        for path in paths:
            book.receipts[path] = None
            if path in stored:
                self.world.fail(f"a receipt says that {path} is gone, and it is there")
        if Known.STAGED_HOLDERS not in self.world.known and not book.is_gone:
            named = {str(file["path"]) for what in ("held_files", "not_deleted") for file in content[what]}
            self._require_gone(book, paths, named)

    def _require_gone(self, book: Book, paths: list[str], named: set[str]) -> None:
        """Values that no live or retained segment has any more are in no file that the receipt does not name."""
        referenced = self.ledger.referenced(book.name)
        kept = {value for path in referenced for value in book.values.get(path, ())}
        gone = {value for path in paths for value in book.values.get(path, ())} - kept
        for path, file in self.storage.disk.below(book.location):
            if path not in referenced and path not in named and path.endswith(".parquet"):
                held = sorted(gone & values_in(file.content))
                if held:
                    self.world.fail(f"a receipt is issued, and {path} still holds {held[:3]}")

    def after_power_loss(self, changed: list[str]) -> None:
        """What a receipt says is gone did not come back."""
        if Known.UNSYNCED_DELETE in self.world.known:
            return
        receipts = {path for book in self.ledger.books.values() for path in book.receipts}
        for path in changed:
            if path in receipts and path in self.storage.disk.files:
                self.world.fail(f"{path} is there again after a power loss, and a receipt says that it is gone")

    def require_complete(self) -> None:
        """Every file that a table refers to is there."""
        stored = self.storage.disk.files
        for topic, identity in self.ledger.current.items():
            book = self.ledger.books[identity]
            for path in sorted(self.ledger.referenced(topic)):
                if path not in stored and path not in book.damaged:
                    self.world.fail(f"topic {topic} refers to {path}, which is not there")

    def require_receipts(self) -> None:
        """Every segment that was live and is deleted has a receipt."""
        stored = self.storage.disk.files
        for book in self.ledger.books.values():
            for path in book.ever_live:
                if path not in stored and path not in book.receipts and path not in book.damaged:
                    self.world.fail(f"{path} of topic {book.name} was deleted without a receipt")

    def require_no_leftovers(self) -> None:
        """Nothing is stored that nobody needs, but receipts."""
        for topic, identity in self.ledger.current.items():
            location = self.ledger.books[identity].location
            for path, _ in self.storage.disk.below(location):
                if path not in self.ledger.referenced(topic) and "/metadata/" not in path:
                    self.world.fail(f"{path} of topic {topic} is never swept")


def values_in(content: bytes) -> set[bytes]:
    """The values of a segment; what can't be read has none."""
    try:
        return {record.value for record in decoded(content) if record.value}
    except (pa.ArrowInvalid, OSError):
        return set()
