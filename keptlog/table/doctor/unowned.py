"""Folders of topics that no catalog names any more: all that was in a topic may lie there, and no purge ever comes.

Another program drops a topic's table and leaves the files, as SQL's ``DROP TABLE`` without ``PURGE`` does; or the
catalog is put back to a time before the topic was made; or a run staged files after a topic was deleted.

    warehouse/keptlog/users     a table of ``keptlog`` lies there           a topic
    warehouse/keptlog/stock     a table of ``keptlog_deleting`` does        a topic that is being deleted
    warehouse/keptlog/moved     a table that lies elsewhere now began here   a topic, whose records are here
    warehouse/keptlog/orders    metadata alone                              a creation or a deletion that was killed
    warehouse/keptlog/latest    the same                                    a view of another engine
    warehouse/keptlog/views     a view's metadata, and other files          **unowned**, with a view in it
    warehouse/keptlog/carts     what keptlog keeps beside a table, alone    who was killed as the topic was deleted
    warehouse/keptlog/bags      the same, with a journal or erasures        **unowned**: nobody else may tell of it
    warehouse/keptlog/sold      a table of another namespace does           unowned, and that table's: it was renamed
    warehouse/keptlog/cust      no table, and other files                   **unowned**

Where the warehouse is one that another catalog may have too, it may also be that one's topic, and live. What is advised
says so first: whoever registers its table here and deletes it deletes it there.

It is looked for where the catalog has a rule for where tables lie. A REST catalog chooses by itself, and only its
server can tell what else is there. Of a home that is a copy nothing is said: its catalog names the original's files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from keptlog.errors import Action, KeptlogError, StorageUnavailable, UnknownTopic, first_line
from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.next_command import next_command
from keptlog.log.words.units import size
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.metadata_json import is_of_a_view
from keptlog.table.metadata.references import below, comparable
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.topic_storage import left_behind, tells_alone
from keptlog.table.unopened import UnopenedStore
from keptlog.table.waiting.reaching import is_out_of_reach, reaching
from keptlog.table.waiting.side_by_side import side_by_side

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from keptlog.storage.files import StoredFile
    from keptlog.table.store import LogStore

_NAMED = 3
_KEEP = (
    "keep a copy of its metadata/gc and metadata/receipts: they may be all that tells which files were deleted, or "
    "which keys were to be erased; then "
)


@dataclass(frozen=True, slots=True)
class UnownedFolder:
    """A folder below that of all topics, with files of a topic and no table."""

    path: str
    files: int
    bytes: int
    last_metadata: str | None
    """The newest metadata file in it, from which a catalog can take the table in again."""
    table: str | None = None
    """A table of another namespace whose files these are: another program has renamed the topic's."""
    is_name_taken: bool = False
    """Whether a topic that lies elsewhere has the folder's name: what was in the folder can't get it back."""
    unread: tuple[str, ...] = ()
    """Namespaces and tables that can't be looked at: it may be one of them."""
    is_shared: bool = False
    """Whether it may be a topic of another catalog below the same warehouse."""
    last_written_ms: int = 0
    """When the newest of its files was written."""
    tells: bool = False
    """Whether it has journals, or erasures: nobody else may tell what was deleted, or was to be."""
    has_view: bool = False
    """Whether another engine has put a view there since: its files would go with the topic's."""
    is_view_named: bool = True
    """Whether this catalog may name one in it: who drops a view, or makes it elsewhere, leaves its metadata."""
    unread_metadata: str | None = None
    """A metadata file that can't be read, and why: nobody knows whether it is a view's."""
    needed_by: tuple[str, ...] = ()
    """Topics that have live files in it, where that was asked (``needed_there``)."""
    unread_topics: tuple[str, ...] = ()
    """Topics that may have some, for they can't be read."""

    @property
    def name(self) -> str:
        """Mostly that of the topic that was."""
        return self.path.rpartition("/")[2]

    @property
    def todo(self) -> str:
        """What a person can do."""
        if self.table:
            name, why = (
                ("NAME", f" ({self.name} is a topic that was made anew)") if self.is_name_taken else (self.name, "")
            )
            return (
                f"if it is to be a topic again, name the table {NAMESPACE}.{name}{why}, with PyIceberg's "
                f"catalog.rename_table({self.table!r}, ({NAMESPACE!r}, {name!r})); else its files are that table's"
            )
        if self.last_metadata is None:
            return f"{self._first}{self._view}{_KEEP if self.tells else ''}delete the folder, if nobody needs it"
        first = f"see first that it is not that of {some_of(self.unread, _NAMED)}, which can't be read; then "
        by_name = f"with {next_command('topic register', self.name)}, or under another name "
        by_name = f"under another name ({self.name} is a topic that was made anew), " if self.is_name_taken else by_name
        return (first if self.unread else "") + (
            f"{self._first}{self._view}put the topic back, {by_name}"
            f"with keptlog topic register NAME --metadata {self.last_metadata}; if it is to go, keptlog "
            "topic delete NAME then deletes it, with a receipt"
        )

    def __str__(self) -> str:
        if self.table:
            return (
                f"{self.path}: the table {self.table} lies in this folder, and is no topic there: no purge comes there"
            )
        what = f"{counted(self.files, 'file')} ({size(self.bytes)})"
        if self.is_shared:
            whose = "no topic of this catalog"
            return f"{self.path}: {whose} lies in this folder, and {what} do: no purge of this catalog will delete them"
        return f"{self.path}: no topic lies in this folder any more, and {what} do: no purge will delete them"

    @property
    def _first(self) -> str:
        """What is to be known before anything is done; empty where nobody else can have the folder."""
        needed = f"leave it as long as live files of {some_of(self.needed_by, _NAMED)} lie there; then "
        unread = f"leave it until {some_of(self.unread_topics, _NAMED)} can be read, which may need files there; then "
        needed = (needed if self.needed_by else "") + (unread if self.unread_topics else "")
        if not self.is_shared:
            return needed
        return needed + (
            f"its newest file is of {iso_time(self.last_written_ms)}. If another catalog has it, leave it: what is "
            "deleted here is gone there. Then give the topics of this catalog another folder, with PyIceberg's "
            f"catalog.update_namespace_properties({NAMESPACE!r}, updates={{'location': FOLDER}}). Only if no other "
            "catalog has it: "
        )

    @property
    def _view(self) -> str:
        """What comes before anything that deletes the folder, or may."""
        unread, view = "", ""
        if self.unread_metadata:
            unread = f"see first that this is no view's: {self.unread_metadata}; then "
        if self.has_view and not self.is_view_named:
            view = (
                "see first that no other catalog has the view whose metadata is in this folder: this one names none "
                "in it; then "
            )
        elif self.has_view:
            view = "drop the view that another engine has put into this folder, or make it elsewhere; then "
        return unread + view

    @property
    def error(self) -> UnknownTopic:
        """The same for those who were to look at all topics."""
        return UnknownTopic(f"{self}; {self.todo}")


