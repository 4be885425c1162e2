"""How a change lands: once and whole, or not at all.

    load the table -> did it land before? -> check that it still fits -> commit on exactly that snapshot -> done
         ^                                                                  |
         +------ wait a little <------ refused, unanswered -----------------+

First it is asked whether its snapshot is the one that the state belongs to (``lineage``): on no other is built.

A commit that adds a snapshot names the snapshot it was built from, and the catalog refuses it if another one came
first; nothing is merged behind our back. So each round begins with a fresh table and a fresh check. A topic that was
deleted and created again meanwhile is another topic, and gets nothing.

The complication is a commit without an answer: it may have landed. Its snapshot carries the change's id, so the next
round finds it and is done; also if the answer was "refused", which whoever sent the request twice may be told about the
first one. A purge that has expired the snapshot in between has remembered the id (``keptlog.table.metadata.runs``).
Only if another program has expired it, or if nobody answers any more, the caller is told ``CommitStateUnknown``. A
topic whose deletion was begun meanwhile is looked at where it waits for its end: what has landed there is told in its
receipt, and is nothing to take back. One that another program has renamed meanwhile stays in doubt (``elsewhere``).

**In doubt** is a change from when it is sent until somebody says what became of it, or until the table has another
snapshot: on that it can't land any more. Whatever is raised but ``CommitStateUnknown`` is sure: who has staged files
for the change alone may delete them (``keptlog.table.commits.staged``).

Who refuses for good (``reach``) is not asked again, but it is looked once more: a proxy may say no to what it has
passed on. If that look is refused too, it stays in doubt. A disk that is full is told at once, and that this process
may open no more files after one look. A commit that found no connection was not sent.

Each round that is made again is one line of the log. An outage is a warning; a lost race is everyday life beside other
writers, so only the 1st, 2nd, 4th, 8th … of a change is news.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from keptlog.disk import is_of_reading_too, refusal_of, refusal_text
from keptlog.errors import (
    CommitStateUnknown,
    KeptlogError,
    LogCorrupt,
    StalePlan,
    StorageUnavailable,
    UnknownTopic,
    UnsupportedFormat,
    first_line,
)
from keptlog.storage.refusal import store_refusal_of
from keptlog.table.commits.elsewhere import may_be_elsewhere
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.io.file_io import metadata_read_once
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.lineage import require_written_format
from keptlog.table.metadata.runs import LandedChange, expired_since, landed_before
from keptlog.table.metadata.usable_properties import require_usable_properties
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.own_folder import require_not_inside
from keptlog.table.waiting.patience import pause_seconds
from keptlog.table.waiting.reach import (
    OUT_OF_REACH,
    FailureKind,
    failure_of,
    is_sure,
    todo_about,
    was_silent,
)
from keptlog.table.waiting.reaching import one_line
from keptlog.table.waiting.sqlite_failures import disk_refusal_of

_logger = logging.getLogger(__name__)

MAX_OUTAGES = 24
"""Attempts in a row that catalog or storage did not answer."""
_OF_SILENCE = 8
"""As so many counts one that was waited for until its time was up: all of them would take three quarters of an hour."""
MAX_LOST_RACES = 200

Land = Callable[[], object]
"""Commits a prepared change."""
Prepare = Callable[[Table], Land | None]
"""Gets the fresh table, checks, and returns what commits; null if nothing is to do."""


@dataclass(frozen=True, slots=True)
class Committer:
    """Commits changes to the tables of one catalog."""

    catalog: Catalog
    sleep: Callable[[float], None]
    files: TableFiles

    def commit(self, change: Change, prepare: Prepare) -> LandedChange | None:
        """Land a change.

        Returns:
            What was found of the change if it had landed already, else null.

        Raises:
            StalePlan: others kept committing first, or the topic is another one now; nothing landed.
            CommitStateUnknown: it may have landed, and nobody could say.
            StorageUnavailable: catalog or storage can't be reached, or refuses; nothing landed, unless the change has
                no commit id.
            LogCorrupt: state and snapshot don't belong together: somebody else has moved the latter (``lineage``).
            KeptlogError: whatever ``prepare`` refuses; nothing landed.
        """
        rounds = _Rounds(change, since=change.since, topic_id=change.topic_id)
        try:
            with metadata_read_once():
                return self._carry_out(rounds, prepare)
        except CommitStateUnknown:
            raise
        except KeptlogError as error:
            # A topic that can't be read after a refusal is the more useful thing to say; its files are not deleted.
            is_unreadable = isinstance(error, LogCorrupt | UnsupportedFormat)
            if rounds.is_unanswered or (rounds.is_in_doubt and not is_unreadable):
                raise rounds.unknown(first_line(error)) from error
            raise

    def find_earlier(self, change: Change, table: Table) -> LandedChange | None:
        """What is known of a change that has landed before; null if it has not, or can't have (``Change.since``)."""
        return None if change.since is None else _Rounds(change, since=change.since).found(table, self.files)

    def _carry_out(self, rounds: _Rounds, prepare: Prepare) -> LandedChange | None:
        while True:
            if rounds.failure and not rounds.are_over:
                self.sleep(rounds.tell())
            where = f"the {rounds.change.place}"
            try:
                table, landed = self._look(rounds)
                where = table.location()
                if landed or rounds.are_over:
                    return rounds.ended(landed)
                rounds.require_room(rounds.failure, where)
                require_written_format(table)
                require_usable_properties(table)
                rounds.change.require_fit(table)
                require_not_inside(self.catalog, table)
                try:
                    land = self._prepared(rounds, table, prepare)
                except StalePlan:
                    # What disturbs it may be its own trace: it has landed, and a purge has expired its snapshot.
                    if landed := rounds.found_ever(table, self.files):
                        return rounds.ended(landed)
                    self._load(rounds)  # staged files are gone, for one, where the topic was deleted
                    raise
            except ValidationException as error:
                rounds.failed(error, is_lost_race=True)
                continue
            except OUT_OF_REACH as error:
                rounds.require_room(error, where)
                rounds.failed(error)
                if rounds.are_over:
                    raise rounds.gave_up() from error
                continue
            if land is None or self._landed(rounds, table, land):
                return None

    def _prepared(self, rounds: _Rounds, table: Table, prepare: Prepare) -> Land | None:
        try:
            return prepare(table)
        except LogCorrupt as error:
            with contextlib.suppress(UnknownTopic, StalePlan):
                if self._load(rounds).metadata_location == table.metadata_location:
                    raise
            # A faster purge, or a deletion, has deleted what that table named: a lost race.
            raise ValidationException(first_line(error)) from error

    def _load(self, rounds: _Rounds) -> Table:
        """The topic's table as it is now.

        Raises:
            UnknownTopic: it was deleted.
            StalePlan: it was, and there is another one of its name.
        """
        table = load_topic_table(self.catalog, rounds.change.topic, rounds.change.namespace)
        topic_id = str(table.metadata.table_uuid)
        if rounds.topic_id not in {None, topic_id}:
            what = f"{rounds.change.place} was deleted and created again meanwhile"
            raise StalePlan(f"{what}; nothing landed in the new one, run it again if it is meant for that")
        rounds.topic_id = topic_id
        return table

    def _look(self, rounds: _Rounds) -> tuple[Table, LandedChange | None]:
        """The table as it is now, and what is found there of the change."""
        try:
            table = self._load(rounds)
        except (UnknownTopic, StalePlan):
            if deleted := self._look_at_deleted(rounds):
                return deleted
            raise
        return table, rounds.found(table, self.files)

    def _look_at_deleted(self, rounds: _Rounds) -> tuple[Table, LandedChange] | None:
        """The same of one that is no longer to be found; null if it never lands. CommitStateUnknown: it may go on."""
        topic = rounds.change.topic
        if rounds.is_in_doubt and rounds.change.namespace == NAMESPACE:
            with contextlib.suppress(UnknownTopic):  # its deletion is over, and has told all that it found
                table = load_topic_table(self.catalog, topic, DELETING)
                if str(table.metadata.table_uuid) == rounds.topic_id and (landed := rounds.found(table, self.files)):
                    return table, landed
        where = (rounds.topic_id, rounds.metadata_folder)
        if rounds.is_in_doubt and may_be_elsewhere(self.catalog, self.files, topic, *where):
            raise rounds.unknown("its table was deleted, or has another name: if so, name it back first")
        rounds.clear()
        return None

    def _landed(self, rounds: _Rounds, table: Table, land: Land) -> bool:
        """Send it; true if it landed, false if it is not certain that it did."""
        rounds.send(table)
        try:
            land()
        except (CommitFailedException, ValidationException, NoSuchTableError) as error:
            rounds.failed(error, is_lost_race=True)
        except OUT_OF_REACH as error:
            if failure_of(error) is FailureKind.UNKNOWN and not is_of_reading_too(error):
                rounds.was_unanswered()
            elif is_sure(error):
                rounds.was_refused()
                rounds.require_room(error, self._database(error) or table.location())
            rounds.failed(error)
        else:
            return True
        return False

    def _database(self, error: Exception) -> str | None:
        """The file of an SQLite catalog, if the error comes from there."""
        catalog = self.catalog if isinstance(error, SQLAlchemyError) else None
        return catalog.engine.url.database if isinstance(catalog, SqlCatalog) else None


