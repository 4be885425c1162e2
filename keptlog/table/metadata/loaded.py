"""Tables and their names as a catalog has them now; ``commits.loading`` asks what else is known of one not found."""

from __future__ import annotations

from pyiceberg.catalog import METADATA_LOCATION, Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchPropertyException, NoSuchTableError
from pyiceberg.table import Table

from keptlog.errors import LogCorrupt
from keptlog.log.given.given import is_utf_8


def names_in(catalog: Catalog, namespace: str) -> list[str]:
    """The tables of a namespace, sorted; none if it is not there."""
    try:
        # A row of SQLite can hold bytes as its name. No command reaches that one; the others are there.
        return sorted(str(identifier[-1]) for identifier in catalog.list_tables((namespace,)))
    except NoSuchNamespaceError:
        return []


def loaded_now(catalog: Catalog, namespace: str, name: str) -> Table:
    """A table.

    Between the catalog's answer and the file that it names, a commit may move the table on and a purge delete the
    file, or another call end a deletion of the topic: then it is asked once more.

    No catalog is asked for a name that can't be sent to it: its error would be taken for a damaged file's.

    Raises:
        FileNotFoundError: the file is gone, and still named.
        NoSuchTableError, NoSuchNamespaceError, NoSuchPropertyException: the catalog does not find it.
    """
    if isinstance(name, str) and not is_utf_8(name):
        raise NoSuchTableError(f"no table can be called {name!r}")
    try:
        return catalog.load_table((namespace, name))
    except FileNotFoundError:
        return catalog.load_table((namespace, name))


def loaded_if_there(catalog: Catalog, namespace: str, name: str) -> Table | None:
    """A table; null if there is none.

    Raises:
        FileNotFoundError: the file is gone, and still named.
        LogCorrupt: its entry names none.
    """
    try:
        return loaded_now(catalog, namespace, name)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    except NoSuchPropertyException as error:
        raise entry_without_metadata(name, error) or error from error


def entry_without_metadata(name: str, error: NoSuchPropertyException) -> LogCorrupt | None:
    """The error to raise of a topic whose entry in Glue names no metadata file; null if ``error`` is another."""
    if METADATA_LOCATION not in str(error):
        return None
    todo = f"set {METADATA_LOCATION} back to the newest one in its folder"
    return LogCorrupt(f"topic {name}: its entry in the catalog names no metadata file; {todo}").of_property()