class _Tables(Protocol):
    """A catalog's tables of topics, as far as it must be known where they lie."""

    @property
    def parent(self) -> str | None:
        """The folder below which it puts them; null if it has no rule."""

    def folders(self) -> Collection[str]:
        """Where they lie and have lain, also those of topics that are being deleted."""


def unowned_folders(store: LogStore | UnopenedStore) -> list[UnownedFolder]:
    """All that there are, by path; none where nobody can tell.

    Raises:
        StorageUnavailable: the catalog can't be reached, or a folder can't be listed, or two in a row can't be read.
    """
    if store.read_only:
        return []
    with reaching("the folder of all topics can't be listed"):
        if not isinstance(store, UnopenedStore):
            return _in_store(store)
        embedded = store.embedded_tables()
        if embedded is not None and not _found(store.files, embedded):
            return []
        # Where a table lay before it was moved, its metadata alone tells.
        return _in_store(store.opened)


def _in_store(store: LogStore) -> list[UnownedFolder]:
    from keptlog.table.chosen import fitting  # noqa: PLC0415  # it opens the catalog, which few looks need

    catalog = store.committer.catalog
    found = _found(store.files, _OfCatalog(catalog))
    chosen = set(fitting(store, (each.name for each in found)))
    return _with_tables(catalog, [each for each in found if each.name in chosen])


