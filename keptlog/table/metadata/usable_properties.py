"""Properties of a table that PyIceberg takes for commits: one that it can't use is told by its name.

Other programs set them for their own commits. Spark takes nearly any text, and a class that says where files go may be
installed only there. PyIceberg meets it in the middle of a commit, with an error that does not say of which table.
Some are taken for a commit that makes a snapshot, and for no other: a purge can expire snapshots without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyiceberg.table import Table, TableProperties
from pyiceberg.table.locations import load_location_provider
from pyiceberg.utils.properties import property_as_bool, property_as_int

from keptlog.errors import Action, LogCorrupt
from keptlog.table.waiting.reaching import one_line

Use = Callable[[Table, str], object]
"""What PyIceberg does with the property of a name."""


def _locations(table: Table, _: str) -> object:
    return load_location_provider(table.location(), table.properties)


def _class(table: Table, name: str) -> object:
    return _locations(table, name) if table.properties[name] else None


def _flag(table: Table, name: str) -> object:
    """Nobody looks at it where a class says where files go."""
    has_class = table.properties.get(TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL)
    return None if has_class else property_as_bool(table.properties, name, default=False)


def _number(table: Table, name: str) -> object:
    return property_as_int(table.properties, name)


def _number_without_default(table: Table, name: str) -> object:
    return int(table.properties[name])


_OF_COMMITS: Mapping[str, Use] = {
    TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL: _class,
    TableProperties.OBJECT_STORE_ENABLED: _flag,
    TableProperties.WRITE_OBJECT_STORE_PARTITIONED_PATHS: _locations,  # behind the two that say whether it is taken
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: _number,
}
_OF_SNAPSHOTS: Mapping[str, Use] = {TableProperties.WRITE_PARTITION_SUMMARY_LIMIT: _number_without_default}


def require_usable_properties(table: Table) -> None:
    """Refuse to commit to a table with a property that no commit of PyIceberg's can be made with.

    Raises:
        LogCorrupt: names the property, and says what to do.
    """
    _require_usable(table, _OF_COMMITS, "commit")


def require_usable_for_snapshots(table: Table) -> None:
    """Refuse to make a snapshot of a table with a property that PyIceberg can make none with.

    Raises:
        LogCorrupt: names the property, and says what to do.
    """
    _require_usable(table, _OF_SNAPSHOTS, "snapshot")


def _require_usable(table: Table, uses: Mapping[str, Use], what: str) -> None:
    for name, use in uses.items():
        if name not in table.properties:
            continue
        try:
            use(table, name)
        except Exception as error:  # a class of another program may raise anything
            told = LogCorrupt(
                f"table {'.'.join(table.name())}: no {what} can be made with its property "
                f"{name}={table.properties[name]} ({one_line(error)}), and nothing is "
                "written to it: set it right, or take it away"
            )
            told.action = Action.FIX_CONFIG  # no file is wrong
            raise told.of_property() from error
