"""Whether the storage knows more than the catalog: then a purge would delete what only somebody else knows.

    catalog     00012                          this home: a copy, or a catalog that was restored from a backup
    storage     00012  00013  00014  00015     the original went on, and its files look like orphans from here

Each commit writes a metadata file whose number is one higher than that of the file it was built on, and then asks the
catalog to take it. So an attempt that the catalog did not take has the number that follows one of the catalog's, and is
built on one of the catalog's. Anything else has landed in another catalog, and nothing is deleted then:

    two or more ahead                          refused
    built on a file that this catalog never had: both went on, each its own way       refused
    a snapshot under a number that another of this catalog has, built on a file with such a one       refused, too
    one ahead, built on the catalog's own      an attempt whose process died, or a commit that landed elsewhere: nobody
                                               can tell, so all that it refers to is spared until the next commit
    what a state of the catalog's own has      a copy, or what was copied: so what it shows is spared, too

Of what is older than the catalog's list of its files, mostly 20 commits, only the snapshots tell: no table gives two of
them one sequence number. An attempt has no successor, so two such files in a row have landed; a file of the catalog's
own past that nobody deleted is never one. Once the snapshots of that time are expired here, nothing tells any more.

A home that was restored from a backup looks the same, if others wrote while that was made. Nobody can tell it from a
copy but whoever restored it. He moves aside the metadata files that are refused; what they refer to is orphaned then.

A deletion of the topic asks the same: it would take all files of whoever goes on. It can spare nothing, so one ahead
is refused too, if all that it refers to is there, as far as that can be read. Who knows that a process died with it
moves that file aside.

Another program may have named the catalog's file without a number, or with one of its own, as who registers a copy of
one does. Then what is in the files tells (``known_states``). The file that was copied may be what the original's
catalog names, so it is spared with all that it shows (``spared``) while the copy is in the history, and no deletion
takes it. Snapshots of this catalog expire all the same: what is spared are files.

Files of a topic of the same name that was deleted before this one was created bear another table's id, and don't count.
Neither does a copy that ``rewrite_table_path`` has made ready: ``own_folder`` tells of that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from keptlog.errors import LogCorrupt, StalePlan, StorageUnavailable
from keptlog.log.words.next_command import next_command
from keptlog.table.io.read_only import require_writable
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.metadata_reading import whole_metadata
from keptlog.table.metadata.references import (
    Manifests,
    below,
    comparable,
    comparable_forms,
    references_in_reach,
)
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.known_states import KnownStates, MetadataStanding, base_of, contradict, number
from keptlog.table.removal.metadata_elsewhere import places_of_metadata
from keptlog.table.removal.own_folder import staged_copy

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from keptlog.table.io.files import TableFiles

_LOOKS = 5
"""Before a topic to which others commit all the time is believed to be this catalog's: each look has seen a new one."""
_MOST_UUIDS = 100_000
_uuids: dict[str, str] = {}
"""By metadata file, whose it is."""
_logger = logging.getLogger(__name__)


def require_newest(table: Table, stored: Iterable[str], load: Callable[[], Table | None], files: TableFiles) -> None:
    """Refuse to delete a topic with which another home goes on, or may; ``load`` gives its table as it is now.

    Raises:
        InvalidConfig: the home is a copy, or was moved.
        LogCorrupt: the storage knows more than the catalog.
        StalePlan: somebody may have committed what this catalog does not know, or is about to.
    """
    require_writable(table.catalog.properties.items())
    paths = list(stored)
    alone = f"catalog.drop_table(({NAMESPACE!r}, NAME))"
    forget = f"take the topic out of this catalog and leave the files, as PyIceberg's {alone} does"
    for _ in range(_LOOKS):
        found = told_apart(table, paths, files, load)
        if found.elsewhere:
            raise LogCorrupt(why_refused(table, found.elsewhere, forget))
        if found.copied:
            raise LogCorrupt(_why_named_twice(table, list(found.copied), forget))
        ahead = _whole_attempts(table, found.one_ahead, paths)
        if not ahead:
            return
        now = load()
        if now is None:
            return
        if now.metadata_location == table.metadata_location:
            raise StalePlan(_why_one_ahead(table, ahead, forget))
        table = now  # it landed here meanwhile, or another commit did


