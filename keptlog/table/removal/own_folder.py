"""Whether the folder of a topic is its own: a purge sweeps all of it, and a deletion of the topic empties it.

Where a table lies is said by its metadata, which other programs can change (``ALTER TABLE … SET LOCATION``). Whose
folder it names is told by what lies in it, by what it lies in, and by where the table lay before:

    s3://lake/keptlog/users     its own
    s3://lake/keptlog           the metadata of another table is in it, or a copy of its own that is to go elsewhere
    s3://lake, /home            the warehouse is in it, or it is no folder at all
    s3://lake/photos            earlier metadata of the table, or of one of its snapshots, is somewhere else
    s3://lake/keptlog/users     the catalog names it for a second table too, as ``register_table`` brings about
    s3://lake/keptlog/users     the table says so itself (``gc.enabled=false``): whoever set that knows of other tables

Earlier metadata is believed until no snapshot is left from before the move: as long as nothing is deleted, none goes.
Where another program has put the metadata elsewhere (``write.metadata.path``), its place says nothing of the table's:
then what is written in it says where the table lay (``metadata_elsewhere``), and so it does of a second table's.

What a second table needs looks like orphans from the first. A database tells all of its tables in one query, so each
purge asks. Other catalogs are asked for each table, which only a deletion of the topic is worth.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.table.io.files import local_path
from keptlog.table.metadata.metadata_files import METADATA_ENDINGS
from keptlog.table.metadata.references import below, comparable, comparable_forms, inside
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.metadata_elsewhere import lay_elsewhere, lies_below, places_of_metadata

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table

_COPY = "copy-table-staging-"
"""Iceberg's word."""
_GC_ENABLED = "gc.enabled"
"""Iceberg's property: where it is false, its own programs expire no snapshot and delete no file."""
_UNSHARE = f"set {_GC_ENABLED} back to true if no other table needs them"


@dataclass(frozen=True, slots=True)
class NotOwn:
    """Why a topic's folder is not its alone, and what to do."""

    why: str
    todo: str = "set the location of its table back to what it was (metadata/*.metadata.json below that folder)"

    def error(self, table: Table, so: str) -> LogCorrupt:
        """The same as an error; ``so`` is what follows from it."""
        return LogCorrupt(f"topic {table.name()[-1]}: its folder {table.location()} {self.why}, and {so}: {self.todo}")


def require_own_folder(catalog: Catalog, table: Table, paths: Iterable[str]) -> None:
    """Refuse to delete anything in a folder that is not the topic's alone; ``paths`` are all files in it.

    Raises:
        LogCorrupt: says what else is there.
    """
    found = not_own(catalog, table, paths)
    if found:
        raise found.error(table, "nothing was deleted")


def require_alone(catalog: Catalog, table: Table) -> None:
    """Refuse to delete a topic whose files another table needs, whatever it costs to ask the catalog.

    Raises:
        LogCorrupt: names that table.
    """
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415  # who only looks asks no catalog

    location = table.location()
    other = None if isinstance(catalog, SqlCatalog) else table_in(catalog, location, besides=_names_of(table))
    if other:
        raise _shared(other).error(table, "nothing was deleted")


def require_not_inside(catalog: Catalog, table: Table) -> None:
    """Refuse to write into the folder of another topic: what is written there would go with that topic.

    A table comes there only if another program moves it, so only of one that was moved the others are asked.

    Raises:
        LogCorrupt: names that topic.
    """
    location, topic = table.location(), table.name()[-1]
    # As text first: each commit asks, and what was never moved is called the same everywhere.
    if all(path.startswith(f"{location}/metadata/") for path in _earlier(table)) or not _elsewhere_before(table):
        return
    form = inside(location)
    for other in _topics_around(catalog, location, form):
        if other != topic and _lies_around(catalog, other, form):
            why = f"lies in that of topic {other}, for another program has moved it"
            raise NotOwn(why).error(table, "nothing is written to it")


