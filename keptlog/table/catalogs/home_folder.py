"""What lies in the folder of a home with an embedded catalog: whether a catalog was made there, and is still there.

A folder without a catalog looks like a home in which no topic was created yet, and may be one that was lost:

    /data/home                            nothing there: a wrong path, or a disk that is not mounted
    /data/home/server.properties          no catalog: it was never made, or the home was emptied
    /data/home/warehouse/keptlog/users    files of a topic and no catalog: it was certainly made, and is lost

The last is no home without topics for anybody: whoever took it for one would clean nothing and say that all is well,
or would begin a second catalog above the files of the first. The others are, for who makes topics there; a command that
looks at what is there says what it has found instead.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from operator import methodcaller
from pathlib import Path

from keptlog.disk import not_listed
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.folders import names_in
from keptlog.log.words.advice import CREATE_TOPIC
from keptlog.log.words.counted import counted, some_of
from keptlog.regular_file import kind_instead
from keptlog.settings import require_entry
from keptlog.table.catalogs.configuration import catalog_settings
from keptlog.table.catalogs.embedded import DATABASE, looking_into, may_be_configured
from keptlog.table.namespaces import NAMESPACE

RESTORE = "put it back from a backup of this home, or set KEPTLOG_HOME to the home that you mean"
_SHOWN = 3
_EMPTY = "is empty"
_METADATA = methodcaller("endswith", ".metadata.json")


def topics_with_files(home: Path) -> list[str]:
    """The topics whose metadata lies where an embedded catalog puts it, sorted, whatever a catalog says.

    Raises:
        StorageUnavailable: a folder can't be listed, so that nobody knows.
    """
    folder = home / "warehouse" / NAMESPACE
    return [
        name for name in _names_in(folder, home) if any(map(_METADATA, _names_in(folder / name / "metadata", home)))
    ]


def _names_in(folder: Path, home: Path) -> list[str]:
    try:
        return names_in(folder)
    except OSError as error:
        raise not_listed(folder, error, f"so that nobody knows whether home {home} has topics") from error


def require_folder(home: Path) -> None:
    """Refuse a home that is there and no folder.

    Raises:
        InvalidConfig: naming it.
    """
    if home.exists() and not home.is_dir():
        raise InvalidConfig(f"home {home} is a file, and a home is a folder: set KEPTLOG_HOME to the one that you mean")


def require_catalog_not_lost(home: Path) -> None:
    """Of a home in which no catalog is: refuse to take it for one without topics, if there are files of topics.

    Raises:
        StorageUnavailable: naming the file and the topics.
        InvalidConfig: there are none, but none can be made: a folder, or a pipe, is in the catalog's place.
    """
    topics = topics_with_files(home)
    is_what = _in_its_place(home)
    # Another process may have made the catalog since it was looked for, and a topic before its files were.
    if topics and not is_made(home / DATABASE):
        raise StorageUnavailable(
            f"home {home} has lost its catalog: {home / DATABASE} {is_what or 'is not there'}, and the files of "
            f"{counted(len(topics), 'topic')} are ({some_of(topics, _SHOWN)}): {RESTORE}; "
            "without a backup, keptlog topic register TOPIC --new-catalog begins a new one; nothing was changed"
        ).of_damage()
    if is_what not in {None, _EMPTY}:
        raise InvalidConfig(
            f"home {home} can't be opened: {home / DATABASE} {is_what}, and a catalog is a file: move it away, or "
            "set KEPTLOG_HOME to the home that you mean"
        )


def lost_since(home: Path) -> str:
    """What is said of a home whose catalog was there when it was opened, and is not there now."""
    there = _in_its_place(home)
    is_what = f"{there} now" if there else "is not there any more"
    return f"home {home} has lost its catalog: {home / DATABASE} {is_what}: mount its disk again, {RESTORE}"


def _in_its_place(home: Path) -> str | None:
    """What is said of the path of a catalog that is lost; null if nothing is there.

    A folder is what a container engine makes there, if it is to bind a file that is not there.
    """
    database = home / DATABASE
    if not database.exists():
        return None
    kind = "a folder" if database.is_dir() else kind_instead(str(database))
    return f"is {kind}" if kind else _EMPTY


def require_home(home: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse to look at a home in which no topic was ever created: it may be the wrong one.

    Raises:
        InvalidConfig: saying where it was looked for.
        StorageUnavailable: topics were created, and the catalog is lost; or this user may not enter the home.
    """
    unbegun = why_unbegun(home, "" if environment.get("KEPTLOG_HOME") else ", where it is by default", environment)
    if unbegun:
        raise InvalidConfig(f"{unbegun}; set KEPTLOG_HOME to the home that you mean, or make one there: {CREATE_TOPIC}")


def why_unbegun(home: Path, which: str = "", environment: Mapping[str, str] = os.environ) -> str | None:
    """What is said of a home without a catalog: that it has no topics may be true, and nobody can tell.

    Null if there is one. Where another catalog is configured, topics are elsewhere, and nothing is asked: null as well.
    ``which`` comes after the home's path.

    Raises:
        InvalidConfig: it is no folder.
        StorageUnavailable: topics were created, and the catalog is lost; or this user may not enter the home.
    """
    require_entry(home)
    if is_made(home / DATABASE) or (may_be_configured(environment) and catalog_settings()):
        return None
    require_folder(home)
    require_catalog_not_lost(home)
    if not home.exists():
        return f"there is no home at {home}{which}"
    named = f"home {home}{which}," if which else f"home {home}"
    what = "has no catalog" if _names_in(home, home) else "is an empty folder"
    return f"{named} {what}: no topic was ever created there, or it was emptied, or its disk is not mounted"


def is_made(database: Path) -> bool:
    """Whether there is a catalog; one that can't be read is one, and whoever opens it says why."""
    if not database.is_file():
        return False
    query = "select 1 from sqlite_master where name = 'iceberg_tables'"
    try:
        with looking_into(database) as connection:
            return bool(connection.execute(query).fetchall())
    except sqlite3.Error:
        return True
