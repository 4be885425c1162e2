"""Whether all that a table needs is there: else nothing of it is purged, for what looks unneeded may be the way back.

Both the purge and its preview ask, so that a preview promises nothing that the purge then refuses.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.table import Table

from keptlog.errors import LogCorrupt
from keptlog.table.files import TableFiles
from keptlog.table.quiet import Storage
from keptlog.table.references import Manifests, below, comparable_forms, live_references


def require_live_files(
    table: Table, storage: Storage, manifests: Manifests, files: TableFiles, load: Callable[[], Table]
) -> None:
    """Whether all that a table needs, and that lies below its location, was listed, or came since.

    ``load`` gives the table as it is now.

    Raises:
        LogCorrupt: a file is not there.
    """
    is_below = below(storage.location)
    live = live_references(table, manifests)
    for path, form in comparable_forms([*live.data_bytes, *live.metadata_bytes]).items():
        if form in storage.files or not is_below(form) or files.exists(path):
            continue
        # Another purge may have deleted it since the table was loaded: then the table has moved on.
        live_now = live_references(load(), manifests).keys()
        if form in live_now:
            todo = "put it back from a copy of the storage"
            if form in comparable_forms(hidden.path for hidden in storage.hidden.files).values():
                todo = "its bucket still has it, so take its delete marker away"
            what = f"topic {table.name()[-1]}: live file {path} is not there, and nothing was deleted"
            raise LogCorrupt(f"{what}: {todo}, and purge again")
