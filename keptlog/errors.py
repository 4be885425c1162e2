"""What can go wrong, in the few kinds that a caller handles differently.

    KeptlogError
    |- InvalidConfig (ValueError)    a setting, a topic name or a command that can't be accepted
    |  |- IngestStopped              what was read would lose or mix records; somebody has to choose how to go on
    |  |- ContradictsBroker          a topic's own setting and one of the broker settings can't both hold
    |  `- NoStoreClient              no client can be made for the store that a path names; others may be in reach
    |- InvalidRecord (ValueError)    a record that can't be appended; nothing of its batch was
    |- UnknownTopic (LookupError)    no such topic or topic-partition in this catalog
    |- StalePlan                     somebody else committed first; nothing of ours landed
    |  `- InputGone                  an input is not there: somebody else has replaced it, or it is lost
    |- CommitStateUnknown            the catalog did not answer; look before you retry
    |- TombstonesMissed              a registered reader came too late: he starts over, with an empty state
    |- StorageUnavailable            catalog, storage or Spark can't be reached; retry later, unless it was refused or
    |  |                             the catalog is damaged
    |  |- SparkUnavailable           what did the work is lost, and no log is at fault: an executor, a master, a server
    |  `- NoRightToWrite             this user may not write to a folder of a disk; no outage, for it stays so
    |- LogCorrupt                    the stored log contradicts itself; names the segment
    |- UnsupportedFormat             a newer keptlog wrote the topic: nothing is wrong with it, and nothing was touched
    `- InvariantViolated             a bug: the verified result breaks a guarantee; nothing was committed

Every message says what happened, where, with which value, and what to do. ``action`` and ``command`` say the last part
to a program.

``UnsupportedFormat`` is no ``LogCorrupt``, although who looks at all topics goes past both: data that contradict
themselves are to be repaired, by somebody who looks at them; here there is nothing to repair, and whoever tried would
break what is whole. It is no ``InvalidConfig`` either, because no other argument or setting would be accepted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Self


class Action(StrEnum):
    """What the operator, or the orchestrator in his place, should do about an error."""

    RETRY = "retry"
    FIX_CONFIG = "fix_config"
    FIX_DATA = "fix_data"
    FIX_STORAGE = "fix_storage"
    """A right, credentials or room: catalog or storage says no, and will say it again."""
    UPGRADE = "upgrade"
    REPORT_BUG = "report_bug"


class KeptlogError(Exception):
    """Base of all errors that keptlog raises on purpose."""

    action = Action.REPORT_BUG
    command: str | None = None
    """The command that mends it, where one does; the message says so in words."""
    whole_before_offset: int | None = None
    """Of a source that is read in order: what lies below this offset was read whole, and may land."""

    live_legs = 0
    """Of a clean in legs that it has ended: so many of them are live."""

    def from_offset(self, offset: int) -> Self:
        """The same error, of what lies at this offset of a source, below which all was read."""
        self.whole_before_offset = offset
        return self

    def mended_by(self, command: str) -> Self:
        """The same error, saying which command mends it."""
        self.command = command
        return self

    def after_legs(self, live: int) -> Self:
        """The same error, of a clean of which so many legs are live; itself if none is."""
        if not live:
            return self
        legs = "1 leg of its clean is" if live == 1 else f"{live} legs of its clean are"
        told = self.reworded(f"{legs} live, and the next one goes on from there: {self}")
        told.live_legs = live
        return told

    def reworded(self, text: str) -> Self:
        """A new error that says this of the same: what one error of a kind knows, and another does not, goes with it.

        Its action, say: made by its kind alone, one that stays until somebody acts would be told as one to retry.
        """
        told = type(self)(text)
        vars(told).update(vars(self))
        return told


class InvalidConfig(KeptlogError, ValueError):
    """A setting, name or argument is outside of what is allowed; nothing was changed."""

    action = Action.FIX_CONFIG
    is_outlived_copy = False

    def of_outlived_copy(self) -> Self:
        """The same error, of what the catalog of a copied home names and the original has let go since."""
        self.is_outlived_copy = True
        return self


class IngestStopped(InvalidConfig):
    """What was read of a topic-partition would lose or mix records: it stops until somebody chooses how to go on."""


class ContradictsBroker(InvalidConfig):
    """A topic's own setting and one of the broker settings can't both hold; each may be right elsewhere."""


class NoStoreClient(InvalidConfig):
    """No client can be made for the store that a path names: nobody knows such a store, or a setting for it is missing.

    A location is one topic's own, so this says nothing of topics that are elsewhere.
    """


class InvalidRecord(KeptlogError, ValueError):
    """A record can't be appended; nothing of its batch was."""

    action = Action.FIX_DATA


