"""Looks many files through for keys: each file in a task, small ones bundled, a few bundles for each core.

    files --bundled by weight--> tasks --> findings, a file each, in the order in which they were asked for

What leaves a task is which hash was met where: no key, and nothing of a record but offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from keptlog.engine.attempt import Attempt
from keptlog.engine.bundles import bundled
from keptlog.engine.jobs import Jobs, Result
from keptlog.engine.stretches import in_stretches
from keptlog.kernels.key_search import BoundsOf, FileSearch
from keptlog.kernels.wanted_keys import KeyFinder, WantedKeys
from keptlog.log.search import FileFindings, FileKind, KeyHits, SearchedFile
from keptlog.log.words.counted import counted
from keptlog.storage.key_hash import KeyHasher

_BUNDLES_PER_CORE = 4
"""Enough that those which end last are small."""
_OPENING_BYTES = 256 * 2**10
"""To open a file costs as much as to read so many bytes."""


@dataclass(frozen=True)
class KeySearch:
    """What is to be looked for, and where."""

    files: Sequence[SearchedFile]
    key_hashes: frozenset[bytes] = field(repr=False)
    hasher: KeyHasher
    bounds_of: BoundsOf | None = None
    """Reads manifests; without it they are not looked at."""


@dataclass(frozen=True, slots=True)
class SearchTask:
    """Look some files through."""

    files: tuple[SearchedFile, ...]
    wanted: WantedKeys
    bounds_of: BoundsOf | None

    def run(self, attempt: Attempt) -> Result:
        """What was found in each file, in their order."""
        finder = KeyFinder(self.wanted)
        findings: list[Result] = []
        for files, stretch in in_stretches(attempt.files, self.files, lambda file: [(file.path, file.size_bytes)]):
            search = FileSearch(files, finder, self.bounds_of)
            findings += [_described(search.search(file)) for file in stretch]
        return {"findings": findings}


def search_files(jobs: Jobs, search: KeySearch) -> list[FileFindings]:
    """What is found in each file, in their order.

    Raises:
        StorageUnavailable: whoever runs the tasks fails. A file that can't be read is a finding.
    """
    wanted = WantedKeys(search.hasher, tuple(sorted(search.key_hashes)))
    numbers = range(len(search.files))
    bundles = bundled(
        numbers, jobs.cores * _BUNDLES_PER_CORE, lambda number: search.files[number].size_bytes + _OPENING_BYTES
    )
    tasks = [
        SearchTask(tuple(search.files[number] for number in bundle), wanted, search.bounds_of) for bundle in bundles
    ]
    doing = f"looking for {counted(len(wanted.key_hashes), 'key')} in {counted(len(search.files), 'file')}"
    results = jobs.run(tasks, doing)
    of_file: dict[int, FileFindings] = {}
    for bundle, result in zip(bundles, results, strict=True):
        for number, described in zip(bundle, result["findings"], strict=True):
            of_file[number] = _findings(search.files[number], described)
    return [of_file[number] for number in numbers]


def described_hits(hits: Sequence[KeyHits]) -> list[dict[str, Any]]:
    """Hits, fit for JSON."""
    return [asdict(hit) | {"key_hash": hit.key_hash.hex()} for hit in hits]


def hits_in(described: Sequence[Mapping[str, Any]]) -> tuple[KeyHits, ...]:
    """What ``described_hits`` gave."""
    return tuple(KeyHits(**{**hit, "key_hash": bytes.fromhex(hit["key_hash"])}) for hit in described)


def _described(findings: FileFindings) -> Result:
    return {
        "kind": findings.kind,
        "hits": described_hits(findings.hits),
        "problem": findings.problem,
        "is_gone": findings.is_gone,
        "records": findings.records,
    }


def _findings(file: SearchedFile, described: Mapping[str, Any]) -> FileFindings:
    kind, hits = FileKind(described["kind"]), hits_in(described["hits"])
    return FileFindings(file, kind, hits, described["problem"], described["is_gone"], described["records"])
