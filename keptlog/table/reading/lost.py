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
from keptlog.log.told.stored_files import lost_segment, lost_watermarks
from keptlog.table.io.files import TableFiles


def lost_file(files: TableFiles, logs: Iterable[Log], paths: Collection[str]) -> LogCorrupt | None:
    """The error of the first of these paths that the logs, as they are now, still have, and the storage does not."""
    for log in logs:
        for segment in log.segments:
            if segment.path in paths and not files.exists(segment.path):
                return LogCorrupt(str(lost_segment(log, segment)))
        marks = log.watermarks_path
        if marks and marks in paths and not files.exists(marks):
            return LogCorrupt(str(lost_watermarks(log, marks)))
    return None
