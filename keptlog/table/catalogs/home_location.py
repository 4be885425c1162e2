"""Where a home was made: all its files are named by their whole paths, so it can be changed nowhere else.

    /data/home          made here: its catalog names /data/home/warehouse/…
    /backup/home        cp -r: its catalog names /data/home/warehouse/… too. A purge through it would take newer files
                        of the original for orphans, because its catalog has never heard of them
    /mnt/home           mv: nothing is where the catalog says

So a home has an id and its location, two properties of the catalog's namespace, from the moment at which it is made;
an older one gets them with its first change. What its id will be is known before: it is made of what the catalog names,
which nothing changes till then, and no other home has the same, wherever it lies. Both are copied with the catalog,
however that is done, and compared with where the catalog lies now. Links and mounts are no matter: it is asked whether
both paths lead to one folder. Reading is allowed everywhere; it shows what the paths lead to.

Whatever path a home is opened by, new tables are named below the one where it was made (``named_at``), so one link
mends each move. Homes that an earlier keptlog has moved have tables below other paths too. Each of these paths must
lead to the home like the first (``_strays``): else a part of it lies elsewhere, and what is appended there is lost with
that.

What can't be seen: a copy on another machine at the same path. It has files of its own, and is a home of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.log.words.counted import some_of
from keptlog.regular_file import read_file
from keptlog.table.catalogs.embedded import DATABASE, looking_into, warehouse_of
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.metadata_json import metadata_json
from keptlog.table.namespaces import CATALOG_NAME, DELETING, NAMESPACE, RECEIPTS

HOME_ID, HOME_LOCATION = "keptlog.home-id", "keptlog.home-location"
"""Properties of the catalog's namespace."""

REMEMBER = (
    "insert or ignore into iceberg_namespace_properties "
    "values (?, ?, ?, coalesce(?, lower(hex(randomblob(16))))), (?, ?, ?, ?)"
)
"""Gives a home its id and its location, unless it has them; SQLite throws the dice for one without topics."""
_FOLDERS = {NAMESPACE: NAMESPACE, DELETING: NAMESPACE, RECEIPTS: RECEIPTS}
"""By namespace, the folder of the warehouse in which an embedded catalog puts its tables; a renamed one stays there."""
ITS_RECEIPTS = "its receipts"
"""How the chain is called among ``Elsewhere.tables``."""
_NAMED = 3
_WITHOUT_LOCKS = "ro&immutable=1"
"""How SQLite is told to wait for nobody, and to change nothing; what is half written then may be misread."""


class _Lying(NamedTuple):
    """A table, and where its metadata lies: ``home``/warehouse/``below``."""

    namespace: str
    name: str
    home: Path
    below: str

    def file_in(self, home: Path) -> Path:
        """Its metadata file, if the table lay in that home."""
        return home / "warehouse" / self.below

    def was_brought_to(self, home: Path) -> bool:
        """Whether metadata of this table lies in that home too: the file that is named, or another one by its id.

        A folder of its name proves nothing: a topic of that name that was deleted leaves it, and another one's files.
        """
        if _is_file(self.file_in(home)):
            return True
        beside = _metadata_in(self.file_in(home).parent)
        table_id = _table_id(self.file_in(self.home)) if beside else None
        return table_id is not None and any(_table_id(each) == table_id for each in beside)


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a catalog says of its home."""

    home_id: str | None
    made_at: Path | None
    """Null without an id."""
    others: tuple[_Lying, ...]
    """Tables that are named as those of a home are, and not below ``made_at``."""
    id_to_be: str | None = None
    """Of one without an id: that which it gets with its next change. Null if it has no topics either."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A home that does not lie where it was made, or of which some tables are named where it does not lie."""

    home: Path
    made_at: Path
    is_copy: bool
    """Whether the home that was made is still there; else it was moved."""
    is_place_taken: bool
    """Whether something is there: a folder, inside of which the home would end, or a link, which no folder replaces."""
    tables: tuple[str, ...] = ()
    """Those that are named there; none where that is the path below which all are."""

    def __str__(self) -> str:
        """Why nothing may be changed through it, in one line, with what to do."""
        if self.is_copy:
            what, todo = "the files", f"use KEPTLOG_HOME={shlex.quote(str(self.made_at))}"
            if self.tables:
                what, todo = f"the files of {some_of(self.tables, _NAMED)}", self.way_back
            return (
                f"home {self.home} is a copy of the home at {self.made_at}, and its catalog names {what} there: "
                f"nothing may be changed through it; {todo}"
            )
        what = f"the files of {some_of(self.tables, _NAMED)}" if self.tables else "all files"
        return (
            f"home {self.home} was moved from {self.made_at}, and its catalog names {what} by their paths there: "
            f"nothing may be changed; {self.way_back}"
        )

    @property
    def way_back(self) -> str:
        """What to do about one that was moved, or of which a part lies in a copy."""
        home, made_at = self.home, self.made_at
        aside = "move what lies there now aside; then " if self.is_place_taken else ""
        if not self.tables:
            return f"{aside}move it back, or make {made_at} a link to it"
        if not self.is_copy:
            return f"{aside}make {made_at} a link to {home}"
        copy = shlex.join(["cp", "-an", f"{made_at}/warehouse/.", f"{home}/warehouse"])
        return f"copy here what is there alone ({copy}); then {aside}make {made_at} a link to {home}"


