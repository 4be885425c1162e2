"""Why a file of a log is not there: somebody has replaced and purged it, or it is lost.

Whoever opens a file does so some time after he was told of it. Only the table as it is *now* tells the two apart:

    told of     [ a ][ b ]     b is not in storage
    now         [ x ]          b was replaced, and purged under him: he begins anew, nothing is wrong
    now         [ a ][ b ]     b is live, so it is lost: to begin anew would end here again, for ever

So a look is made after a file was missed, and one look serves for all that were missed before it. A topic that has lost
its volume misses thousands: what is live there is put together once for each location of its metadata (``LostMemory``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from keptlog.errors import LogCorrupt
from keptlog.log.segment import Log, Segment
from keptlog.log.told.stored_files import lost_segment, lost_watermarks
from keptlog.table.io.files import TableFiles
from keptlog.table.waiting.reaching import reaching


@dataclass(frozen=True, slots=True)
class LostFiles:
    """What was live in a topic at one time, to be asked for files that were missed before."""

    files: TableFiles
    live: Mapping[str, tuple[Log, Segment | None]]
    """By path; a file of watermarks is no segment."""

    @classmethod
    def among(cls, files: TableFiles, logs: Iterable[Log]) -> LostFiles:
        """Those of logs as they are now."""
        live: dict[str, tuple[Log, Segment | None]] = {}
        for log in logs:
            live |= {segment.path: (log, segment) for segment in log.segments}
            live |= {log.watermarks_path: (log, None)} if log.watermarks_path else {}
        return cls(files, live)

    def first(self, paths: Iterable[str]) -> LogCorrupt | None:
        """The error of the first of these files that is live, and not in storage; null if none is.

        Raises:
            StorageUnavailable: the storage does not say.
        """
        for path in paths:
            log, segment = self.live.get(path, (None, None))
            if log is None:
                continue
            with reaching(f"files of topic {log.topic_partition.topic} can't be looked for"):
                is_there = self.files.exists(path)
            if not is_there:
                return LogCorrupt(str(lost_segment(log, segment) if segment else lost_watermarks(log, path)))
        return None


class LostMemory:
    """Remembers what is live in the topic that was asked for last: it stays so until its metadata lies elsewhere."""

    def __init__(self) -> None:
        self._last: tuple[str, LostFiles] | None = None

    def at(self, location: str, files: TableFiles, logs: Callable[[], Iterable[Log]]) -> LostFiles:
        """What is live at this location, where the metadata lies now; ``logs`` reads it there."""
        last = self._last
        if last is None or last[0] != location:
            self._last = last = (location, LostFiles.among(files, logs()))
        return last[1]
