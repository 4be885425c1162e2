"""Why a file of a log is not there: somebody has replaced and purged it, or it is lost.

Whoever opens a file does so some time after he was told of it. Only the table as it is *now* tells the two apart:

    told of     [ a ][ b ]     b is not in storage
    now         [ x ]          b was replaced, and purged under him: he begins anew, nothing is wrong
    now         [ a ][ b ]     b is live, so it is lost: to begin anew would end here again, for ever
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from keptlog.errors import LogCorrupt
from keptlog.log.segment import Log
from keptlog.storage.damage import MENDING
from keptlog.table.files import TableFiles


def lost_file(files: TableFiles, logs: Iterable[Log], paths: Collection[str]) -> LogCorrupt | None:
    """The error of the first of these paths that the logs, as they are now, still have, and the storage does not."""
    for log in logs:
        held = {
            each.path: f"segment {each.path} (offsets {each.base_offset} to {each.last_offset})"
            for each in log.segments
        }
        if log.watermarks_path:
            held[log.watermarks_path] = f"file {log.watermarks_path} with its watermarks"
        for path, what in held.items():
            if path in paths and not files.exists(path):
                return LogCorrupt(
                    f"{log.topic_partition}: {what} is missing from storage though the table lists it; {MENDING}"
                )
    return None