def why_elsewhere(home: Path, table: tuple[str, ...] = ()) -> str | None:
    """Why nothing may be changed through this home; null if it lies where it was made, or if there is nothing yet.

    ``table`` is one that is not there, by namespace and name: then what says why, or null.

    Raises:
        sqlite3.Error: its catalog can't be read.
    """
    told = _told(*table) if table else ""
    return next(
        (str(found) for found in elsewheres(home) if not told or not found.tables or told in found.tables), None
    )


def why_copied(home: Path) -> str | None:
    """The same, only if all of this home is a copy: then what it tells is of the time at which it was made.

    Raises:
        sqlite3.Error: its catalog can't be read.
    """
    return next((str(found) for found in elsewheres(home) if found.is_copy and not found.tables), None)


def why_still_elsewhere(home: Path, known: str) -> str | None:
    """The same for a home that was opened elsewhere: it may have been moved back since, or its old place made a link.

    ``known`` is what was said then; it holds where the catalog can't be read now.
    """
    try:
        return why_elsewhere(home)
    except sqlite3.Error:
        return known


def elsewheres(home: Path) -> list[Elsewhere]:
    """Where this home was made, if that is not where it lies; and where its tables are named besides, if it is neither.

    Raises:
        sqlite3.Error: its catalog can't be read.
    """
    known = _known_of(home)
    if known is None:
        return []
    origin, made_at = known
    found = []
    if not _is_same(made_at, home):
        found.append(Elsewhere(home, made_at, _is_copy(home, origin, made_at), os.path.lexists(made_at)))
    return [*found, *_strays(home, origin, made_at)]


def _strays(home: Path, origin: _Origin, made_at: Path) -> Iterator[Elsewhere]:
    """Other places that tables of this home are named at, and that don't lead to it.

    A table that lies in a home of another's, or in none, was put there by somebody: it is no part of this one.
    """
    lying: dict[Path, list[_Lying]] = {}
    for each in origin.others:
        lying.setdefault(each.home, []).append(each)
    for place, tables in lying.items():
        if place == made_at or _is_same(place, home) or _is_same(place, made_at):
            continue
        is_copy = _is_stray_copy(home, origin, place, tables)
        moved = [each for each in tables if not _is_file(each.file_in(place)) and _is_file(each.file_in(home))]
        if is_copy or moved:
            told = tuple(dict.fromkeys(_told(each.namespace, each.name) for each in (tables if is_copy else moved)))
            yield Elsewhere(home, place, is_copy, os.path.lexists(place), told)


