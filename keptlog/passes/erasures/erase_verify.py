"""The last step of an erasure: every file of its topic is looked through, and none has a record that was to go.

    list --> look through --> list again: is there a file that was not looked through? --> receipt --> verified
                  ^                                      | yes                                ^
                  +--------------------------------------+--> look through: whole, and clear -+

Where somebody always writes, each listing has new files. So the last one need not be without any: what is new in it is
looked through, and that is all if each was there, and is whole, and nothing in it may count. A file that was gone may
have been copied, or have got another name; one that still grows may get more. Then it is listed again.

A record counts if it lies below the bound of its key. Where a file tells no offsets, any trace of the key counts, and
so it does in a file that the table does not refer to: what a run staged that died was never in the log, and its offsets
were given again. A file that can't be looked through proves nothing: it keeps the erasure open, and is named. So does
one that was gone when it was opened, and that the last listing has all the same. What a bucket keeps of files beside
what it lists is looked through like files.

A topic may be deleted meanwhile, and created again under its name: that is another topic, with requests of its own. So
the requests are read again at first, and it is the same table that is looked at each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from keptlog.engine.search_tasks import KeySearch
from keptlog.errors import StalePlan
from keptlog.log.erasures.erasure import ErasureState, dated_by, reached
from keptlog.log.search import FileFindings, FileKind, SearchedFile
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.erasures.erasure_receipt import erasure_drafts
from keptlog.passes.erasures.erasure_request import ErasureProof, ErasureRow
from keptlog.passes.erasures.left_files import LeftFiles
from keptlog.storage.erasure_secret import require_secret
from keptlog.storage.object_version import VERSION_IN_PATH
from keptlog.table.io.remote_files import S3
from keptlog.table.removal.drafts import why_not_sealed
from keptlog.table.removal.erasure_look import read_register, snapshot_ids, while_same
from keptlog.table.removal.journal import journal_folder, receipt_folder
from keptlog.table.removal.search import bounds_of, searched_files, searched_versions
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.storage.key_hash import KeyHasher
    from keptlog.storage.object_version import OpenUpload
    from keptlog.table.removal.erasure_look import LoadTable
    from keptlog.table.store import LogStore

_ROUNDS = 5
_WHOLE = {FileKind.SEGMENT, FileKind.METADATA}
"""Kinds of which half a file can't be read."""


@dataclass(frozen=True, slots=True)
class _SearchResult:
    """All that a search has seen."""

    findings: tuple[FileFindings, ...]
    snapshots: tuple[int, ...]
    not_looked_at: tuple[str, ...]


