"""A catalog by its settings, also where others load it for the first time at this moment."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from sqlalchemy.exc import DBAPIError

from keptlog.table.namespaces import CATALOG_NAME

_EXISTS = "already exists"
"""What SQLite and PostgreSQL say to the second of two that make a table, each with errors of its own."""
_TABLES = 2
"""That PyIceberg makes in a new database, one after the other."""


def loaded(properties: dict[str, Any]) -> Catalog:
    """The catalog of these settings.

    PyIceberg looks whether a database has its tables, and then makes them: of several processes that begin with a new
    database, all but one find them made in between, and have but to look again.
    """
    for _ in range(_TABLES):
        try:
            return _loaded_once(properties)
        except DBAPIError as error:
            if _EXISTS not in str(error.orig):
                raise
    return _loaded_once(properties)


def _loaded_once(properties: dict[str, Any]) -> Catalog:
    """PyIceberg refuses a class of ours beside the type that the configuration names."""
    module, _, name = str(properties.get("py-catalog-impl", "")).rpartition(".")
    if not module.startswith("keptlog."):
        return load_catalog(CATALOG_NAME, **properties)
    own: type[Catalog] = getattr(import_module(module), name)
    return own(CATALOG_NAME, **properties)
