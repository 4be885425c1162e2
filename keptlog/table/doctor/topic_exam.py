"""A close look at one topic for ``keptlog doctor``: its table and the list of its storage, nothing from memory.

The table names its live files, with their lengths; the storage lists what is there. Where they differ, a file was lost,
cut off or written over. Whether the bytes inside are as they were written is ``verify``'s to say, which reads them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.table import Table

from keptlog.errors import Action, KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.log.erasures.erasure import Erasure
from keptlog.log.segment import Log
from keptlog.log.told.stored_files import WrongFile, live_paths, wrong_files
from keptlog.storage.files import StoredFile
from keptlog.table.doctor.shut_folders import shut_in_topic
from keptlog.table.io.files import local_path
from keptlog.table.metadata.format import FormatVersion, format_of
from keptlog.table.metadata.metadata_reading import looked_at
from keptlog.table.metadata.newest_change import newest_change_ms
from keptlog.table.metadata.references import comparable_forms
from keptlog.table.metadata.runs import damaged as damaged_runs
from keptlog.table.metadata.state import damaged_notes, remembers_erasures
from keptlog.table.metadata.usable_properties import require_usable_for_snapshots, require_usable_properties
from keptlog.table.reading.readers import registrations
from keptlog.table.removal.ahead import ToldApart, landed_since, told_apart, unknown_metadata, why_put_back, why_refused
from keptlog.table.removal.erasure_register import read_erasures
from keptlog.table.removal.own_folder import not_own
from keptlog.table.removal.topic_storage import drafts_among
from keptlog.table.store import LogStore
from keptlog.table.waiting.reaching import reaching


@dataclass(frozen=True, slots=True)
class TopicExam:
    """What was seen of a topic that can be read."""

    topic: str
    logs: tuple[Log, ...]
    format: FormatVersion
    newest_change_ms: int
    """The time of its newest commit, by the clock of whoever made it."""
    wrong_files: tuple[WrongFile, ...]
    drafts: tuple[StoredFile, ...]
    """Of receipts; one of them may be sealed by now."""
    erasures: tuple[Erasure, ...] | KeptlogError
    """All that it remembers, or why nobody can tell them."""
    ahead: str | None
    """Why the storage is taken to know more than the catalog; null if it does not."""
    unknown_metadata: tuple[str, ...] = ()
    """The metadata files that it is taken for, all of them."""
    copied: tuple[str, ...] = ()
    """Metadata files under whose name another home may have the topic, where nothing more is known of one."""
    damaged_runs: tuple[KeptlogError, ...] | StorageUnavailable = ()
    """What is wrong with the files that remember which changes have landed, or why nobody can look at them."""
    not_own: str | None = None
    """Why its folder is taken not to be its alone, so that nothing is deleted in it; null if it is."""
    damaged_reader: LogCorrupt | None = None
    """Why one of its readers can't be told; it keeps nobody from a topic without tombstones, so far."""
    damaged_notes: tuple[LogCorrupt, ...] = ()
    """What is wrong with what it notes beside its logs; who looks at the topic alone needs it."""
    no_right: tuple[str, ...] = ()
    """Live files of a disk here that this user may not read, though he may list them."""
    unusable_property: LogCorrupt | None = None
    """Why nothing can be committed to its table, though all of it can be read."""
    location: str = ""
    shut: tuple[str, ...] = ()
    """Folders of it on a disk here to which this user may not write."""


@dataclass(frozen=True, slots=True)
class PutBack:
    """That an unreadable topic's catalog is an older one than its storage."""

    what: str


def examined(store: LogStore, topic: str) -> TopicExam:
    """Look closely at a topic.

    Raises:
        KeptlogError: it can't be read, and why; LogCorrupt if its state and its snapshot don't belong together.
    """
    location = store.load_table(topic).location()
    with reaching(f"files of topic {topic} can't be listed"):
        # Listed first: what is committed meanwhile is no sign of another catalog.
        stored = list(store.files.list(location))
        table, logs = store.load_table(topic), store.logs(topic)
        wrong = _compared(store, logs, stored)
        if wrong:
            # A clean and a purge may have come between the two: what counts is what the table names now.
            wrong = _compared(store, logs := store.logs(topic), stored)
        paths = [each.path for each in stored]
        found = _told_apart(store, table, paths)
        return TopicExam(
            topic,
            tuple(logs),
            format_of(topic, table.properties),
            newest_change_ms(table.metadata),
            tuple(wrong),
            _drafts(location, stored),
            _erasures(store, topic) if remembers_erasures(topic, table.properties) else (),
            why_refused(table, found.elsewhere) if found.elsewhere else None,
            tuple(unknown_metadata(found)),
            () if found.elsewhere else tuple(found.copied),
            _damaged_runs(store, table, paths),
            _not_own(store, table, paths),
            _damaged_reader(topic, table),
            tuple(damaged_notes(topic, table.properties).values()),
            tuple(_no_right(logs)),
            _unusable_property(table),
            location,
            shut_in_topic(location),
        )


