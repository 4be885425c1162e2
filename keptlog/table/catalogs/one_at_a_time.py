"""A catalog whose client nobody has called fit for several threads: its calls wait for each other.

keptlog asks catalogs side by side. PyIceberg's for databases, REST and Glue are made for that. Its client for Hive has
one connection, which the second thread would take from the first; of another program's nobody knows.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog

_CALLS = sorted(name for name in vars(Catalog) if callable(vars(Catalog)[name]) and not name.startswith("_"))


def one_at_a_time(catalog: Catalog, fit: tuple[type[Any], ...] = ()) -> Catalog:
    """The same catalog, with calls that wait for each other unless it is a ``fit`` one, or one of PyIceberg's two."""
    if isinstance(catalog, (SqlCatalog, *fit)) or is_rest(catalog):
        return catalog
    lock = threading.RLock()  # they call each other
    for name in _CALLS:
        setattr(catalog, name, _alone(lock, getattr(catalog, name)))
    return catalog


def is_rest(catalog: Catalog) -> TypeGuard[RestCatalog]:
    """Whether a catalog is one of REST, whose client nobody imports for the others: it takes as long as theirs."""
    if isinstance(catalog, SqlCatalog):
        return False
    from pyiceberg.catalog.rest import RestCatalog  # noqa: PLC0415

    return isinstance(catalog, RestCatalog)


def _alone(lock: threading.RLock, call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def alone(*arguments: Any, **named: Any) -> Any:
        with lock:
            return call(*arguments, **named)

    return alone