@dataclass
class _Rounds:
    """How far a change has come."""

    change: Change
    since: int | None
    """Up to this sequence number it has not landed."""
    topic_id: str | None = None
    failure: Exception | None = None
    refusal: Exception | None = None  # for good
    lost_races: int = 0
    outages: int = 0
    _was_sent: bool = False
    _sending: bool = False
    """Sent, and nobody has looked since."""
    _sent_on: int | None = None
    metadata_folder: str | None = None  # of the table that it was sent to
    _unanswered_on: set[int | None] = field(default_factory=set)
    """The snapshots on which it was sent, without an answer: while one of them is the current one it may land."""

    @property
    def are_over(self) -> bool:
        return self.refusal is not None or self.lost_races >= MAX_LOST_RACES or self.outages >= MAX_OUTAGES

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may have landed, or still may."""
        return self._is_unsure and self.change.commit_id is not None

    @property
    def _is_unsure(self) -> bool:
        return self._sending or bool(self._unanswered_on)

    @property
    def is_unanswered(self) -> bool:
        """Whether it still may land, and nobody said that it was refused."""
        return bool(self._unanswered_on) and self.change.commit_id is not None

    def send(self, table: Table) -> None:
        """It is sent, from now on it may land."""
        self._was_sent = self._sending = True
        self._sent_on = table.metadata.current_snapshot_id
        self.metadata_folder = table.metadata_location.rpartition("/")[0]
        self.since = table.last_sequence_number if self.since is None else self.since

    def was_refused(self) -> None:
        """The last attempt surely did not land."""
        self._sending = False

    def was_unanswered(self) -> None:
        """Nobody said what became of the last attempt."""
        self._unanswered_on.add(self._sent_on)

    def failed(self, failure: Exception, *, is_lost_race: bool = False) -> None:
        """Count a round that led to nothing."""
        self.failure = failure
        if is_lost_race:
            self.lost_races, self.outages = self.lost_races + 1, 0
            return
        self.outages += _OF_SILENCE if was_silent(failure) else 1
        if failure_of(failure) is FailureKind.REFUSED:
            self.refusal = self.refusal or failure

    def clear(self) -> None:
        """Nothing of it can land any more."""
        self._sending = False
        self._unanswered_on.clear()

    def found(self, table: Table, files: TableFiles, *, ever: bool = False) -> LandedChange | None:
        """Look whether it has landed by now; ``ever`` looks at all that is remembered of expired snapshots.

        Raises:
            CommitStateUnknown: nobody can tell.
            LogCorrupt: nobody can, because what is remembered is damaged.
        """
        if self.change.commit_id is None:
            return None
        landed = landed_before(table, self.change)
        since = 0 if ever else self.since
        if landed is None and since is not None:
            expired = expired_since(files, table, since)
            landed = expired.find(self.change)
            if landed is None and self._was_sent and not (ever or expired.is_all_known):
                raise self.unknown("snapshots since then were expired by another program, or by an older keptlog")
            self.since = table.last_sequence_number
        self._sending = False
        self._unanswered_on &= {table.metadata.current_snapshot_id}
        return landed

    def found_ever(self, table: Table, files: TableFiles) -> LandedChange | None:
        """Look at all that is remembered, after ``found``: it may have landed before anything was sent here.

        Only another process can have landed it then: Dagster hands outcomes on. That somebody was faster is true all
        the same, so what is damaged does not hide it.
        """
        try:
            return self.found(table, files, ever=True)
        except LogCorrupt:
            return None

    def ended(self, landed: LandedChange | None) -> LandedChange:
        """The end of the last round.

        Raises:
            StalePlan, StorageUnavailable, CommitStateUnknown: it did not land, or nobody knows.
        """
        if landed is None:
            raise self.gave_up() from self.failure
        self.clear()
        if self._was_sent:
            _logger.info("%s: the commit that got no answer has landed", self.change)
        return landed

    def tell(self) -> float:
        """One line for a round that is made again, and why; gives the seconds to wait before it."""
        wait_seconds = pause_seconds(self.lost_races, self.outages, self.change.commit_id or self.change.topic)
        why = one_line(self.failure) if self.failure else ""
        if self.outages:
            text = "%s: catalog or storage can't be reached (%s); attempt %d of %d follows in %.2f s"
            _logger.warning(text, self.change, why, self.outages + 1, MAX_OUTAGES, wait_seconds)
        else:
            level = logging.INFO if self.lost_races.bit_count() == 1 else logging.DEBUG
            text = "%s: another commit came first (%s); attempt %d of %d follows in %.2f s"
            _logger.log(level, text, self.change, why, self.lost_races + 1, MAX_LOST_RACES, wait_seconds)
        return wait_seconds

    def require_room(self, error: Exception | None, path: str) -> None:
        """Raises StorageUnavailable if a disk refuses for good; ``path`` is where, unless the error tells better.

        So does a process that may open no more files, once there is nothing to be looked for.
        """
        is_open = self.is_in_doubt or bool(self._unanswered_on)
        refusal = error and (disk_refusal_of(error) or (None if is_open else refusal_of(error)))
        if refusal:
            place = str(getattr(error, "filename", None) or path)
            text = refusal_text(str(self.change), place, refusal, is_sure=not self._is_unsure)
            raise StorageUnavailable(text).for_good() from error

    def gave_up(self) -> KeptlogError:
        """The error after the last round."""
        failure = self.refusal or self.failure
        why = (store_refusal_of(failure) or one_line(failure)) if failure else "no attempt was made"
        limit = refusal_of(failure) if failure else None
        why = f"{why}; {limit.remedy}" if limit else why
        if self.is_in_doubt:
            return self.unknown(why)
        place = self.change.place
        landed = "" if self._is_unsure else "; nothing landed"  # what does no harm twice is not looked for
        if self.refusal:
            text = f"catalog or storage refuses ({why}){landed}: {todo_about(self.refusal)}"
            return StorageUnavailable(f"{place}: {text}").for_good()
        if isinstance(self.failure, CommitFailedException | ValidationException):
            text = f"others committed first {MAX_LOST_RACES} times in a row ({why}); nothing is lost, try again"
            return StalePlan(f"{place}: {text}")
        return StorageUnavailable(f"{place}: catalog or storage can't be reached ({why}){landed}, try again")

    def unknown(self, why: str) -> CommitStateUnknown:
        """The error while it is in doubt."""
        again = f"run again with the same run id, which finds it if it did: --run-id {self.change.run_id}"
        what = f"{self.change.place}: the catalog did not say whether the commit landed ({why})"
        return CommitStateUnknown(f"{what}; {self.change.remedy or again}")
