"""Which files keep erasures open after a search that was made for all of them.

    not looked through       keeps every request open
    has records of a key     keeps those of that key open, if they lie below its bound

There may be thousands of requests, and thousands of files. So who keeps a file is looked for once, and only if one is
to be told; and what was found is kept by key, so that a request costs what was found of its own keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keptlog.log.erasures.erasure import Erasure
from keptlog.log.search import FileFindings, KeyHits
from keptlog.log.told.stored_files import MENDING
from keptlog.log.words.counted import counted
from keptlog.passes.erasures.kept_records import KeptRecords
from keptlog.storage.object_version import VERSION_IN_PATH
from keptlog.table.metadata.partitions import partition_count

if TYPE_CHECKING:
    from keptlog.table.removal.erasure_look import LoadTable
    from keptlog.table.store import LogStore

_SHOWN = 5
_LISTED = "it is listed, and can't be read: verify again; if it stays so, move it out of the topic's folder"
_MISSING = f"the topic needs it, and it is missing from the storage; {MENDING}"


@dataclass(frozen=True)
class LeftFiles:
    """What one search of a topic has found, for all requests that it was made for."""

    store: LogStore
    topic: str
    now_ms: int
    load: LoadTable
    findings: Sequence[FileFindings]

    def told(self, erasure: Erasure) -> tuple[str, ...]:
        """A line for each file that keeps an erasure open, the first of them in full; empty if none does."""
        has_records = self._with_records(erasure)
        count = len(self._not_searched) + len(has_records)
        texts = dict(self._not_searched[:_SHOWN]) | has_records
        lines = []
        for index in sorted(texts)[:_SHOWN]:
            each = self.findings[index]
            is_sure = bool(each.hits) and not (each.problem or each.is_gone)
            whose = self._kept.of_file(each.file.path, erasure, has_records=is_sure)
            lines.append(f"{texts[index]}; {whose}" if whose else texts[index])
        more = count - _SHOWN
        return (*lines, *((f"and {counted(more, 'file')} more",) if more > 0 else ()))

    @cached_property
    def _kept(self) -> KeptRecords:
        return KeptRecords.look(self.store, self.topic, self.now_ms)

    @cached_property
    def _partitions(self) -> range:
        return range(partition_count(self.topic, self.load().properties))

    @cached_property
    def _not_searched(self) -> Sequence[tuple[int, str]]:
        """The files that nobody has looked through, by place, and why."""
        return [
            (index, f"{each.file.path} was not looked through: {why}")
            for index, each in enumerate(self.findings)
            if (why := _why_not_searched(each))
        ]

    @cached_property
    def _hits(self) -> Mapping[bytes, Sequence[tuple[int, KeyHits]]]:
        """By key, what was found of it in the others, each with the place of its file."""
        left_out = {index for index, _ in self._not_searched}
        by_key: dict[bytes, list[tuple[int, KeyHits]]] = {}
        for index, each in enumerate(self.findings):
            for hit in each.hits if index not in left_out else ():
                by_key.setdefault(hit.key_hash, []).append((index, hit))
        return by_key

    def _with_records(self, erasure: Erasure) -> dict[int, str]:
        """By place, the files with records that were to go."""
        bounds = _EndOffsets(erasure)
        counting: dict[int, list[KeyHits]] = {}
        for key_hash in dict.fromkeys(erasure.key_hashes):
            for index, hit in self._hits.get(bytes.fromhex(key_hash), ()):
                if self.findings[index].file.is_stray or self._is_below(bounds, hit, key_hash):
                    counting.setdefault(index, []).append(hit)
        return {index: _found(self.findings[index], hits) for index, hits in counting.items()}

    def _is_below(self, bounds: _EndOffsets, hit: KeyHits, key_hash: str) -> bool:
        # What says that it is of a partition that the topic does not have tells as little as what says nothing.
        if hit.partition is None or hit.partition not in self._partitions or hit.lowest_offset is None:
            return True
        # A partition without a bound was added later, and all that it has is new.
        return hit.lowest_offset < bounds.of(hit.partition, key_hash)


@dataclass(frozen=True)
class _EndOffsets:
    """The bounds of one erasure, looked up for each hit: there may be as many of both as it has keys."""

    erasure: Erasure

    def of(self, partition: int, key_hash: str) -> int:
        """As ``Erasure.end_offset_of``; 0 if there is none."""
        return self._known.get((partition, key_hash), self._known.get((partition, ""), 0))

    @cached_property
    def _known(self) -> dict[tuple[int, str], int]:
        known: dict[tuple[int, str], int] = {}
        for each in self.erasure.bounds:
            at = each.partition, each.key_hash
            known[at] = max(each.end_offset, known.get(at, 0))
        return known


def _why_not_searched(findings: FileFindings) -> str | None:
    if findings.problem:
        return findings.problem
    if findings.is_gone and findings.file.is_needed:
        return _MISSING
    # It was gone when it was opened, and the last listing had it all the same.
    if findings.is_gone and (findings.file.is_stray or VERSION_IN_PATH in findings.file.path):
        return _LISTED
    return None


def _found(findings: FileFindings, hits: Sequence[KeyHits]) -> str:
    records, keys = sum(hit.records for hit in hits), len({hit.key_hash for hit in hits})
    return f"{findings.file.path} ({findings.kind}) has {counted(records, 'record')} of {counted(keys, 'key')}"
