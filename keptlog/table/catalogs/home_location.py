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

What can't be seen: a copy on another machine at the same path. It has files of its own, and is a home of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from keptlog.table.catalogs.embedded import DATABASE, looking_into
from keptlog.table.namespaces import CATALOG_NAME, NAMESPACE

HOME_ID, HOME_LOCATION = "keptlog.home-id", "keptlog.home-location"
"""Properties of the catalog's namespace."""

REMEMBER = (
    "insert or ignore into iceberg_namespace_properties "
    "values (?, ?, ?, coalesce(?, lower(hex(randomblob(16))))), (?, ?, ?, ?)"
)
"""Gives a home its id and its location, unless it has them; SQLite throws the dice for one without topics."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a catalog says of its home. Without an id, the locations are those that its tables tell of."""

    home_id: str | None
    locations: tuple[Path, ...]
    id_to_be: str | None = None
    """Of one without an id: that which it gets with its next change. Null if it has no topics either."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A home that does not lie where it was made."""

    home: Path
    made_at: Path
    is_copy: bool
    """Whether the home that was made is still there; else it was moved."""
    is_place_taken: bool
    """Whether something is there: a folder, inside of which the home would end, or a link, which no folder replaces."""

    def __str__(self) -> str:
        """Why nothing may be changed through it, in one line, with what to do."""
        if self.is_copy:
            return (
                f"home {self.home} is a copy of the home at {self.made_at}, and its catalog names the files there: "
                f"nothing may be changed through it; use KEPTLOG_HOME={shlex.quote(str(self.made_at))}"
            )
        return (
            f"home {self.home} was moved from {self.made_at}, and its catalog names all files by their paths there: "
            f"nothing may be changed; {self.way_back}"
        )

    @property
    def way_back(self) -> str:
        """What to do about one that was moved."""
        aside = "move what lies there now aside; then " if self.is_place_taken else ""
        return f"{aside}move it back, or make {self.made_at} a link to it"


def why_elsewhere(home: Path) -> str | None:
    """Why nothing may be changed through this home; null if it lies where it was made, or if there is nothing yet.

    Raises:
        sqlite3.Error: its catalog can't be read.
    """
    found = elsewhere(home)
    return str(found) if found else None


def why_still_elsewhere(home: Path, known: str) -> str | None:
    """The same for a home that was opened elsewhere: it may have been moved back since, or its old place made a link.

    ``known`` is what was said then; it holds where the catalog can't be read now.
    """
    try:
        return why_elsewhere(home)
    except sqlite3.Error:
        return known


def elsewhere(home: Path) -> Elsewhere | None:
    """Where this home was made, if that is not where it lies.

    Raises:
        sqlite3.Error: its catalog can't be read.
    """
    origin = _origin(home / DATABASE)
    for made_at in origin.locations if origin else ():
        if not _is_same(made_at, home):
            there = _origin(made_at / DATABASE)
            is_copy = bool(origin and there and there.home_id == origin.home_id)
            return Elsewhere(home, made_at, is_copy, os.path.lexists(made_at))
    return None


def which_home(home: Path) -> str | None:
    """What tells a home from all others, also from one at this path on another machine, and from a copy beside it.

    It stays where a link leads to the home from elsewhere. Null of one that has neither an id nor topics.

    Raises:
        StorageUnavailable: another process holds its catalog for longer than a commit takes.
        sqlite3.Error: its catalog can't be read.
    """
    origin = _origin(home / DATABASE)
    if origin is None:
        return None
    home_id = origin.home_id or origin.id_to_be
    if home_id is None:
        return None
    is_here = any(_is_same(made_at, home) for made_at in origin.locations)
    return home_id if is_here else f"{home_id} {home}"


def remembered(home: Path) -> tuple[str | None, ...]:
    """What goes into ``REMEMBER``.

    Raises:
        sqlite3.Error: its catalog can't be read.
    """
    origin = _origin(home / DATABASE)
    id_to_be = origin.id_to_be if origin else None
    return CATALOG_NAME, NAMESPACE, HOME_ID, id_to_be, CATALOG_NAME, NAMESPACE, HOME_LOCATION, str(home)


def _origin(database: Path) -> _Origin | None:
    """Null if there is no catalog."""
    if not os.path.isfile(database):  # noqa: PTH113  # a Path raises where the old place may not be entered
        return None
    # Not "ro": who was killed in a commit has left a journal, and only a connection that may write can take it back.
    with looking_into(database, "rw") as connection:
        if not connection.execute("select 1 from sqlite_master where name = 'iceberg_namespace_properties'").fetchall():
            return None
        query = (
            "select property_key, property_value from iceberg_namespace_properties "
            "where catalog_name = ? and namespace = ?"
        )
        stored = dict(connection.execute(query, (CATALOG_NAME, NAMESPACE)).fetchall())
        if HOME_ID in stored and HOME_LOCATION in stored:
            return _Origin(stored[HOME_ID], (Path(stored[HOME_LOCATION]),))
        query = "select metadata_location from iceberg_tables where catalog_name = ? and table_namespace = ?"
        named = [location for (location,) in connection.execute(query, (CATALOG_NAME, NAMESPACE)) if location]
        homes = (_home_of(location) for location in named)
        return _Origin(None, tuple(dict.fromkeys(home for home in homes if home)), _id_to_be(named))


def _id_to_be(metadata_locations: list[str]) -> str | None:
    """Each commit gives its file a random name, so no two homes name the same files."""
    text = "\n".join(sorted(metadata_locations))
    return hashlib.sha256(text.encode()).hexdigest()[:32] if text else None


def _home_of(metadata_location: str) -> Path | None:
    """The home of a table that lies where an embedded catalog puts it."""
    home, warehouse, _ = metadata_location.removeprefix("file://").rpartition(f"/warehouse/{NAMESPACE}/")
    return Path(home) if warehouse else None


def _is_same(made_at: Path, home: Path) -> bool:
    with contextlib.suppress(OSError):
        return made_at.samefile(home)
    return False