def which_home(home: Path) -> str | None:
    """What tells a home from all others, also from one at this path on another machine, and from a copy beside it.

    It stays where a link leads to the home from elsewhere. Null of one that has neither an id nor topics.

    Raises:
        StorageUnavailable: another process holds its catalog for longer than a commit takes.
        sqlite3.Error: its catalog can't be read.
    """
    known = _known_of(home)
    if known is None:
        return None
    origin, made_at = known
    home_id = origin.home_id or origin.id_to_be
    return home_id if home_id is None or _is_same(made_at, home) else f"{home_id} {home}"


def is_of_home(database: Path) -> bool:
    """Whether a database of SQLite is the own catalog of a home; one that can't be read is told by whoever opens it."""
    if not os.path.isfile(database):  # noqa: PTH113  # as below
        return False
    try:
        with looking_into(database, "rw") as connection:
            return HOME_ID in (_stored_in(connection) or ())
    except (sqlite3.Error, StorageUnavailable):
        return False


def named_at(home: Path) -> Path:
    """The path that the paths of a home's files begin with: where it was made, if that leads to it.

    Raises:
        StorageUnavailable: another process holds its catalog for longer than a commit takes.
        sqlite3.Error: its catalog can't be read.
    """
    known = _known_of(home)
    return _named_at(home, known[1] if known else None)


def _named_at(home: Path, made_at: Path | None) -> Path:
    return made_at if made_at and _is_same(made_at, home) else home


def warehouse_named(home: Path) -> str:
    """Below which location the embedded catalog of a home puts all tables; raises what ``named_at`` does."""
    return warehouse_of(named_at(home))


def remembered(home: Path) -> tuple[str | None, ...]:
    """What goes into ``REMEMBER``: an older home was made where its tables say; raises what ``named_at`` does."""
    known = _known_of(home)
    id_to_be, made_at = (known[0].id_to_be, known[1]) if known else (None, None)
    location = str(_named_at(home, made_at))
    return CATALOG_NAME, NAMESPACE, HOME_ID, id_to_be, CATALOG_NAME, NAMESPACE, HOME_LOCATION, location


def _known_of(home: Path) -> tuple[_Origin, Path] | None:
    """What the catalog of a home says of it, and where it was made; null if that is not known."""
    origin = _origin(home / DATABASE)
    made_at = _made_at(origin, home) if origin else None
    return (origin, made_at) if origin and made_at else None


def _made_at(origin: _Origin, home: Path) -> Path | None:
    """Without an id, where most tables lie of those that lie here, or else of all; null if there are none."""
    if origin.made_at:
        return origin.made_at
    places = [place for place, _ in Counter(each.home for each in origin.others).most_common()]
    return next((place for place in places if _is_same(place, home)), next(iter(places), None))


def _origin(database: Path, mode: str = "rw") -> _Origin | None:
    """Null if there is no catalog."""
    if not os.path.isfile(database):  # noqa: PTH113  # a Path raises where the old place may not be entered
        return None
    # Not "ro": who was killed in a commit has left a journal, and only a connection that may write can take it back.
    with looking_into(database, mode) as connection:
        stored = _stored_in(connection)
        if stored is None:
            return None
        if HOME_ID in stored and HOME_LOCATION in stored:
            made_at = Path(stored[HOME_LOCATION])
            return _Origin(stored[HOME_ID], made_at, tuple(_tables(connection, besides=f"{warehouse_of(made_at)}/")))
        tables = tuple(_tables(connection))
        return _Origin(None, None, tables, _id_to_be(tables))


def _stored_in(connection: sqlite3.Connection) -> dict[str, str] | None:
    """The properties of the namespace; null if there is no catalog."""
    if not connection.execute("select 1 from sqlite_master where name = 'iceberg_namespace_properties'").fetchall():
        return None
    query = (
        "select property_key, property_value from iceberg_namespace_properties where catalog_name = ? and namespace = ?"
    )
    return dict(connection.execute(query, (CATALOG_NAME, NAMESPACE)).fetchall())


