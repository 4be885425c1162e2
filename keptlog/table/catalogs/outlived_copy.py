"""A copy of a home that the original has outlived: what the copy's catalog names is gone there.

    copy       its catalog names …-21.metadata.json of the original
    original   has gone on to 46: each commit deletes the metadata of the twentieth before it, and a
               purge what only older snapshots show; or the topic was deleted

Nothing is lost then, and nothing is to be put back. Where both catalogs name the same file, it is lost to both.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt
from keptlog.table.catalogs.embedded import own_location
from keptlog.table.catalogs.home_location import ITS_RECEIPTS, Elsewhere, elsewheres, why_elsewhere
from keptlog.table.namespaces import NAMESPACE, RECEIPTS


def why_not_there(home: Path, table: tuple[str, str]) -> InvalidConfig | None:
    """Why the metadata that this home's catalog names of a table is not there; null if the home's place tells nothing.

    Raises:
        sqlite3.Error: its catalog can't be read.
        StorageUnavailable: another process holds it, or that of the original.
    """
    copied = whole_copy(elsewheres(home))
    if copied:
        return _why_outlived(copied, *table)
    why = why_elsewhere(home, table)
    return InvalidConfig(why) if why else None


def outlived(places: Iterable[Elsewhere], errors: Mapping[str, KeptlogError]) -> list[str]:
    """The topics, among those that can't be read, of which that is the reason; ``places`` tell where their home is.

    Raises:
        StorageUnavailable: another process holds a catalog.
    """
    copied = whole_copy(places)
    return [topic for topic, error in errors.items() if copied and _is_outlived(copied, topic, error)]


def tells_outlived(error: KeptlogError) -> bool:
    """Whether an error is what ``why_not_there`` gives of a copy."""
    return isinstance(error, InvalidConfig) and error.is_outlived_copy


def _is_outlived(copy: Elsewhere, topic: str, error: KeptlogError) -> bool:
    if tells_outlived(error):
        return True
    # The original's purge takes other files long before the metadata goes: the list of a snapshot's manifests.
    is_gone = isinstance(error, LogCorrupt) and isinstance(error.__cause__, FileNotFoundError)
    why = _why_outlived(copy, NAMESPACE, topic) if is_gone else None
    return why is not None and why.is_outlived_copy


def whole_copy(places: Iterable[Elsewhere]) -> Elsewhere | None:
    """The one that tells that all of a home is a copy, and not only what some tables name; null if none does."""
    return next((found for found in places if found.is_copy and not found.tables), None)


def _why_outlived(copy: Elsewhere, namespace: str, name: str) -> InvalidConfig | None:
    ours, there = (own_location(each, (namespace, name)) for each in (copy.home, copy.made_at))
    if there is None or not ours:
        return InvalidConfig(str(copy))  # whether the original has gone on is not known then
    if there == ours:
        return None
    since = "gone on" if there else "deleted it"
    what = ITS_RECEIPTS if namespace == RECEIPTS else f"topic {name}"
    use = f"use KEPTLOG_HOME={shlex.quote(str(copy.made_at))}"
    of_home = f"this is a copy of the home at {copy.made_at}"
    text = f"{of_home}, and what its catalog names of {what} is gone: the original has {since} since; {use}"
    return InvalidConfig(text).of_outlived_copy()
