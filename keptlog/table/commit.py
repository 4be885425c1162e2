"""How a change lands: once and whole, or not at all.

    load the table -> check that the change still fits -> commit on exactly that snapshot -> done
         ^                                                    |
         +------ wait a little <------ refused, unanswered ---+

Before all else it is asked whether the table's snapshot is the one that its state belongs to (``lineage``): nothing is
built on what somebody else has left.

A commit that adds a snapshot names the snapshot it was built from, and the catalog refuses it if another one came
first; nothing is merged behind our back. So each round begins with a fresh table and a fresh check.

The complication is a commit without an answer: it may have landed. Its snapshot carries the change's id, so the next
round finds it and is done. Should a purge have expired snapshots in between, it could be among them; that shows as a
gap in the sequence numbers, and then nobody can tell: ``CommitStateUnknown``.

Each round that is made again is one line of the log. An outage is a warning; a lost race is everyday life beside other
writers, so only the 1st, 2nd, 4th, 8th … of a change is news.
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, TableUpdate
from sqlalchemy.exc import OperationalError

from keptlog.errors import CommitStateUnknown, KeptlogError, StalePlan, StorageUnavailable
from keptlog.log.segment import Segment
from keptlog.table.lineage import COMMIT_ID, require_own
from keptlog.table.reach import OUT_OF_REACH, one_line
from keptlog.table.topics import load_topic_table

_logger = logging.getLogger(__name__)

RUN_ID = "keptlog.run-id"
OPERATION = "keptlog.operation"
"""Snapshot summary properties, beside ``COMMIT_ID``."""

MAX_OUTAGES = 24
"""Attempts in a row that catalog or storage did not answer."""
MAX_LOST_RACES = 200
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 2.0
_LONGEST_RACE_PAUSE_SECONDS = 0.05

Land = Callable[[], object]
"""Commits a prepared change."""


@dataclass(frozen=True, slots=True)
class Committer:
    """Commits changes to the tables of one catalog."""

    catalog: Catalog
    sleep: Callable[[float], None]

    def commit(
        self,
        topic: str,
        prepare: Callable[[Table], Land | None],
        commit_id: str | None = None,
        require_fit: Callable[[Table], None] = require_own,
    ) -> Snapshot | None:
        """Land a change. ``prepare`` gets the fresh table, checks, and returns what commits; null if nothing is to do.

        ``require_fit`` says of each fresh table whether it may be built on at all; only a repair has one of its own.

        Returns:
            The snapshot of ``commit_id`` if it was there already, else null.

        Raises:
            StalePlan: others kept committing first; nothing landed.
            CommitStateUnknown: it may have landed, and nobody could say.
            StorageUnavailable: catalog or storage can't be reached; nothing landed.
            LogCorrupt: state and snapshot don't belong together: somebody else has moved the latter (``lineage``).
            KeptlogError: whatever ``prepare`` refuses.
        """
        unanswered: int | None = None
        failure: Exception | None = None
        lost_races = outages = 0
        while lost_races < MAX_LOST_RACES and outages < MAX_OUTAGES:
            if failure:
                pause_seconds = _pause_seconds(lost_races, outages, commit_id or topic)
                _tell(_change(topic, commit_id), failure, lost_races, outages, pause_seconds)
                self.sleep(pause_seconds)
            try:
                table = load_topic_table(self.catalog, topic)
                landed = _landed_before(table, commit_id, unanswered)
                land = None if landed else _prepared(table, require_fit, prepare)
            except OUT_OF_REACH as error:
                failure, outages = error, outages + 1
                continue
            if land is None:
                if landed and unanswered is not None:
                    _logger.info("%s: the commit that got no answer has landed", _change(topic, commit_id))
                return landed
            try:
                land()
            except (CommitFailedException, ValidationException) as error:
                failure, lost_races, outages = error, lost_races + 1, 0
            except OUT_OF_REACH as error:
                failure, outages = error, outages + 1
                if commit_id and not _is_locked(error):
                    unanswered = table.last_sequence_number if unanswered is None else unanswered
            else:
                return None
        raise _gave_up(topic, failure, is_unknown=unanswered is not None) from failure


def commit_without_snapshot(catalog: Catalog, table: Table, *updates: TableUpdate) -> None:
    """Commit changes of the metadata alone, and only while the table's current snapshot is the one that was loaded.

    Raises:
        CommitFailedException: another one is.
    """
    current = table.current_snapshot()
    requirements = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertRefSnapshotId.model_validate(
            {"ref": MAIN_BRANCH, "snapshot-id": current.snapshot_id if current else None}
        ),
    )
    catalog.commit_table(table, requirements, updates)


def commit_id_of(run_id: str, segments: Iterable[Segment]) -> str:
    """Of the run and of the files that it moves: a run may commit twice, first to clean and then to expire."""
    paths = sorted(segment.path for segment in segments)
    return f"{run_id}/{hashlib.sha256(' '.join(paths).encode()).hexdigest()}"


def find_commit(table: Table, commit_id: str) -> Snapshot | None:
    """The snapshot of a change that has landed, if it is still there."""
    for snapshot in reversed(table.metadata.snapshots):
        if snapshot.summary and snapshot.summary.additional_properties.get(COMMIT_ID) == commit_id:
            return snapshot
    return None


def _prepared(
    table: Table, require_fit: Callable[[Table], None], prepare: Callable[[Table], Land | None]
) -> Land | None:
    require_fit(table)
    return prepare(table)


def _landed_before(table: Table, commit_id: str | None, unanswered: int | None) -> Snapshot | None:
    """The change's snapshot if an earlier attempt has landed; ``unanswered`` is the sequence number it was built on."""
    landed = find_commit(table, commit_id) if commit_id else None
    if landed is None and unanswered is not None:
        _require_all_snapshots_since(table, unanswered)
    return landed