class UnknownTopic(KeptlogError, LookupError):
    """The topic or topic-partition does not exist in this catalog; or, if ``is_elsewhere``, at a source."""

    action = Action.FIX_CONFIG
    is_elsewhere = False

    def at_a_source(self) -> Self:
        """The same error, of a name that is looked for where records come from, and not here."""
        self.is_elsewhere = True
        return self


class StalePlan(KeptlogError):
    """Another commit came first; nothing of ours landed and nothing is lost. A fresh plan may be tried at once."""

    action = Action.RETRY
    logs: Mapping[str, StalePlan] | None = None
    """Of a commit for several logs: those that came too late, with an error each. The others may be sent without them.
    Null if the error is of all of them."""
    landed: Collection[str] = ()
    """Those in which the same has landed before. They are done, and are not to be sent again."""

    def of_logs(self, logs: Mapping[str, StalePlan], landed: Collection[str] = ()) -> Self:
        """The same error, of these logs alone; in others it ``landed`` before."""
        self.logs = logs
        self.landed = landed
        return self


class InputGone(StalePlan):
    """An input is not there. Whether another commit has replaced it, or it is lost, is to be asked of the table."""


class CommitStateUnknown(KeptlogError):
    """The catalog did not say whether the commit landed; staged files are left where they are."""

    action = Action.RETRY


class TombstonesMissed(KeptlogError):
    """What a registered reader knows may be wrong: something went that he had to meet, or he has met what is gone.

    Tombstones, or records, went before he had met them; or his log was truncated below his position. Nothing is wrong
    with the log. He starts over: from its beginning, with an empty state.
    """

    action = Action.FIX_DATA


class StorageUnavailable(KeptlogError):
    """The catalog or the storage behind it can't be reached or opened."""

    action = Action.RETRY

    def for_good(self) -> Self:
        """The same error, of an answer that does not change by itself."""
        self.action = Action.FIX_STORAGE
        return self

    def of_damage(self) -> Self:
        """The same error, where a file of the catalog is damaged or lost: it stays so until it is put back."""
        self.action = Action.FIX_DATA
        return self

    @property
    def is_refused(self) -> bool:
        """Whether who answers says no, and will say it again: a right is missing, credentials have expired."""
        return self.action is Action.FIX_STORAGE


class SparkUnavailable(StorageUnavailable):
    """Spark lost what did the work: an executor, a worker, its master, its server, or what they had shuffled."""


class NoRightToWrite(StorageUnavailable):
    """This user may not write to a folder of a disk; another one may. It is no outage: it lasts until somebody acts."""

    action = Action.FIX_STORAGE


class LogCorrupt(KeptlogError):
    """The stored log contradicts itself: overlapping segments, offsets out of order, a foreign schema."""

    action = Action.FIX_DATA
    contradiction: str | None = None
    """What contradicts what, where files and state of a topic do; without who it was and what to do."""
    is_of_property = False

    def of_property(self) -> Self:
        """The same error, where a property of the table is wrong, and no file is damaged."""
        self.is_of_property = True
        return self


class UnsupportedFormat(KeptlogError):
    """A topic is stored in a format of a newer major version; nothing of it was read or changed."""

    action = Action.UPGRADE


class InvariantViolated(KeptlogError):
    """A rewritten log would break a guarantee; it was not committed."""

    action = Action.REPORT_BUG


OF_A_LOG: tuple[type[KeptlogError], ...] = (
    CommitStateUnknown,
    InvariantViolated,
    LogCorrupt,
    NoRightToWrite,
    NoStoreClient,
    StalePlan,
    UnsupportedFormat,
)
"""Errors that say something of one log or topic, whatever else is up or down."""


def first_line(error: BaseException) -> str:
    """What an error says in one line; its kind if it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
