"""What a bucket keeps of a topic beside what it lists, as holders; and what it will not let go of.

    hidden file                object version     a purge deletes it once it is older than the grace
    open upload                staged             the same
    replaced version           replaced version   it goes with its file; of keptlog's own it has no records
    delete marker              delete marker      holds nothing

Whether a version is locked takes a request each. So that is asked of what should be gone, and of nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from keptlog.log.holder import Held, HolderKind, Terms
from keptlog.log.segment_path import partition_in
from keptlog.storage.object_version import ObjectVersion, Undeleted
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import comparable_forms
from keptlog.table.removal.hidden import HiddenFiles
from keptlog.table.removal.journal import receipt_folder

_MAY_BE_LOCKED = frozenset(
    {
        HolderKind.RETIRED,
        HolderKind.STAGED,
        HolderKind.ORPHAN,
        HolderKind.WATERMARKS,
        HolderKind.JOURNAL,
        HolderKind.OBJECT_VERSION,
    }
)
"""What a purge would delete. A tag keeps its files whether they are locked or not."""
_LOCKS = {HolderKind.OBJECT_LOCK, HolderKind.LEGAL_HOLD}


def held_versions(hidden: HiddenFiles, location: str, needed: Collection[str], terms: Terms) -> Iterator[Held]:
    """What was found below a topic's location; ``needed`` is what its table refers to, in comparable form."""
    forms = comparable_forms(file.path for file in hidden.files)
    for file in hidden.files:
        # A live file that somebody deleted is lost, and no holder: to take its delete marker away is the way back.
        if forms[file.path] not in needed:
            kind = HolderKind.STAGED if file.path in hidden.uploads else HolderKind.OBJECT_VERSION
            until_ms = file.modified_ms + terms.orphan_grace_ms
            yield Held(
                kind,
                file.modified_ms,
                1,
                file.size_bytes,
                partition=partition_in(file.path),
                path=file.path,
                until_ms=until_ms,
            )
    own = receipt_folder(location)
    for version in hidden.replaced:
        partition = partition_in(version.path)
        kind = _kind_of_replaced(version, own)
        yield Held(kind, version.since_ms, 1, version.size_bytes, partition=partition, path=version.location)


def with_locks(files: TableFiles, held: Collection[Held], asked: Collection[Held], terms: Terms) -> tuple[Held, ...]:
    """The same, but that of what is asked the store's own reasons are told, if it has any.

    Raises:
        OSError: the store does not answer.
    """
    # An upload has no version, and costs a request; its path alone does not tell it from an object.
    paths = {each.path for each in asked if each.path and each.kind in _MAY_BE_LOCKED}
    reasons: dict[str, list[Undeleted]] = defaultdict(list)
    for left in files.still_there(sorted(paths)) if paths else ():
        if left.kind in _LOCKS:
            reasons[left.path].append(left)
    found: list[Held] = []
    for each in held:
        locks = reasons.get(each.path or "") if each in asked else None
        found += _locked(each, locks, terms) if locks else [each]
    return tuple(found)


def _kind_of_replaced(version: ObjectVersion, own: str) -> HolderKind:
    if version.is_delete_marker:
        return HolderKind.DELETE_MARKER
    return HolderKind.METADATA if version.path.startswith(own) else HolderKind.REPLACED_VERSION


def _locked(held: Held, locks: Collection[Undeleted], terms: Terms) -> Iterator[Held]:
    """One for each kind of lock; its deadline stays that of what is kept."""
    for kind in dict.fromkeys(HolderKind(lock.kind) for lock in locks):
        until_ms = [lock.until_ms for lock in locks if lock.kind == kind and lock.until_ms is not None]
        yield replace(held, kind=kind, until_ms=held.due_ms(terms), kept_until_ms=max(until_ms, default=None))
