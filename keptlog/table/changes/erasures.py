"""Changes of the erasures of a topic; ``erasure_register`` says where they are stored.

A request by tombstone is in the commit that appends the tombstones, and there is never one without the other. Two
changes at once don't lose one another: the second is made again from what the first has left.

The file that a change replaces stays, for a backup may have a catalog that names it. So does one of an attempt that
did not land. The next purge deletes them (``left_registers`` in ``sweep``). What has ended is remembered for a while,
and then its receipt alone tells of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, LogCorrupt, StalePlan
from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ErasureWay, bound, further, reached
from keptlog.log.erasures.open_erasures import open_erasures
from keptlog.log.given.past import is_past
from keptlog.log.record import NewRecord
from keptlog.table.changes.append import Append, AppendedPartition, log_end_offsets
from keptlog.table.changes.partition_writers import SegmentPaths
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.staged import discarded_if_refused
from keptlog.table.commits.topics import Topic
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import OPERATION, RUN_ID, SAME_AGAIN, Change
from keptlog.table.metadata.lineage import COMMIT_ID, require_own
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.metadata_reading import looked_at
from keptlog.table.metadata.state import ERASURES, OPEN_ERASURES, read_open_erasures
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.removal.erasure_look import without_segments_since
from keptlog.table.removal.erasure_register import NamedFile, Register, read_erasures, register_folder

ENDED_MEMORY_MS = 30 * 24 * 3_600_000
"""How long an erasure is told of after it was verified."""
_PURPOSE = "erase"
"""Tells the commit of a request from that of an append with the same run id."""


@dataclass
class RegisterChange:
    """One change of one topic's erasures, on its way to be live."""

    topic: Topic
    committer: Committer
    files: TableFiles
    new_id: Callable[[], str]
    now_ms: int
    done_ms: Callable[[int], int] = lambda as_of_ms: as_of_ms
    """The clock, whatever the time that is judged by: ``ClockGuard.done_ms``. It says what ended long ago."""
    _written: list[str] = field(default_factory=list)
    """Files of all attempts."""

    def append(self, erasure: Erasure, tombstones: Sequence[NewRecord], next_ms: int, require: Require) -> Erasure:
        """Append tombstones and remember the request that they are of, in one commit; once for each request.

        ``require`` says of the log ends that the tombstones would get whether they are still right.

        Raises:
            StalePlan: what ``require`` refuses, or others kept committing first, or the topic is another one by now;
                nothing landed in that.
            KeptlogError: as an append.
        """
        before, remembered = self._look(erasure.id)
        # The register remembers it longer than snapshots do.
        if any(each.id == erasure.id for each in remembered):
            return self._landed(erasure.id)

        def beside(table: Table, appended: Sequence[AppendedPartition]) -> Mapping[str, str]:
            ends = log_end_offsets(self.topic.name, table.properties)
            require(ends)
            at = {each.partition: (each.base_offset, each.last_offset + 1) for each in appended}
            bounds = [ErasureBound(number, *at.get(number, (end, end))) for number, end in ends.items()]
            requested = bound(erasure, bounds, self.now_ms)
            known = read_erasures(self.files, table)
            wanted = self._remembered(_with(known, requested))
            return self._properties(table, wanted, self._earlier(table, next_ms))

        paths = SegmentPaths(self.topic.data_location, erasure.id, self.new_id)
        batch = Append(
            self.topic,
            self.committer,
            self.files,
            paths,
            self.now_ms,
            is_new_run=False,
            purpose=_PURPOSE,
            beside=beside,
        )
        with discarded_if_refused(self.files, lambda: self._written):
            batch.append(before, tombstones)
        return self._landed(erasure.id)

    def request(self, erasure: Erasure, next_ms: int | None, require: Require | None = None) -> Erasure:
        """Remember a request that appends nothing; once for each request. Without bounds it gets those of the log ends.

        Where no segment is left, its records are gone already: not since the snapshot of the request, which would keep
        it open for as long again.

        ``require`` says of the log ends whether the request is still right.

        Raises:
            StalePlan: what ``require`` refuses, or the topic is another one by now; nothing landed in that.
            KeptlogError: from the commit.
        """

        def changed(table: Table, known: tuple[Erasure, ...]) -> Sequence[Erasure]:
            if any(each.id == erasure.id for each in known):
                return known
            requested = erasure
            ends = log_end_offsets(self.topic.name, table.properties)
            if require:
                require(ends)
            if not erasure.waiting and not erasure.bounds:
                bounds = [ErasureBound(number, end, end) for number, end in ends.items()]
                requested = bound(erasure, bounds, self.now_ms)
            return _with(known, self._gone_already(requested, table))

        self._change(f"{erasure.id}/{_PURPOSE}", changed, lambda table: self._earlier(table, next_ms), since=0)
        return self._landed(erasure.id)

    def repeated(self, erasure_id: str) -> Erasure:
        """A request that was there when it was proposed again; nothing is committed.

        Raises:
            InvalidConfig: it was forgotten since: asked anew, it would take what came after it.
            StalePlan: the topic is another one by now.
        """
        if erasure := self._known(erasure_id):
            return erasure
        raise InvalidConfig(
            f"topic {self.topic.name}: request {erasure_id} was asked for before, and is not among its erasures any "
            "more: nothing is asked. Ask under another id for what is there now"
        )

    def update(self, updated: Mapping[str, Erasure], next_ms: int | None) -> None:
        """Bring erasures on to what was found out about them; nothing is committed if nothing is new.

        It is new as well where they are counted as an older keptlog did.
        What another look has found out meanwhile is kept where it is further. ``next_ms`` is when one of these can next
        be brought on. Of one that is open and is not among them, or is further by now, it tells nothing.
        """
        are_all = False

        def changed(_table: Table, known: tuple[Erasure, ...]) -> Sequence[Erasure]:
            nonlocal are_all
            merged = tuple(further(each, updated.get(each.id, each)) for each in known)
            # Of the table that is built upon: whoever looked may have begun before another request came.
            are_all = all(each == updated.get(each.id) for each in merged if each.is_open)
            return merged

        self._change(
            f"erasures-{self.new_id()}",
            changed,
            lambda table: next_ms if are_all else self._earlier(table, next_ms),
            since=None,
        )

    def _gone_already(self, requested: Erasure, table: Table) -> Erasure:
        """A request of a topic without segments, which no clean and no retention can bring on."""
        is_over = requested.state is ErasureState.TOMBSTONED and requested.way != ErasureWay.HERE
        gone = without_segments_since(table) if is_over else None
        if gone is None:
            return requested
        return replace(reached(requested, ErasureState.COMPACTED, self.now_ms), gone=gone)

    def _change(
        self, commit_id: str, changed: Changed, next_ms: Callable[[Table], int | None], *, since: int | None
    ) -> None:
        remedy = SAME_AGAIN if since is None else ""  # a request is repeated with its id, which is its run's
        change = Change(self.topic.name, self.topic.id, commit_id, since, remedy=remedy)

        def prepare(table: Table) -> Land | None:
            require_own(table)
            known = read_erasures(self.files, table)
            wanted = self._remembered(changed(table, known))
            if wanted == known and (since is not None or self._is_counted(table, known)):
                return None
            summary = {RUN_ID: change.run_id, COMMIT_ID: commit_id, OPERATION: "erase"}
            return FileChange(summary, self._properties(table, wanted, next_ms(table))).written(table)

        with discarded_if_refused(self.files, lambda: self._written):
            self.committer.commit(change, prepare)

    def _is_counted(self, table: Table, known: Sequence[Erasure]) -> bool:
        """Whether what is told without reading one of them counts those that are open, as an older keptlog may not."""
        return read_open_erasures(self.topic.name, table.properties).count == sum(each.is_open for each in known)

    def _earlier(self, table: Table, at_ms: int | None) -> int | None:
        """When something can first be brought on: of what is open already, or of what comes to it.

        Of times that are past it is the last: a look since the one before knows nothing of what has come to it.
        """
        stored_ms = read_open_erasures(self.topic.name, table.properties).next_ms
        moments = [moment for moment in (stored_ms, at_ms) if moment is not None]
        past = [moment for moment in moments if is_past(moment, self.now_ms)]
        return max(past) if past else min(moments, default=None)

    def _landed(self, erasure_id: str) -> Erasure:
        if erasure := self._known(erasure_id):
            return erasure
        raise LogCorrupt(
            f"topic {self.topic.name}: request {erasure_id} has landed, and is not among its erasures any more: it was "
            "forgotten after it had ended, or a repair has undone it; ask again under another id"
        )

    def _known(self, erasure_id: str) -> Erasure | None:
        _, remembered = self._look(erasure_id)
        return next((each for each in remembered if each.id == erasure_id), None)

    def _look(self, erasure_id: str) -> tuple[Table, tuple[Erasure, ...]]:
        """The table as it is now, and what it remembers; a change and a purge may come in between.

        Raises:
            StalePlan: it is that of another topic, so that it tells nothing of this request.
        """

        def look(table: Table) -> tuple[Table, tuple[Erasure, ...]]:
            if str(table.metadata.table_uuid) != self.topic.id:
                raise StalePlan(
                    f"topic {self.topic.name} was deleted and created again meanwhile, and request {erasure_id} was of "
                    "the one before: ask again with the same id if it is meant for the new one"
                )
            return table, read_erasures(self.files, table)

        return looked_at(self._table, look)

    def _table(self) -> Table:
        return load_topic_table(self.committer.catalog, self.topic.name)

    def _remembered(self, erasures: Sequence[Erasure]) -> tuple[Erasure, ...]:
        """Without those that ended long ago."""
        oldest_ms = self.done_ms(self.now_ms) - ENDED_MEMORY_MS
        return tuple(each for each in erasures if each.ended_ms is None or each.ended_ms > oldest_ms)

    def _properties(self, table: Table, erasures: Sequence[Erasure], next_ms: int | None) -> dict[str, str]:
        """Write the file, and give what names it."""
        content = to_json(Register(tuple(erasures))).encode()
        name = f"{self.new_id()}.json"
        self._written.append(register_folder(table) + name)
        self.files.write_bytes(self._written[-1], content)
        summary = open_erasures(erasures, next_ms)
        return {ERASURES: to_json(NamedFile(name, zlib.crc32(content))), OPEN_ERASURES: to_json(summary)}


Require = Callable[[Mapping[int, int]], None]
Changed = Callable[[Table, tuple[Erasure, ...]], Sequence[Erasure]]


def _with(known: tuple[Erasure, ...], requested: Erasure) -> tuple[Erasure, ...]:
    return (*(each for each in known if each.id != requested.id), requested)