def _with_tables(catalog: Catalog, found: Sequence[UnownedFolder]) -> list[UnownedFolder]:
    """The same, with the tables of other namespaces that lie in them: all are asked for once, if it matters."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError  # noqa: PLC0415  # as above

    from keptlog.table.catalogs.shared_warehouse import may_be_shared  # noqa: PLC0415  # as above
    from keptlog.table.commits.loading import topic_names  # noqa: PLC0415  # as above
    from keptlog.table.removal.own_folder import places_of  # noqa: PLC0415  # as above

    names: list[tuple[str, ...]] = []
    unread: list[str] = []
    for namespace in catalog.list_namespaces() if found else ():
        try:
            names += () if namespace in {(NAMESPACE,), (DELETING,)} else catalog.list_tables(namespace)
        except NoSuchNamespaceError:
            continue  # it was removed just now
        except Exception:  # noqa: BLE001  # it is none of ours, whatever is wrong with it
            unread.append(".".join(namespace))

    def places(name: tuple[str, ...]) -> tuple[str, ...] | None:
        try:
            table = catalog.load_table(name)
        except NoSuchTableError:
            return ()  # gone by now, or no table of Iceberg's
        except Exception:  # noqa: BLE001  # as above
            return None
        return places_of(table)

    loaded = side_by_side(places, names)
    unread += [".".join(name) for name, forms in loaded.items() if forms is None]

    def whose(folder: UnownedFolder) -> str | None:
        is_below = below(folder.path)
        return next((".".join(name) for name, forms in loaded.items() if any(map(is_below, forms or ()))), None)

    is_shared = may_be_shared(catalog)
    taken = set(topic_names(catalog)) if found else set()
    told = [
        replace(each, table=whose(each), unread=tuple(unread), is_shared=is_shared, is_name_taken=each.name in taken)
        for each in found
    ]
    return [replace(each, is_view_named=_may_have_view(catalog, each)) if each.has_view else each for each in told]


def _may_have_view(catalog: Catalog, folder: UnownedFolder) -> bool:
    """Whether a catalog has anything in a folder that a view's metadata is in; only SQL's can be asked for views."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415  # as above

    from keptlog.table.catalogs.catalog import tables_like  # noqa: PLC0415  # as above

    if not isinstance(catalog, SqlCatalog):
        return True
    return any(map(below(folder.path), map(comparable, tables_like(catalog, folder.name))))


def _found(files: TableFiles, tables: _Tables) -> list[UnownedFolder]:
    parent = tables.parent
    if parent is None:
        return []
    # Listed before the catalog is asked, and that again in the end: topics come and go meanwhile.
    names = _without_table(parent, _folders_in(files, parent), tables)
    silence = _Silence()
    looked = {name: _unowned(f"{parent}/{name}", _MetadataLook(files, silence)) for name in names}
    found = {name: folder for name, folder in looked.items() if folder}
    return [found[name] for name in _without_table(parent, found, tables)]


def _without_table(parent: str, names: Collection[str], tables: _Tables) -> list[str]:
    owned = {comparable(folder) for folder in tables.folders()} if names else set()
    return sorted(name for name in names if comparable(f"{parent}/{name}") not in owned)


def _folders_in(files: TableFiles, parent: str) -> Collection[str]:
    local = local_path(parent)
    if local is None:
        return {each.path.removeprefix(f"{parent}/").partition("/")[0] for each in files.list(parent)}
    try:
        with os.scandir(local) as entries:
            return [each.name for each in entries if each.is_dir()]
    except FileNotFoundError:
        return []


def _unowned(path: str, looked: _MetadataLook) -> UnownedFolder | None:
    """Null if nothing of a topic is left there."""
    stored = list(looked.files.list(path))
    if not left_behind(path, (each.path for each in stored)):
        return None
    metadata = [each for each in stored if each.path.endswith(METADATA_ENDINGS)]
    newest_first = [each.path for each in sorted(metadata, key=_version, reverse=True)]
    views = list(takewhile(looked.is_of_a_view, newest_first))
    # A view counts its versions from 0, and may have fewer than the topic had: its first one tells of it.
    firsts = [each.path for each in metadata if _version(each)[0] <= 0]
    has_view = bool(views) or any(map(looked.is_of_a_view, firsts))
    total = sum(each.size_bytes for each in stored)
    written_ms = max(each.modified_ms for each in stored)
    last = next(iter(newest_first[len(views) :]), None)
    tells = any(map(tells_alone(path), (each.path for each in stored)))
    found = UnownedFolder(path, len(stored), total, last, last_written_ms=written_ms, tells=tells, has_view=has_view)
    return replace(found, unread_metadata=looked.unread)


