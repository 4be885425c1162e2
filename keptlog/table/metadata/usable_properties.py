"""Properties of a table that PyIceberg takes for each commit: one that it can't use is told by its name.

Other programs set them for their own commits. Spark takes nearly any text, and a class that says where files go may be
installed only there. PyIceberg meets it in the middle of a commit, with an error that does not say of which table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyiceberg.table import Table, TableProperties
from pyiceberg.table.locations import load_location_provider

from keptlog.errors import Action, LogCorrupt
from keptlog.table.waiting.reaching import one_line


def _locations(table: Table, _: str) -> object:
    return load_location_provider(table.location(), table.properties)


def _number(table: Table, name: str) -> object:
    return int(table.properties[name])


_USES: Mapping[str, Callable[[Table, str], object]] = {
    TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL: _locations,
    TableProperties.OBJECT_STORE_ENABLED: _locations,
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: _number,
    TableProperties.WRITE_PARTITION_SUMMARY_LIMIT: _number,
}


def require_usable_properties(table: Table) -> None:
    """Refuse to commit to a table with a property that no commit of PyIceberg's can be made with.

    Raises:
        LogCorrupt: names the property, and says what to do.
    """
    for name, use in _USES.items():
        if name not in table.properties:
            continue
        try:
            use(table, name)
        except Exception as error:  # a class of another program may raise anything
            told = LogCorrupt(
                f"table {'.'.join(table.name())}: no commit can be made with its property "
                f"{name}={table.properties[name]} ({one_line(error)}), and nothing is "
                "written to it: set it right, or take it away"
            )
            told.action = Action.FIX_CONFIG  # no file is wrong
            raise told.of_property() from error
