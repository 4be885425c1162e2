"""Whether the folder of a topic is its own: a purge sweeps all of it, and a deletion of the topic empties it.

Where a table lies is said by its metadata, which other programs can change (``ALTER TABLE … SET LOCATION``). Whose
folder it names is told by what lies in it, by what it lies in, and by where the table lay before:

    s3://lake/keptlog/users     its own
    s3://lake/keptlog           the metadata of another table is in it
    s3://lake, /home            the warehouse is in it, or it is no folder at all
    s3://lake/photos            earlier metadata of the table, or of one of its snapshots, is somewhere else

The last is believed until no snapshot is left from before the move: as long as nothing is deleted, none goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table, TableProperties

from keptlog.errors import LogCorrupt
from keptlog.table.files import local_path
from keptlog.table.metadata_files import METADATA_ENDINGS
from keptlog.table.references import below, comparable, comparable_forms


def require_own_folder(catalog: Catalog, topic: str, table: Table, paths: Iterable[str]) -> None:
    """Refuse to delete anything in a folder that is not the topic's alone; ``paths`` are all files in it.

    Raises:
        LogCorrupt: says what else is there.
    """
    location = table.location()
    warehouse = str(catalog.properties.get("warehouse", ""))
    why = _whose(warehouse, location) or _other_table(location, paths) or _elsewhere_before(table)
    if why:
        raise LogCorrupt(
            f"topic {topic}: its folder {location} {why}, and nothing was deleted: set the location of its table back "
            "to what it was (metadata/*.metadata.json below that folder)"
        )


def folders_of(table: Table) -> set[str]:
    """Where a table lies and, if another program has moved it, where it lay: most of its files are there still."""
    return {table.location(), *(path.rpartition("/metadata/")[0] for path in _earlier(table))}


def table_in(catalog: Catalog, location: str) -> str | None:
    """A table of the catalog, in whatever namespace, that has its files in a folder; null if none is known to."""
    is_below = below(location)
    for namespace in catalog.list_namespaces():
        for identifier in catalog.list_tables(namespace):
            try:
                place = catalog.load_table(identifier).metadata_location
            except Exception:  # noqa: BLE001,S112  # it may not be read, or be no table that PyIceberg knows
                continue
            if is_below(comparable(place)):
                return ".".join(identifier)
    return None


def _whose(warehouse: str, location: str) -> str | None:
    form = comparable(f"{location}/x").removesuffix("/x")
    if not form.strip("/") or (local_path(location) is None and "/" not in form.rstrip("/")):
        return "is no folder"
    # Some catalogs only name their warehouse.
    is_place = "://" in warehouse or warehouse.startswith(("/", "file:"))
    return f"holds the warehouse {warehouse}" if is_place and below(location)(comparable(f"{warehouse}/x")) else None


def _other_table(location: str, paths: Iterable[str]) -> str | None:
    own = f"{location}/metadata"
    for path in paths:
        folder = path.rpartition("/")[0]
        if path.endswith(METADATA_ENDINGS) and folder.endswith("/metadata") and folder != own:
            return f"holds another table ({path})"
    return None


def _elsewhere_before(table: Table) -> str | None:
    own = [f"{table.location()}/metadata", table.properties.get(TableProperties.WRITE_METADATA_PATH)]
    places = [below(folder) for folder in own if folder]
    for path, form in comparable_forms(_earlier(table)).items():
        if not any(is_below(form) for is_below in places):
            return f"is not where the topic lay before ({path})"
    return None


def _earlier(table: Table) -> list[str]:
    """Its earlier metadata, and that of its snapshots."""
    lists = [snapshot.manifest_list for snapshot in table.metadata.snapshots if snapshot.manifest_list]
    return [*(entry.metadata_file for entry in table.metadata.metadata_log), *lists]