def _whole_attempts(table: Table, attempts: Mapping[str, TableMetadata], stored: Collection[str]) -> list[str]:
    """The metadata files one ahead of the catalog that may have landed elsewhere, for all that they refer to is there.

    What it refers to outside of the folder nobody has listed. What can't be read tells nothing of the rest.
    """
    there, is_below = set(comparable_forms(stored).values()), below(table.location())
    manifests = Manifests(table.name()[-1], table.io)
    return sorted(
        path
        for path, metadata in attempts.items()
        if all(each in there for each in filter(is_below, _needed(path, new_snapshots(table, metadata), manifests)))
    )


def _needed(attempt: str, snapshots: Iterable[Snapshot], manifests: Manifests) -> set[str]:
    """What an attempt's new snapshots need, as far as they can be read, and itself, in comparable form."""
    found, unread = references_in_reach(snapshots, manifests)
    # What has landed may have lost one of these since, or it is damaged: that makes no attempt of it.
    return (found.keys() | {comparable(attempt)}) - set(comparable_forms(each.path for each in unread).values())


def new_snapshots(table: Table, attempt: TableMetadata) -> list[Snapshot]:
    """Those that a table has not, which an attempt to commit to it has added."""
    known = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
    return [each for each in attempt.snapshots if each.snapshot_id not in known]


class ToldApart(NamedTuple):
    """Metadata files of a table that its catalog does not know; by path, sorted."""

    elsewhere: list[str]
    """What has landed in another catalog."""
    one_ahead: dict[str, TableMetadata]
    """Attempts that may have landed elsewhere."""
    copied: dict[str, CopiedState]
    """Other names of states that this catalog knows: another one may have the topic under such a name."""


class CopiedState(NamedTuple):
    """What is in such a file."""

    metadata: TableMetadata
    followed_ms: int | None
    """When this catalog went on from it; null if that is its current state."""


def told_apart(table: Table, stored: Iterable[str], files: TableFiles, load: Callable[[], Table | None]) -> ToldApart:
    """What the catalog does not know of a table's metadata files, and what that means.

    ``stored`` are the paths below the table's location; metadata that is put elsewhere is looked for there. ``load``
    gives the table as it is now, by the way that has given this one: who only looks has no catalog to ask.
    """
    if outside := _metadata_outside(table, files):
        # Listed when the table was loaded already: what was committed meanwhile is no sign of another catalog.
        table = load() or table
    history = KnownStates.of(table)
    elsewhere: set[str] = set()
    one_ahead: dict[str, TableMetadata] = {}
    copied: dict[str, CopiedState] = {}
    contradicting: dict[str, tuple[str, str]] = {}
    ancestors: set[str] = set()
    for path, form in _newest_first([*stored, *outside]):
        is_old = history.is_before_all(number(path)) and form in ancestors
        if form in history.known or is_old or staged_copy(table.location(), path):
            continue
        metadata = whole_metadata(table.io, path)
        if metadata and str(metadata.table_uuid) != str(table.metadata.table_uuid):
            continue
        contradicts = metadata is not None and contradict(table.metadata, metadata)
        standing = history.standing_of(path, metadata, contradicts=contradicts)
        if standing is MetadataStanding.ELSEWHERE:
            elsewhere.add(path)
        elif metadata and standing is MetadataStanding.NEXT:
            one_ahead[path] = metadata
        elif metadata and (known := history.state_of(metadata)) and standing is MetadataStanding.COPIED:
            copied[path] = CopiedState(metadata, known.followed_ms)
        if metadata and contradicts:
            contradicting[form] = path, comparable(base_of(metadata))
        elif metadata:
            ancestors.update(comparable_forms(each.metadata_file for each in metadata.metadata_log).values())
    elsewhere.update(path for path, base in contradicting.values() if base in contradicting)
    return ToldApart(sorted(elsewhere), dict(sorted(one_ahead.items())), dict(sorted(copied.items())))


def _metadata_outside(table: Table, files: TableFiles) -> list[str]:
    """The table's own metadata files that the catalog does not know, in the folders where another program has it put.

    A folder may have the metadata of thousands of tables. What is older than all that the catalog knows is not read.
    Each other file is read once by a process, for none ever changes; one that can't be read may be another table's. Who
    may not list a folder sees none there, and is told.
    """
    history = KnownStates.of(table)
    found = []
    for place in places_of_metadata(table)[1:]:
        try:
            listed = [file.path for file in files.list(place)]
        except StorageUnavailable as error:
            if not error.is_refused:
                raise
            _logger.warning("%s: nobody has looked there for what another home has committed: %s", place, error)
            continue
        # One below the catalog's newest may be another home's: who registers a copy may give it any number.
        younger = [path for path in listed if not history.is_before_all(number(path))]
        metadata = comparable_forms(path for path in younger if path.endswith(METADATA_ENDINGS))
        found += [path for path, form in metadata.items() if form not in history.known and _is_of(table, path)]
    return found