def _topics_around(catalog: Catalog, location: str, form: str) -> Iterable[str]:
    """Topics that a folder may lie in."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415  # who only looks asks no catalog

    from keptlog.table.catalogs.catalog import metadata_locations  # noqa: PLC0415  # as above

    if isinstance(catalog, SqlCatalog):
        for topic, path in metadata_locations(catalog).items():
            if below(path.rpartition("/metadata/")[0])(form):
                yield topic
        return
    # Others are asked for each table, and a topic's folder is called as the topic is, or has more behind a hyphen.
    parts = location.split("/")
    for identifier in catalog.list_tables(NAMESPACE):
        name = identifier[-1]
        if any(part == name or part.startswith(f"{name}-") for part in parts):
            yield name


def _lies_around(catalog: Catalog, topic: str, form: str) -> bool:
    """Whether a path lies in a topic's folder; its metadata may lie in another (``write.metadata.path``)."""
    try:
        location = catalog.load_table((NAMESPACE, topic)).location()
    except Exception:  # noqa: BLE001  # it may not be read, or be no table that PyIceberg knows
        return False
    return below(location)(form)


def not_own(catalog: Catalog, table: Table, paths: Iterable[str]) -> NotOwn | None:
    """Why a topic's folder is not its alone; null if it is. ``paths`` are all files in it."""
    location = table.location()
    warehouse = str(catalog.properties.get("warehouse", ""))
    why = _whose(warehouse, location)
    told = NotOwn(why) if why else told_not_own(table, paths)
    if told:
        return told
    other = _registered_too(catalog, table)
    return _shared(other) if other else None


def told_not_own(table: Table, paths: Iterable[str]) -> NotOwn | None:
    """As ``not_own``, as far as the table and its folder tell it; no catalog is asked."""
    if _is_shared(table):
        return NotOwn("may hold files that other tables need, for its table has gc.enabled=false", _UNSHARE)
    return _other_table(table.location(), paths) or moved_from(table)


def moved_from(table: Table) -> NotOwn | None:
    """That another program has moved a table, and from where; null if none has."""
    moved = _elsewhere_before(table)
    return NotOwn(moved) if moved else None


def _is_shared(table: Table) -> bool:
    """Whether somebody has told all engines to delete nothing of it: anything but true is false, as in Iceberg."""
    return table.properties.get(_GC_ENABLED, "true").lower() != "true"


def _registered_too(catalog: Catalog, table: Table) -> str | None:
    """Another table whose files lie in the folder, of whatever name; null if the catalog is no database."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415  # as above

    from keptlog.table.catalogs.catalog import tables_like  # noqa: PLC0415  # as above

    if not isinstance(catalog, SqlCatalog):
        return None
    own = {(catalog.name, *name) for name in _names_of(table)}
    for place in places_of_metadata(table):
        is_below = below(place)
        # However a path leads there, the folder is called the same.
        forms = comparable_forms(located := tables_like(catalog, place.rstrip("/").rpartition("/")[2]))
        for path, names in located.items():
            others = [name for name in names if name not in own]
            # Many tables may share a folder for their metadata: then it is read which of them this is.
            if others and is_below(forms[path]) and (place == table.location() or lies_below(table, path)):
                # A table of another catalog in the database is told with that catalog's name.
                return ".".join(others[0][1:] if others[0][0] == catalog.name else others[0])
    return None


def goes_on_as(catalog: SqlCatalog, own: tuple[str, str], path: str) -> str | None:
    """Another table that has the files of one whose metadata file is gone; null if the catalog has none.

    Commits to that one delete old metadata, also what the first name still leads to.
    """
    from keptlog.table.catalogs.catalog import tables_like  # noqa: PLC0415  # who only looks asks no catalog

    folder = path.rpartition("/")[0]
    for location, names in tables_like(catalog, folder.rpartition("/")[0].rpartition("/")[2]).items():
        for in_catalog, *name in names:
            if in_catalog != catalog.name or tuple(name) == own or location.rpartition("/")[0] != folder:
                continue
            with contextlib.suppress(Exception):  # it may not be read either
                # Many tables may share a folder for their metadata.
                if f"{catalog.load_table(tuple(name)).location()}/metadata" == folder:
                    return ".".join(name)
    return None


def _shared(other: str) -> NotOwn:
    return NotOwn(
        f"is that of the table {other} too",
        "take one of the two out of its catalog and leave the files, as PyIceberg's "
        f"catalog.drop_table(({NAMESPACE!r}, NAME)) does",
    )


def folders_of(table: Table) -> set[str]:
    """Where a table lies and, if another program has moved it, where it lay: most of its files are there still."""
    return {table.location(), *(path.rpartition("/metadata/")[0] for path in _earlier(table))}


def _names_of(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a topic's table may be called: its deletion may have begun since it was loaded."""
    return table.name(), (DELETING, table.name()[-1])


