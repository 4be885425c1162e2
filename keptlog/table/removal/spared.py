"""What a purge spares because another catalog may need it (``ahead``), for which metadata file, and who is told of it.

    copied state    what a catalog reads that names this file: its snapshot, those of its tags and branches, watermarks,
                    the register of erasures, statistics; until the state leaves the history of this catalog
    one ahead       what an attempt has added, and what else it names; until the next commit here

If a manifest list or a manifest of it is gone or damaged, nobody can tell which segments are the other home's, and
nothing is deleted: the file may come back from a copy of the storage. A copied state has landed. So may what is one
ahead: whoever commits has written all of it before its metadata file.

Its metadata holds names and numbers, and is told as such. All else may hold keys or values that are not live here. So
it is a holder with a deadline (``keptlog.log.holder``), as what a tag shows is: no purge deletes it before, and only a
person knows whether another home has the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from keptlog.errors import LogCorrupt
from keptlog.log.holder import Held, HolderKind, Holdings, Terms
from keptlog.table.metadata.references import (
    Manifests,
    References,
    UnreadFile,
    below,
    comparable,
    comparable_forms,
    references_in_reach,
)
from keptlog.table.metadata.state import watermarks_paths
from keptlog.table.removal.ahead import ToldApart, new_snapshots, told_apart, why_refused
from keptlog.table.removal.erasure_register import register_path

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from keptlog.table.io.files import TableFiles

_RETOLD = {
    HolderKind.COPIED_STATE: frozenset(
        {
            HolderKind.STAGED,
            HolderKind.ORPHAN,
            HolderKind.WATERMARKS,
            HolderKind.OBJECT_VERSION,
            HolderKind.POST_DATED,
            HolderKind.ELSEWHERE,
        }
    ),
    # A younger one is of a run that may be under way.
    HolderKind.COMMIT_AHEAD: frozenset(
        {HolderKind.ORPHAN, HolderKind.WATERMARKS, HolderKind.OBJECT_VERSION, HolderKind.ELSEWHERE}
    ),
}
"""What is told by who keeps it: all of it is referred to by nothing here."""


class Keeper(NamedTuple):
    """The metadata file for which something is spared."""

    kind: HolderKind
    path: str
    since_ms: int | None
    """When this catalog went on from a copied state."""


@dataclass
class Spared(References):
    """What is spared, and for which metadata file."""

    keepers: dict[str, Keeper] = field(default_factory=dict)
    """By comparable path; of what several need, the first."""
    nameless: set[str] = field(default_factory=set)
    """What of it holds names and numbers alone, in comparable form."""
    unread: str = ""
    """Why nobody can tell what is to be spared, so nothing may be deleted, and what to do; empty if all was read."""
    cause: BaseException | None = None
    """What the reading of it has met."""

    def keys_below(self, location: str) -> set[str]:
        """What of it lies in a table's folder, in comparable form, where it is found again once nobody needs it.

        Elsewhere no purge deletes anything, and nobody lists: what is there is remembered by journals alone.
        """
        return set(filter(below(location), self.keepers))

    def keeper_of(self, path: str) -> str | None:
        """The metadata file for which a file is spared; null if it is not."""
        keeper = self.keepers.get(comparable(path))
        return keeper.path if keeper else None

    def take(self, keeper: Keeper, needed: References, nameless: Iterable[str]) -> None:
        """Add what one of these metadata files needs."""
        self.add(needed)
        self.keepers = dict.fromkeys(needed.keys(), keeper) | self.keepers
        self.nameless.update(comparable_forms(nameless).values())


def spared_references(
    table: Table, stored: Iterable[str], manifests: Manifests, files: TableFiles, load: Callable[[], Table | None]
) -> Spared:
    """What another catalog may need; ``stored``, ``files`` and ``load`` are those of ``told_apart``.

    Raises:
        LogCorrupt: the storage knows more than the catalog, or nobody can tell what the other catalog needs.
    """
    found = told_apart(table, stored, files, load)
    if found.elsewhere:
        raise LogCorrupt(why_refused(table, found.elsewhere))
    spared = spared_for(table, found, manifests)
    if spared.unread:
        raise LogCorrupt(f"topic {table.name()[-1]}: nothing was deleted: {spared.unread}") from spared.cause
    return spared


def spared_for(table: Table, found: ToldApart, manifests: Manifests) -> Spared:
    """What the metadata files need that may be another catalog's; what can't be read of it stands in ``unread``."""
    spared = Spared()
    for path, (metadata, followed_ms) in found.copied.items():
        shown = {metadata.current_snapshot_id, *(each.snapshot_id for each in metadata.refs.values())}
        snapshots = [each for each in metadata.snapshots if each.snapshot_id in shown]
        keeper = Keeper(HolderKind.COPIED_STATE, path, followed_ms)
        _take(spared, keeper, metadata, snapshots, manifests)
    for path, metadata in found.one_ahead.items():
        keeper = Keeper(HolderKind.COMMIT_AHEAD, path, None)
        _take(spared, keeper, metadata, new_snapshots(table, metadata), manifests)
    return spared


def _take(
    spared: Spared, keeper: Keeper, metadata: TableMetadata, snapshots: Iterable[Snapshot], manifests: Manifests
) -> None:
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    register = register_path(metadata.location, metadata.properties)
    named = [*watermarks_paths(metadata.properties), *(each.statistics_path for each in statistics)]
    needed = References(metadata_bytes=dict.fromkeys([keeper.path, *([register] if register else []), *named], 0))
    shown = list(snapshots)
    found, unread = references_in_reach(shown, manifests)
    needed.add(found)
    nameless = [keeper.path, *(each.manifest_list for each in shown)]
    if not unread:
        nameless += (path for each in shown for path in _without_keys(each, manifests))
    elif not spared.unread:
        spared.unread, spared.cause = _why_unread(keeper, unread[0]), unread[0].error.__cause__
    spared.take(keeper, needed, nameless)


def _why_unread(keeper: Keeper, unread: UnreadFile) -> str:
    whose = f"another home may have the topic under the name {keeper.path}"
    if keeper.kind is HolderKind.COMMIT_AHEAD:
        whose = f"{keeper.path}, one commit ahead of this catalog, may have landed in another home"
    marker = ", or from under its delete marker" if unread.is_gone else ""
    return (
        f"{unread.kind} {unread.path} {unread.why}, and {whose}. Nobody can tell which segments that home needs, so no "
        f"purge deletes anything. If there is such a home, put the {unread.kind} back from a copy of the storage"
        f"{marker}. If there is none, move {keeper.path.rpartition('/')[2]} away"
    )


def _without_keys(snapshot: Snapshot, manifests: Manifests) -> Iterator[str]:
    """Its manifests but for those with bounds of keys or values, which another program may have written."""
    for manifest in manifests.of(snapshot):
        if not manifests.bounded_by(manifest):
            yield manifest.manifest_path


def told_by_keeper(found: Holdings, spared: Spared) -> Holdings:
    """The same look, but that what is spared is told by the metadata file for which it is."""
    if not spared.keepers:
        return found
    return replace(found, held=tuple(_told_by_keeper(each, spared, found.terms) for each in found.held))


def _told_by_keeper(held: Held, spared: Spared, terms: Terms) -> Held:
    form = comparable(held.path) if held.path else ""
    keeper = spared.keepers.get(form)
    if keeper is None or held.kind not in _RETOLD[keeper.kind]:
        return held
    if form in spared.nameless:
        return replace(held, kind=HolderKind.METADATA, until_ms=None)
    since_ms = held.since_ms if keeper.since_ms is None else keeper.since_ms
    due_ms = max(held.due_ms(terms) or 0, since_ms + terms.delete_delay_ms)
    return replace(held, kind=keeper.kind, since_ms=since_ms, name=keeper.path, until_ms=due_ms)
