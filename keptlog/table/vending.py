"""Credentials that a catalog gives for each table: whoever opens a file by its path takes those of its location.

    s3://lake/users     key A, for an hour      s3://lake/users/data/partition=0/000.parquet     is opened with A
    s3://lake/orders    key B                   s3://lake/elsewhere                              as the catalog says

They are renewed whenever the table is loaded. What goes to a task takes along what is known then; a task that works for
longer than its credentials are good for fails, and is tried again by the next run, which has new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Vended = dict[str, tuple[tuple[str, str], ...]]
"""Location to properties, sorted."""
VENDED = "s3.keptlog-vended"
"""The property under which they stand beside those of the catalog; its name says that it is about storage."""
_OF_STORAGE = ("s3.", "client.", "gcs.", "adls.")


def credentials_in(of_table: Mapping[str, Any], of_catalog: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a table's properties say of storage that its catalog's don't."""
    told = {name: value for name, value in of_table.items() if name.startswith(_OF_STORAGE) and name != VENDED}
    return tuple(sorted((name, value) for name, value in told.items() if of_catalog.get(name) != value))


def for_path(properties: tuple[tuple[str, Any], ...], path: str) -> tuple[tuple[str, Any], ...]:
    """The properties with which a file is opened."""
    known = dict(properties)
    if VENDED not in known:
        return properties
    vended: Vended = known.pop(VENDED)
    places = [place for place in list(vended) if path == place or path.startswith(f"{place}/")]
    if places:
        known |= dict(vended[max(places, key=len)])
    return tuple(sorted(known.items()))