@dataclass
class _Silence:
    """Whether nothing was had of the folder that was looked into last: of one more that is the store's doing."""

    is_suspected: bool = False


@dataclass
class _MetadataLook:
    """Metadata files of one folder that were looked into.

    One that can't be read counts as the topic's, and costs no other folder: its disk may be bad there, or it may have
    been written with other rights. Where the store says no, it says it of the next one too, and at once. Where nobody
    can say why it was waited for in vain, no other file of its folder is waited for; and once the next folder gives
    nothing either, that is said of neither: the store is silent.
    """

    files: TableFiles
    silence: _Silence
    """From one folder to the next."""
    unread: str | None = None
    """One that could not be read, and why: the first, or that for which no more were looked into."""
    is_given_up: bool = False

    def is_of_a_view(self, path: str) -> bool:
        """Whether the file says so: a view's are named as a table's are, and another engine may put it there."""
        if self.is_given_up:
            return False
        try:
            is_view = is_of_a_view(self.files.read_bytes(path))
        except (FileNotFoundError, ValueError):
            is_view = False  # gone by now, or damaged: whoever registers it is told
        except Exception as error:
            is_view = False
            outage = _outage(path, error)
            if outage and self.silence.is_suspected:
                raise outage from error
            self.is_given_up = outage is not None
            if outage or not self.unread:
                others = ", and no more of this folder was looked into" if outage else ""
                self.unread = f"{path} can't be read ({first_line(error)}){others}"
        self.silence.is_suspected = self.is_given_up
        return is_view


def _outage(path: str, error: Exception) -> StorageUnavailable | None:
    """Why a file can't be read now, if that may be no matter of this file; null if it surely is."""
    if not isinstance(error, StorageUnavailable):
        if not is_out_of_reach(error):
            return None
        from keptlog.table.waiting.reach import unavailable  # noqa: PLC0415  # as there

        error = unavailable(f"{path} can't be read", error)
    return error if error.action is Action.RETRY else None


def _version(metadata: StoredFile) -> tuple[int, int, str]:
    """How new it is: catalogs count in the names, and who copies files gives them new times."""
    number = metadata.path.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else -1, metadata.modified_ms, metadata.path


@dataclass(frozen=True)
class _OfCatalog:
    """The tables of an opened catalog."""

    catalog: Catalog

    @property
    def parent(self) -> str | None:
        from keptlog.table.catalogs.catalog import usual_location  # noqa: PLC0415  # see above

        location = usual_location(self.catalog, NAMESPACE, "x")
        return location.rpartition("/")[0] if location else None

    def folders(self) -> Collection[str]:
        from keptlog.table.commits.loading import topic_names  # noqa: PLC0415
        from keptlog.table.removal.deletion import being_deleted  # noqa: PLC0415  # see above

        # In this order: a topic whose deletion begins meanwhile is in both.
        names = [(NAMESPACE, name) for name in topic_names(self.catalog)]
        names += [(DELETING, name) for name in being_deleted(self.catalog)]
        # Each table is loaded, and that from afar: a catalog that is a server is waited for.
        return [folder for folders in side_by_side(self._folders, names).values() for folder in folders]

    def _folders(self, table: tuple[str, str]) -> set[str]:
        from keptlog.table.commits.loading import load_topic_table  # noqa: PLC0415
        from keptlog.table.removal.own_folder import folders_of  # noqa: PLC0415  # see above

        namespace, name = table
        try:
            with reaching(f"topic {name} can't be loaded"):
                return folders_of(load_topic_table(self.catalog, name, namespace))
        except KeptlogError:
            # It was deleted just now, or is told by itself: where it mostly lies is not called unowned.
            return {f"{self.parent}/{name}"}