@dataclass(frozen=True)
class Verification:
    """Looks through the files of one topic."""

    store: LogStore
    topic: str
    hasher: KeyHasher
    engine: Engine
    now_ms: int

    def verify(self, rows: Sequence[ErasureRow], run_id: str) -> list[ErasureRow]:
        """These erasures, those verified of which no record was found; the others with what was.

        Raises:
            InvalidConfig: their hashes were made with another secret.
            StalePlan: the topic was deleted and created again, so that they are not its own.
            StorageUnavailable: the storage can't be listed, or looked through.
        """
        for row in rows:
            require_secret(self.hasher, row.erasure.fingerprint, f"topic {self.topic}: request {row.id}")
        now = self._as_now(rows)
        # Of no key nothing is ever found, and that would be a proof of nothing.
        searched = [row for row in now if row.erasure.state is ErasureState.DELETED and row.erasure.key_hashes]
        done = {row.id: row for row in self._searched(searched, run_id)} if searched else {}
        return [done.get(row.id, row) for row in now]

    def _searched(self, rows: Sequence[ErasureRow], run_id: str) -> list[ErasureRow]:
        wanted = frozenset(bytes.fromhex(each) for row in rows for each in row.erasure.key_hashes)
        looked = self._looked(wanted, run_id)
        if looked is None:
            text = f"files came {_ROUNDS} times while they were looked through: verify again when less is written"
            return [replace(row, blocked=(text,)) for row in rows]
        left = LeftFiles(self.store, self.topic, self.now_ms, self._load, looked.findings)
        return self._proved([replace(row, blocked=left.told(row.erasure)) for row in rows], looked)

    def _as_now(self, rows: Sequence[ErasureRow]) -> list[ErasureRow]:
        """The same requests as the topic remembers them now; somebody else may have verified one."""
        remembered = {each.id: each for each in read_register(self.store.files, self._load)}
        now = [remembered.get(row.id) for row in rows]
        for row, erasure in zip(rows, now, strict=True):
            if erasure is None or not erasure.is_same_request(row.erasure):
                raise StalePlan(
                    f"topic {self.topic}: request {row.id} of {iso_time(row.erasure.requested_ms)} is not there any "
                    "more: the topic was deleted and created again meanwhile, or repaired (keptlog erasure list)"
                )
        return [replace(row, erasure=erasure) for row, erasure in zip(rows, now, strict=True) if erasure]

    def _looked(self, wanted: frozenset[bytes], run_id: str) -> _SearchResult | None:
        """What is in every file of the last listing; null if new ones keep coming of which more is to be known."""
        looked: dict[SearchedFile, FileFindings] = {}
        known_uploads: set[OpenUpload] = set()
        for number in range(_ROUNDS):
            with reaching(f"topic {self.topic} can't be listed"):
                table = self._load()
                # Earlier: what is completed before the listing is listed, and what is completed later is among these.
                uploads = set(self.store.files.uploads_below(table.location()))
                listed, like_versions = _told_apart(searched_files(self._load, self.store.files), table.location())
                # Later: what was deleted since the listing is in one of the two.
                versions = self.store.files.versions_below(table.location(), is_proof=True)
                listed += searched_versions(table.location(), versions.versions, listed, self.store.files)
                uploads.update(self.store.files.uploads_below(table.location()))
            new = [file for file in listed if file not in looked]
            found = self.engine.search(KeySearch(new, wanted, self.hasher, bounds_of), run_id) if new else ()
            looked |= {each.file: each for each in found}
            # One that was there before is no news: it keeps the erasure open, and is named.
            is_still, known_uploads = known_uploads.issuperset(uploads), uploads
            if number and (not new or (is_still and all(map(_is_settled, found)))):
                unknown = (versions.not_looked_at,) if versions.not_looked_at else ()
                findings = [looked[file] for file in listed] + _not_searched(uploads) + like_versions
                return _SearchResult(tuple(findings), snapshot_ids(table), unknown)
        return None

    def _proved(self, rows: Sequence[ErasureRow], looked: _SearchResult) -> list[ErasureRow]:
        """Those of which nothing is left are verified, once their receipts are sealed."""
        if all(row.blocked for row in rows):
            return list(rows)
        now_ms = self.store.done_ms(self.now_ms)
        # A clock that was set back would else date the end before what was reached.
        rows = [replace(row, erasure=dated_by(row.erasure, now_ms)) for row in rows]
        clear = [row.erasure for row in rows if not row.blocked]
        seen = looked.findings, looked.snapshots, looked.not_looked_at, self.now_ms
        proofs = [ErasureProof(self.topic, self._topic_id, each, *seen, now_ms) for each in clear]
        if unsealed := why_not_sealed(erasure_drafts(proofs, self.store.files), self.store.seal):
            blocked = (f"no record of its keys is left, but its receipt is not sealed ({unsealed.why}): verify again",)
            return [replace(row, blocked=row.blocked or blocked) for row in rows]
        return [row if row.blocked else _verified(row, now_ms) for row in rows]

    @cached_property
    def _topic_id(self) -> str:
        return self.store.describe_topic(self.topic).id

    @cached_property
    def _load(self) -> LoadTable:
        return while_same(lambda: self.store.load_table(self.topic), self._topic_id)


def _told_apart(files: Iterable[SearchedFile], location: str) -> tuple[list[SearchedFile], list[FileFindings]]:
    """What can be opened by its path, and the objects whose keys look like a version of another one."""
    problem = "its key looks like a version of another file, which would be read in its place"
    by_purge, by_hand = "a purge deletes it once it is older than the grace", "move it out of the topic's folder"
    unswept = journal_folder(location), receipt_folder(location)
    by_path: list[SearchedFile] = []
    like_versions: list[FileFindings] = []
    for file in files:
        if file.path.startswith(S3) and VERSION_IN_PATH in file.path:
            todo = by_hand if file.path.startswith(unswept) else by_purge
            like_versions.append(FileFindings(file, FileKind.UNKNOWN, (), f"{problem}; {todo}"))
        else:
            by_path.append(file)
    return by_path, like_versions


def _is_settled(findings: FileFindings) -> bool:
    """Whether another listing would not tell more of a file that has just come."""
    if findings.is_gone or findings.problem:
        return False
    # What the table does not refer to may still be written to, or be a commit that is about to land.
    return not findings.file.is_stray or (findings.kind in _WHOLE and not findings.hits)


def _verified(row: ErasureRow, now_ms: int) -> ErasureRow:
    done = reached(row.erasure, ErasureState.VERIFIED, now_ms)
    return replace(row, erasure=done, next_ms=None, is_verified_now=True)


def _not_searched(uploads: Iterable[OpenUpload]) -> list[FileFindings]:
    problem = "nobody can read an upload that was not completed; a purge ends it once it is older than the grace"
    files = [SearchedFile(location, 0) for location in sorted(each.location for each in uploads)]
    return [FileFindings(file, FileKind.UNKNOWN, (), problem) for file in files]