def _is_of(table: Table, path: str) -> bool:
    """Whether a metadata file is one of this table."""
    if path not in _uuids:
        metadata = whole_metadata(table.io, path)
        if metadata is None:
            return False
        if len(_uuids) >= _MOST_UUIDS:
            _uuids.clear()
        _uuids[path] = str(metadata.table_uuid)
    return _uuids[path] == str(table.metadata.table_uuid)


def unknown_metadata(found: ToldApart) -> list[str]:
    """The metadata files that a restored home moves aside; none if nothing has landed in another catalog, sorted.

    What is one ahead belongs to them, for others were built behind it; so does what others were built on.
    """
    return sorted({*found.elsewhere, *found.one_ahead, *found.copied}) if found.elsewhere else []


def why_refused(table: Table, elsewhere: Sequence[str], leave: str = "purge with that one") -> str:
    """Why nothing is deleted, and what to do; ``leave`` is what to do if another home goes on."""
    return (
        f"topic {table.name()[-1]}: the storage knows more than this catalog: {elsewhere[-1]}{_more(elsewhere)} is not "
        f"in its history, which ends with {table.metadata_location.rpartition('/')[2]}. Nothing was deleted. Either "
        f"another home goes on with this storage: {leave}. Or this home was restored from a backup, and no other goes "
        f"on: {next_command('topic register', table.name()[-1])} takes in what was committed since; to give that up, "
        "move these metadata files out of the topic's folder; keptlog doctor names them"
    )


def _why_one_ahead(table: Table, ahead: Sequence[str], leave: str) -> str:
    return (
        f"topic {table.name()[-1]}: {ahead[-1]}{_more(ahead)} is one commit ahead of this catalog, whose history ends "
        f"with {table.metadata_location.rpartition('/')[2]}. Nothing was deleted. Either a commit is under way: delete "
        f"it again once that has ended. Or another home goes on with this storage: {leave}. Or a process died "
        "before its commit landed, and no other home goes on: move this file out of the topic's folder, and delete it "
        "again"
    )


def _why_named_twice(table: Table, names: Sequence[str], leave: str) -> str:
    return (
        f"topic {table.name()[-1]}: {names[-1]}{_more(names)} has what a metadata file in the history of this catalog "
        f"has, whose newest is {table.metadata_location.rpartition('/')[2]}. Nothing was deleted. Either another home "
        f"has the topic under that name: {leave}. Or no other home has it: move this file away, to where nothing of "
        "this topic lies, and delete the topic again"
    )


def why_refused_here(table: Table, elsewhere: Sequence[str]) -> str:
    """The same for who is not purging."""
    return (
        f"the storage knows more than this catalog ({elsewhere[-1]}{_more(elsewhere)} is not in its history), and no "
        "purge deletes anything: if another home goes on with this storage, purge with that one, and if this home was "
        f"restored from a backup, move the metadata files out of {table.location()} that keptlog doctor names"
    )


def _more(elsewhere: Sequence[str]) -> str:
    return f" (and {len(elsewhere) - 1} more)" if len(elsewhere) > 1 else ""


def landed_since(named: str, stored: Iterable[str]) -> list[str]:
    """What has landed since a metadata file that is gone itself: as far as names tell, for nothing of it can be read.

    An attempt whose process died is one ahead. Who lets the oldest metadata files go has committed often since.
    """
    own, folder = number(named), named.rpartition("/")[0]
    beside = [path for path in stored if path.rpartition("/")[0] == folder]
    return sorted(path for path in beside if own is not None and (number(path) or 0) > own + 1)


def why_put_back(topic: str, named: str, elsewhere: Sequence[str]) -> str:
    """Why files are gone that the catalog names, where the storage knows more than it does."""
    return (
        f"topic {topic}: the catalog was put back to an older state, and files of that are gone since: "
        f"{elsewhere[-1]}{_more(elsewhere)} is not in its history, which ends with {named.rpartition('/')[2]}"
    )


def _newest_first(stored: Iterable[str]) -> list[tuple[str, str]]:
    """The metadata files among these, each with its comparable form; those that have no number come last."""
    forms = comparable_forms(path for path in stored if path.endswith(METADATA_ENDINGS))
    return sorted(forms.items(), key=lambda each: -1 if (n := number(each[0])) is None else n, reverse=True)