def table_in(catalog: Catalog, location: str, besides: Collection[tuple[str, ...]] = ()) -> str | None:
    """A table of the catalog, in whatever namespace, that has its files in a folder; null if none is known to.

    ``besides`` are the names of one that is known to.
    """
    is_below = below(location)
    for namespace in catalog.list_namespaces():
        for identifier in catalog.list_tables(namespace):
            if identifier in besides:
                continue
            try:
                other = catalog.load_table(identifier)
            except Exception:  # noqa: BLE001,S112  # it may not be read, or be no table that PyIceberg knows
                continue
            if any(map(is_below, places_of(other))):
                return ".".join(identifier)
    return None


def places_of(table: Table) -> tuple[str, str]:
    """Where a table's metadata and its files lie, in comparable form."""
    return comparable(table.metadata_location), inside(table.location())


def _whose(warehouse: str, location: str) -> str | None:
    form = inside(location).removesuffix("/x")
    if not form.strip("/") or (local_path(location) is None and "/" not in form.rstrip("/")):
        return "is no folder"
    # Some catalogs only name their warehouse.
    is_place = "://" in warehouse or warehouse.startswith(("/", "file:"))
    return f"holds the warehouse {warehouse}" if is_place and below(location)(inside(warehouse)) else None


def _other_table(location: str, paths: Iterable[str]) -> NotOwn | None:
    own = f"{location}/metadata"
    for path in paths:
        folder = path.rpartition("/")[0]
        if path.endswith(METADATA_ENDINGS) and folder.endswith("/metadata") and folder != own:
            copy = staged_copy(location, path)
            return _copied(copy) if copy else NotOwn(f"holds another table ({path})")
    return None


def _copied(folder: str) -> NotOwn:
    return NotOwn(
        f"holds a copy of its metadata, which Spark's rewrite_table_path has made ({folder})",
        "copy what the file-list in it names to its new place, if that is still to be done, then delete that folder",
    )


def staged_copy(location: str, path: str) -> str | None:
    """The folder with metadata that ``rewrite_table_path`` has made ready to be copied, if a file lies in one."""
    begin = f"{location}/metadata/{_COPY}"
    return begin + path.removeprefix(begin).partition("/")[0] if path.startswith(begin) else None


def _elsewhere_before(table: Table) -> str | None:
    is_below = below(f"{table.location()}/metadata")
    outside = [path for path, form in comparable_forms(_earlier(table)).items() if not is_below(form)]
    moved = lay_elsewhere(table, outside)
    return f"is not where the topic lay before ({moved})" if moved else None


def _earlier(table: Table) -> list[str]:
    """Its earlier metadata, and that of its snapshots."""
    lists = [snapshot.manifest_list for snapshot in table.metadata.snapshots if snapshot.manifest_list]
    return [*(entry.metadata_file for entry in table.metadata.metadata_log), *lists]