def _no_right(logs: Sequence[Log]) -> Iterator[str]:
    for path in (path for log in logs for path in live_paths(log)):
        local = local_path(path)
        if local and Path(local).exists() and not os.access(local, os.R_OK):
            yield path


def _not_own(store: LogStore, table: Table, paths: Sequence[str]) -> str | None:
    found = not_own(store.committer.catalog, table, paths)
    return str(found.error(table, "no purge deletes anything")) if found else None


def put_back(store: LogStore, topic: str) -> PutBack | None:
    """What an unreadable topic's storage knows more than the catalog does; null if it does not.

    For whoever has found files gone that the topic needs: only metadata files are read, and no manifest is needed.

    Raises:
        KeptlogError: that can't be looked at.
    """
    try:
        location = store.load_table(topic).location()
    except LogCorrupt as error:
        named = store.metadata_locations().get(topic)
        if named is None or not is_metadata_lost(error):
            raise
        with reaching(f"files of topic {topic} can't be listed"):
            paths = [each.path for each in store.files.list(named.rpartition("/")[0])]
        elsewhere = landed_since(named, paths)
        if not elsewhere:
            raise
        return PutBack(why_put_back(topic, named, elsewhere))
    with reaching(f"files of topic {topic} can't be listed"):
        paths = [each.path for each in store.files.list(location)]
        table = store.load_table(topic)
        elsewhere = _told_apart(store, table, paths).elsewhere
    return PutBack(why_put_back(topic, table.metadata_location, elsewhere)) if elsewhere else None


def is_metadata_lost(found: PutBack | KeptlogError | None) -> bool:
    """Whether ``put_back`` has found that the metadata file that the catalog names is gone, and nothing newer there."""
    if not isinstance(found, LogCorrupt) or found.action is not Action.FIX_DATA:
        return False
    return isinstance(found.__cause__, FileNotFoundError)


def _told_apart(store: LogStore, table: Table, paths: Sequence[str]) -> ToldApart:
    return told_apart(table, paths, store.files, lambda: store.load_table(table.name()[-1]))


def _drafts(location: str, stored: Sequence[StoredFile]) -> tuple[StoredFile, ...]:
    drafts = set(drafts_among(location, (each.path for each in stored)))
    return tuple(each for each in stored if each.path in drafts)


def _erasures(store: LogStore, topic: str) -> tuple[Erasure, ...] | KeptlogError:
    """A register that is lost, or refused, costs only itself: the topic can be read, and nothing erased from it."""
    try:
        with reaching(f"topic {topic}: its erasures can't be read"):
            return looked_at(lambda: store.load_table(topic), lambda table: read_erasures(store.files, table))
    except KeptlogError as error:
        return error


def _damaged_runs(store: LogStore, table: Table, paths: Sequence[str]) -> tuple[KeptlogError, ...] | StorageUnavailable:
    """They too cost only themselves: who repeats no change needs none of them."""
    try:
        with reaching(f"topic {table.name()[-1]}: which changes have landed can't be read"):
            return tuple(damaged_runs(store.files, table, paths))
    except StorageUnavailable as error:
        return error


def _damaged_reader(topic: str, table: Table) -> LogCorrupt | None:
    try:
        registrations(topic, table.properties)
    except LogCorrupt as error:
        return error
    return None


def _unusable_property(table: Table) -> LogCorrupt | None:
    try:
        require_usable_properties(table)
        require_usable_for_snapshots(table)
    except LogCorrupt as error:
        return error
    return None


def _compared(store: LogStore, logs: Sequence[Log], stored: Sequence[StoredFile]) -> list[WrongFile]:
    forms = comparable_forms(each.path for each in stored)
    lengths = {forms[each.path]: each.size_bytes for each in stored}
    live = comparable_forms(path for log in logs for path in live_paths(log))
    sizes = {path: lengths.get(form) for path, form in live.items()}
    wrong = [found for log in logs for found in wrong_files(log, sizes.get)]
    # What was written after the list was made, or lies elsewhere, is asked for by its name.
    gone = set(store.files.missing([each.path for each in wrong if each.is_missing]))
    return [each for each in wrong if not each.is_missing or each.path in gone]
