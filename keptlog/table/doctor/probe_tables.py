"""Probes of tables as a whole: made, found, renamed, dropped, made again.

``topic delete`` renames a table into another namespace, so that no writer lands in a topic that is half deleted; and
who was made for an earlier topic of a name must not land in the later one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.table import Table

from keptlog.table.doctor.catalog_probe import Probe, PromiseBroken, require
from keptlog.table.doctor.scratch import Scratch, offsets_in
from keptlog.table.metadata.schema import PARTITION_SPEC, TABLE_PROPERTIES, TABLE_SCHEMA
from keptlog.table.waiting.reach import OUT_OF_REACH

_LIKE_TOPICS = ("shop.users-v2", "Orders_EU", "orders_us")


def _is_gone(scratch: Scratch, name: str, catalog: Catalog | None = None) -> bool:
    try:
        scratch.load(name, catalog)
    except (NoSuchTableError, NoSuchNamespaceError):
        return True
    return False


def _names(scratch: Scratch, namespace: str) -> list[str]:
    return sorted(identifier[-1] for identifier in scratch.catalog.list_tables((namespace,)))


def tables_are_as_asked_for(scratch: Scratch) -> str:
    """Create, create again, list, load, drop."""
    require(_is_gone(scratch, "table"), "a table that was never made can be loaded")
    made = scratch.create("table")
    for table in (made, scratch.load("table")):
        require(table.schema() == TABLE_SCHEMA, f"the schema was changed to {table.schema()}")
        require(table.spec() == PARTITION_SPEC, f"the partitioning was changed to {table.spec()}")
        require(table.metadata.format_version == 2, f"the format version is {table.metadata.format_version}, not 2")
        wanted = {name: text for name, text in TABLE_PROPERTIES.items() if name != "format-version"}
        changed = sorted(name for name, text in wanted.items() if table.properties.get(name) != text)
        require(not changed, f"properties that a table was made with are gone, or changed: {', '.join(changed)}")
        require(not table.metadata.snapshots, "a new table has a snapshot")
    with contextlib.suppress(TableAlreadyExistsError):
        scratch.create("table")
        raise PromiseBroken("a table was made where there is one of that name")
    require("table" in _names(scratch, scratch.namespace), "a table that was made is not listed")
    scratch.drop("table")
    require(_is_gone(scratch, "table"), "a table that was dropped can be loaded")
    require("table" not in _names(scratch, scratch.namespace), "a table that was dropped is listed")
    return "made with its schema and properties, refused a second time, listed, dropped"


def names_stay(scratch: Scratch) -> str:
    """Names that topics may have."""
    for name in _LIKE_TOPICS:
        made = scratch.create(name)
        require(made.name()[-1] == name, f"a table made as {name} is called {made.name()[-1]}")
        require(scratch.load(name).metadata.table_uuid == made.metadata.table_uuid, f"{name} is another table")
    listed = _names(scratch, scratch.namespace)
    missing = [name for name in _LIKE_TOPICS if name not in listed]
    require(not missing, f"{', '.join(missing)} is not listed under that name; what is: {', '.join(listed)}")
    return f"{', '.join(_LIKE_TOPICS)} stay as they are"


def a_rename_takes_all_along(scratch: Scratch) -> str:
    """Into the other namespace, as a deletion does it."""
    scratch.create("renamed")
    scratch.append("renamed", 1, {"probe.kept": "yes"})
    before = scratch.load("renamed")
    old, new = (scratch.namespace, "renamed"), (scratch.away, "renamed")
    scratch.catalog.rename_table(old, new)
    other = scratch.open_another()
    require(_is_gone(scratch, "renamed"), "a table that was renamed can be loaded by its old name")
    require(_is_gone(scratch, "renamed", other), "another connection loads a renamed table by its old name")
    require("renamed" not in _names(scratch, scratch.namespace), "a table that was renamed is listed where it was")
    require("renamed" in _names(scratch, scratch.away), "a table that was renamed is not listed where it is now")
    after = scratch.catalog.load_table(new)
    require(after.metadata.table_uuid == before.metadata.table_uuid, "a renamed table has another id")
    require(after.location() == before.location(), f"a renamed table moved from {before.location()}")
    require(after.properties.get("probe.kept") == "yes", "a renamed table has lost a property")
    require(offsets_in(after) == [1], f"a renamed table shows the records {offsets_in(after)}, not [1]")
    _require_refused(scratch, before, 2, "a writer who knew a table by its old name")
    require(offsets_in(scratch.catalog.load_table(new)) == [1], "a writer who knew a table by its old name has landed")
    return "found under its new name alone, with all that it had; a writer who knew the old one is refused"


def a_later_table_is_another(scratch: Scratch) -> str:
    """Drop, and make one of the same name."""
    earlier = scratch.create("again")
    scratch.drop("again")
    later = scratch.create("again")
    require(
        later.metadata.table_uuid != earlier.metadata.table_uuid, "a later table of a name has the earlier one's id"
    )
    _require_refused(scratch, earlier, 1, "a writer who was made for an earlier table of the name")
    found = offsets_in(scratch.load("again"))
    require(not found, f"what was written for an earlier table of a name has landed in the later one: {found}")
    return "a writer who was made for the earlier one is refused"


def _require_refused(scratch: Scratch, table: Table, offset: int, who: str) -> None:
    land: Callable[[], object] = scratch.change(table, offset).written(table)
    # PyIceberg itself looks at the id in the answer, with a ValueError, when it is too late.
    with contextlib.suppress(CommitFailedException, ValidationException, NoSuchTableError, ValueError, *OUT_OF_REACH):
        land()
        raise PromiseBroken(f"{who} was told that the commit landed")


PROBES = (
    Probe(
        "tables",
        "a table is made as it was asked for, once, and is listed until it is dropped",
        "topics can't be created, found or deleted reliably",
        tables_are_as_asked_for,
    ),
    Probe(
        "names",
        "a table keeps its name, with dots, dashes and capitals",
        "topics with such names can't be kept; name them in small letters, digits and underscores only",
        names_stay,
    ),
    Probe(
        "rename",
        "a table that is renamed into another namespace is there whole, and nowhere else",
        "keptlog topic delete does not work; do not delete topics",
        a_rename_takes_all_along,
    ),
    Probe(
        "same name",
        "a commit for a table that was dropped does not land in a later one of its name",
        "records of a deleted topic may come up in a later one of its name; never use a name again",
        a_later_table_is_another,
        loses=True,
    ),
)
