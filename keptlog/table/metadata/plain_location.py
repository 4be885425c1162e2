"""Where a table lies, as everybody who asks gets it: without a slash at its end.

    s3://lake/users/     ``SET LOCATION`` by PyIceberg, or a REST server that gives it so
    s3://lake/users      the same folder: what lies in it is named ``…/users/data/…``, and never ``…/users//data/…``

With two slashes it would be another object, which Arrow takes for no path, and the table's own metadata would lie in
another folder. Iceberg's Java library takes the slash off as well. The next commit stores it so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


def plain_location(location: str) -> str:
    """The same place; the root of a disk, or no place, stays as it is."""
    plain = location.rstrip("/")
    return location if not plain or plain.endswith(":") else plain


def lying_plainly(metadata: TableMetadata) -> TableMetadata:
    """The same metadata, as it is if there is no slash."""
    plain = plain_location(metadata.location)
    return metadata if plain == metadata.location else metadata.model_copy(update={"location": plain})


def table_lying_plainly(table: Table) -> Table:
    """The same table, of which each caller has one of its own."""
    table.metadata = lying_plainly(table.metadata)
    return table
