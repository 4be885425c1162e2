"""Why a purge of a topic refuses, as far as its folder and its table tell; of the clock ``clock_guard`` does.

    its folder is not the topic's own        others would lose files
    the storage knows more than the catalog  another home may go on with it
    a manifest of a copied state is damaged  nobody can tell what another home needs
    a live file is not there                 what looks unneeded may be the way back

The purge asks, and so do its preview and G8: neither is to promise what the purge then refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.log.told.stored_files import give_up_watermarks, why_no_purge
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import Manifests, below, comparable_forms, live_references
from keptlog.table.metadata.state import watermarks_paths
from keptlog.table.removal.ahead import told_apart, why_refused_here
from keptlog.table.removal.own_folder import told_not_own
from keptlog.table.removal.spared import Spared, spared_for
from keptlog.table.removal.topic_storage import Storage
from keptlog.table.waiting.reaching import one_line

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a purge would leave, and why."""

    why: str = ""
    """Why it deletes nothing, and what to do; empty if it does not refuse, or it can't be told."""
    spared: Spared = field(default_factory=Spared)
    """What it spares, if it does not refuse because of that."""
    unread: tuple[str, ...] = ()
    """Why nobody can tell what it spares."""


def purge_refusal(
    table: Table, storage: Storage, manifests: Manifests, files: TableFiles, load: Callable[[], Table]
) -> Refusal:
    """Why a purge refuses, or what it spares.

    Its folder is not the topic's own, the storage knows more than the catalog, nobody can tell what is to be spared, or
    a live file is not there.
    """
    paths = [each.path for each in storage.files.values()]
    other = told_not_own(table, paths)
    if other:
        return Refusal(f"its folder {table.location()} {other.why}, and no purge deletes anything: {other.todo}")
    try:
        apart = told_apart(table, paths, files, load)
        spared = spared_for(table, apart, manifests)
    except (StorageUnavailable, OSError) as error:
        unread = f"metadata files that this catalog does not name, and a purge may spare ({one_line(error)})"
        return Refusal(unread=(unread,))
    if apart.elsewhere:
        return Refusal(why_refused_here(table, apart.elsewhere))
    if spared.unread:
        return Refusal(spared.unread, spared)
    try:
        found = _live_and_gone(table, storage, manifests, files, load)
    except (LogCorrupt, OSError):
        return Refusal(spared=spared)
    return Refusal(why_no_purge(*found) if found else "", spared)


def require_live_files(
    table: Table, storage: Storage, manifests: Manifests, files: TableFiles, load: Callable[[], Table]
) -> None:
    """Whether all that a table needs, and that lies below its location, was listed, or came since.

    ``load`` gives the table as it is now.

    Raises:
        LogCorrupt: a file is not there.
    """
    found = _live_and_gone(table, storage, manifests, files, load)
    if found:
        path, todo = found
        what = f"topic {table.name()[-1]}: live file {path} is not there, and nothing was deleted"
        raise LogCorrupt(f"{what}: {todo}, and purge again")


def _live_and_gone(
    table: Table, storage: Storage, manifests: Manifests, files: TableFiles, load: Callable[[], Table]
) -> tuple[str, str] | None:
    """The first live file that is not there, and what to do; null if all are."""
    is_below = below(storage.location)
    live = live_references(table, manifests)
    for path, form in comparable_forms([*live.data_bytes, *live.metadata_bytes]).items():
        # A pipe in a file's place is listed, without a byte; an empty file is damaged, and there.
        is_listed = form in storage.files and storage.files[form].size_bytes > 0
        if is_listed or not is_below(form) or files.exists(path):
            continue
        # Another purge may have deleted it since the table was loaded: then the table has moved on.
        live_now = live_references(load(), manifests).keys()
        if form in live_now:
            todo = "put it back from a copy of the storage"
            if form in comparable_forms(hidden.path for hidden in storage.hidden.files).values():
                todo = "its bucket still has it, so take its delete marker away"
            elif path in watermarks_paths(table.properties):
                todo += f", {give_up_watermarks(table.name()[-1])}"
            return path, todo
    return None