def _require_all_snapshots_since(table: Table, sequence_number: int) -> None:
    present = {snapshot.sequence_number for snapshot in table.metadata.snapshots}
    missing = set(range(sequence_number + 1, table.last_sequence_number + 1)) - present
    if missing:
        raise CommitStateUnknown(
            f"topic {table.name()[-1]}: a commit got no answer, and snapshots since then have expired, so that it "
            "can't be told whether it landed; compare the log with what was sent before it is sent again"
        )


def _is_locked(error: Exception) -> bool:
    """SQLite refused because another process writes: nothing landed."""
    return isinstance(error, OperationalError) and "database is locked" in str(error)


def _pause_seconds(lost_races: int, outages: int, salt: str) -> float:
    """How long to wait: longer and longer for an outage to end, hardly at all after a lost race.

    A swap takes longer to prepare than an append, so the longer it waited the more races it would lose: beside busy
    writers it would starve. The pause differs for each change, so that two of them don't meet again at every attempt.
    """
    share = 0.5 + zlib.crc32(f"{salt}/{lost_races}/{outages}".encode()) % 1024 / 2048
    longest_seconds = _LONGEST_PAUSE_SECONDS if outages else _LONGEST_RACE_PAUSE_SECONDS
    return min(_FIRST_PAUSE_SECONDS * 2.0 ** (outages or lost_races), longest_seconds) * share


def _change(topic: str, commit_id: str | None) -> str:
    """A change's name in the log: its topic, and its run if it has one."""
    return f"topic {topic}, run {commit_id.partition('/')[0]}" if commit_id else f"topic {topic}"


def _tell(change: str, failure: Exception, lost_races: int, outages: int, pause_seconds: float) -> None:
    """One line for a round that is made again, and why."""
    why = one_line(failure)
    if outages:
        text = "%s: catalog or storage can't be reached (%s); attempt %d of %d follows in %.2f s"
        _logger.warning(text, change, why, outages + 1, MAX_OUTAGES, pause_seconds)
    else:
        level = logging.INFO if lost_races.bit_count() == 1 else logging.DEBUG
        text = "%s: another commit came first (%s); attempt %d of %d follows in %.2f s"
        _logger.log(level, text, change, why, lost_races + 1, MAX_LOST_RACES, pause_seconds)


def _gave_up(topic: str, failure: Exception | None, *, is_unknown: bool) -> KeptlogError:
    why = one_line(failure) if failure else "no attempt was made"
    if is_unknown:
        return CommitStateUnknown(
            f"topic {topic}: the catalog did not say whether the commit landed ({why}); "
            "run again with the same run id, which finds it if it did"
        )
    if isinstance(failure, CommitFailedException | ValidationException):
        return StalePlan(
            f"topic {topic}: others committed first {MAX_LOST_RACES} times in a row ({why}); nothing is lost, try again"
        )
    return StorageUnavailable(f"topic {topic}: catalog or storage can't be reached ({why}); nothing landed, try again")