def _id_to_be(tables: tuple[_Lying, ...]) -> str | None:
    """Each commit gives its file a random name, so no two homes name the same files."""
    named = sorted(str(each.file_in(each.home)) for each in tables if each.namespace == NAMESPACE)
    return hashlib.sha256("\n".join(named).encode()).hexdigest()[:32] if named else None


def _tables(connection: sqlite3.Connection, besides: str = " ") -> Iterator[_Lying]:
    """The tables that are named as an embedded catalog names them, but for those whose location begins so."""
    # The database looks: a commit in a home of thousands of topics asks, and would read them all each time.
    query = (
        "select table_namespace, table_name, metadata_location from iceberg_tables where catalog_name = ? "
        "and table_namespace in (?, ?, ?) and substr(metadata_location, 1, ?) <> ?"
    )
    values = (CATALOG_NAME, *_FOLDERS, len(besides), besides)
    homes: dict[str, Path] = {}
    for namespace, name, location in connection.execute(query, values).fetchall():
        folder = _FOLDERS[namespace]
        # A topic may be called warehouse, too.
        home, found, below = str(location).removeprefix("file://").rpartition(f"/warehouse/{folder}/")
        if found and home.startswith("/"):
            place = homes.get(home) or homes.setdefault(home, Path(home))
            yield _Lying(namespace, str(name), place, f"{folder}/{below}")


def _is_copy(home: Path, origin: _Origin, place: Path) -> bool:
    """Whether the home at another place is this one too. Before it got an id, a table of both says so."""
    try:
        there = _origin(place / DATABASE)
    except sqlite3.Error:
        return False
    if there and there.home_id and origin.home_id:
        return there.home_id == origin.home_id
    return there is not None and _share_a_table(home, place)


def _is_stray_copy(home: Path, origin: _Origin, place: Path, tables: list[_Lying]) -> bool:
    """The same of the home at a place that some tables alone are named at. It may be anybody's.

    So nobody waits for it, nor takes back what it left half done, unless files of these tables lie here: whoever copies
    a home brings them along, and whoever registers a table does not.
    """
    with contextlib.suppress(sqlite3.Error, StorageUnavailable):
        there = _origin(place / DATABASE, _WITHOUT_LOCKS)
        if there and there.home_id and origin.home_id:
            return there.home_id == origin.home_id
    brought = [each for each in tables if each.was_brought_to(home)]
    try:
        return bool(brought) and _is_copy(home, origin, place)
    except StorageUnavailable:
        # That it does not answer is no outage of this home; then the files alone tell.
        return any(_is_file(each.file_in(place)) for each in brought)


def _share_a_table(home: Path, place: Path) -> bool:
    tables: list[dict[tuple[str, str], _Lying]] = []
    for each in (home, place):
        with looking_into(each / DATABASE) as connection:
            tables.append({(table.namespace, table.name): table for table in _tables(connection)})
    ours, theirs = tables
    for name in ours.keys() & theirs.keys():
        # What this catalog names was committed there, if it is there: the names of metadata files are drawn.
        if ours[name].below == theirs[name].below or _is_file(ours[name].file_in(place)):
            return True
        table_id = _table_id(ours[name].file_in(home))
        if table_id and table_id == _table_id(theirs[name].file_in(place)):
            return True
    return False


def _table_id(metadata: Path) -> object:
    """Null if it can't be read."""
    with contextlib.suppress(OSError, KeptlogError, ValueError):
        return metadata_json(read_file(metadata)).get("table-uuid")
    return None


def _metadata_in(folder: Path) -> list[Path]:
    """None if it can't be looked into."""
    with contextlib.suppress(OSError, ValueError):
        return [each for each in folder.iterdir() if each.name.endswith(METADATA_ENDINGS)]
    return []


def _told(namespace: str, name: str) -> str:
    return ITS_RECEIPTS if namespace == RECEIPTS else name


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  # as above


def _is_same(made_at: Path, home: Path) -> bool:
    with contextlib.suppress(OSError):
        return made_at.samefile(home)
    return False
