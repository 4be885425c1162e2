"""The last step of an erasure: every file of its topic is looked through, and none has a record that was to go.

    list --> look through --> list again: is there a file that was not looked through? --> receipt --> verified
                  ^                                      | yes
                  +--------------------------------------+

A record counts if it lies below the bound of its key. Where a file tells no offsets, any trace of the key counts. A
file that can't be looked through proves nothing: it keeps the erasure open, and is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from keptlog.engine.engine import Engine
from keptlog.engine.search_tasks import KeySearch
from keptlog.log.counted import counted
from keptlog.log.erasure import Erasure, ErasureState, reached
from keptlog.log.search import FileFindings, KeyHits, SearchedFile
from keptlog.passes.erasure_request import ErasureProof, ErasureRow, Seal
from keptlog.storage.erasure_secret import require_secret
from keptlog.storage.key_hash import KeyHasher
from keptlog.table.reach import reaching
from keptlog.table.search import bounds_of, searched_files
from keptlog.table.store import LogStore

_ROUNDS = 5
_SHOWN = 5


@dataclass(frozen=True)
class Verification:
    """Looks through the files of one topic."""

    store: LogStore
    topic: str
    hasher: KeyHasher
    engine: Engine
    now_ms: int
    seal: Seal | None = None

    def verify(self, rows: Sequence[ErasureRow], run_id: str) -> list[ErasureRow]:
        """These erasures, those verified of which no record was found; the others with what was.

        Raises:
            InvalidConfig: their hashes were made with another secret.
            StorageUnavailable: the storage can't be listed, or looked through.
        """
        for row in rows:
            require_secret(self.hasher, row.erasure.fingerprint, f"topic {self.topic}: request {row.id}")
        wanted = frozenset(bytes.fromhex(each) for row in rows for each in row.erasure.key_hashes)
        findings = self._findings(wanted, run_id)
        if findings is None:
            text = f"files came {_ROUNDS} times while they were looked through: verify again when less is written"
            return [replace(row, blocked=(text,)) for row in rows]
        return [self._judged(row, findings) for row in rows]

    def _findings(self, wanted: frozenset[bytes], run_id: str) -> list[FileFindings] | None:
        """What is in every file, until a listing shows none that is new; null if new ones keep coming."""
        looked: dict[SearchedFile, FileFindings] = {}
        for _ in range(_ROUNDS):
            with reaching(f"topic {self.topic} can't be listed"):
                listed = searched_files(self.store.load_table(self.topic), self.store.files)
            new = [file for file in listed if file not in looked]
            if not new and looked:
                return [looked[file] for file in listed]
            search = KeySearch(new, wanted, self.hasher, bounds_of)
            looked |= {each.file: each for each in self.engine.search(search, run_id)}
        return None

    def _judged(self, row: ErasureRow, findings: Sequence[FileFindings]) -> ErasureRow:
        erasure = row.erasure
        blocked = [text for each in findings if (text := self._why_not(each, erasure))]
        if blocked:
            more = len(blocked) - _SHOWN
            shown = blocked[:_SHOWN] + ([f"and {counted(more, 'file')} more"] if more > 0 else [])
            return replace(row, blocked=tuple(shown))
        verified = reached(erasure, ErasureState.VERIFIED, self.now_ms)
        if self.seal:
            topic_id = self.store.describe_topic(self.topic).id
            self.seal(ErasureProof(self.topic, topic_id, verified, tuple(findings), self.now_ms))
        return replace(row, erasure=verified, next_ms=None, blocked=())

    def _why_not(self, findings: FileFindings, erasure: Erasure) -> str | None:
        path = findings.file.path
        if findings.problem:
            return f"{path} was not looked through: {findings.problem}"
        hits = [hit for hit in findings.hits if _counts(hit, erasure)]
        if not hits:
            return None
        records, keys = sum(hit.records for hit in hits), len({hit.key_hash for hit in hits})
        return f"{path} ({findings.kind}) has {counted(records, 'record')} of {counted(keys, 'key')}"


def _counts(hit: KeyHits, erasure: Erasure) -> bool:
    """Whether a hit is of a record that was to go."""
    if hit.key_hash.hex() not in erasure.key_hashes:
        return False
    if hit.partition is None or hit.lowest_offset is None:
        return True
    # A partition without a bound was added later, and all that it has is new.
    return hit.lowest_offset < (erasure.end_offset_of(hit.partition, hit.key_hash.hex()) or 0)
