"""What holds bytes of a log that are not live any more, since when, and by when they are gone.

A clean replaces segments, a delete removes records, and the bytes stay: for a while because somebody may still read
them, for longer because something keeps them. G8 promises an end. What keeps bytes is a **holder**, with a deadline:

    superseded            may be deleted           deadline
        |---- the delay ----|---- purge interval ----|---------> late: told, exit 1, a failed check

- What older snapshots show may be deleted ``file.delete.delay.ms`` after a commit has replaced it, and is, by the next
  purge. One comes within ``keptlog.purge.interval.ms``.
- What nothing refers to is younger than the grace (**staged**: its run may still be under way), or older (**orphan**).
- A tag or a branch keeps what it shows until somebody drops it; a purge does so only once a retention that it has of
  its own is over. Its deadline is that of all others, because nobody who was promised that a value goes has agreed to a
  tag. So it names who must act, and how.
- What another catalog may need is kept for a metadata file that this one does not name: a **copied state**, or a
  **commit ahead**. No purge deletes it, and only a person knows whether another home has the topic.
- What a clock that was ahead has dated is **post-dated**: nobody can tell since when it is held, nor its deadline.
- What holds no keys and no values, such as old metadata, is told, but promises nothing: it has no deadline.
- Deleted records that still lie in a live segment, because the log start is inside of it, go with that segment, as in
  Kafka. No time is promised. But they are there, so nobody may say that nothing holds them.

A look at storage gives ``Held``: a file, or a few that one commit has superseded. Judged at a time they become
``Holder``s, which people read. Who looks, and how closely, is told in ``keptlog.table.removal.held``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from keptlog.log.words.counted import counted
from keptlog.log.words.holder_remedies import COMMITTED_AHEAD, ENDED, ENDS, remedy
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.next_command import next_command

ORPHAN_GRACE_MS = 24 * 3_600_000
"""Longer than any append or clean takes from its first staged file to its commit."""
SEGMENT_IN_NAME = " in "
PURGE_INTERVAL_MS = 86_400_000
"""The default of ``keptlog.purge.interval.ms``."""


class HolderKind(StrEnum):
    """What keeps bytes that are not live."""

    RETIRED = "retired"
    """An older snapshot shows it."""
    TAG = "tag"
    BRANCH = "branch"
    STAGED = "staged"
    """Nothing refers to it, and it is younger than the grace: a run that is under way, or one that died."""
    ORPHAN = "orphan"
    """Nothing refers to it, and it is older than the grace."""
    POST_DATED = "post-dated"
    """Nothing refers to it, and its time is still to come: nobody can tell how old it is."""
    WATERMARKS = "watermarks"
    """A file of watermarks that a later one has replaced: it holds hashes of keys, or keys."""
    JOURNAL = "journal"
    """Of a purge that was killed, or one that could not be read."""
    ELSEWHERE = "elsewhere"
    """Replaced, and outside of the topic's folder: another program has put it there, and no purge deletes it."""
    COPIED_STATE = "copied state"
    """Another catalog may have the topic as a metadata file says it, and no purge deletes what that shows."""
    COMMIT_AHEAD = "commit ahead"
    """A metadata file may have landed in another catalog, and no purge deletes what it refers to."""
    STATISTICS = "statistics"
    """Bounds of keys or values in a manifest, or a file of statistics: keptlog writes neither, other programs may."""
    METADATA = "metadata"
    """Metadata files, manifests and manifest lists of older states: names and numbers."""
    CACHE = "cache"
    """What this home remembers of a topic: names and numbers."""
    SPARK = "spark"
    """A local folder of a Spark whose process is gone."""
    RUNNING_SPARK = "running spark"
    """One that may be in use, and goes with its process."""
    OBJECT_VERSION = "object version"
    """Of a file that somebody deleted, in a bucket that keeps versions."""
    LIVE_SEGMENT = "live segment"
    """One that the log start lies in: its name says which offsets are below, and which it has."""
    REPLACED_VERSION = "replaced version"
    """Of a file that is there, and was written again."""
    DELETE_MARKER = "delete marker"
    OBJECT_LOCK = "object lock"
    LEGAL_HOLD = "legal hold"


AFTER_DELAY = frozenset({HolderKind.RETIRED, HolderKind.TAG, HolderKind.BRANCH, HolderKind.STATISTICS})
"""What a purge may delete once ``file.delete.delay.ms`` has passed, if nobody keeps it."""
AFTER_GRACE = frozenset({HolderKind.STAGED, HolderKind.ORPHAN})
NEVER_LATE = frozenset(
    {
        HolderKind.METADATA,
        HolderKind.CACHE,
        HolderKind.DELETE_MARKER,
        HolderKind.RUNNING_SPARK,
        HolderKind.REPLACED_VERSION,
        HolderKind.POST_DATED,
        HolderKind.LIVE_SEGMENT,
    }
)
"""Told, but without a deadline: names and numbers, what a process may be working with, what goes with a live one. Of
what is post-dated no deadline can be told, so G8 does not pass."""
CLOCKS_DIFFER_MS = 3_600_000
"""A storage's clock may be so far ahead; what it has written just now is post-dated beyond that."""


def is_told_by_g8(kind: HolderKind) -> bool:
    """Whether such a holder may hold keys or values: it has a deadline, or one that nobody knows, or is live."""
    return kind in {HolderKind.LIVE_SEGMENT, HolderKind.POST_DATED} or kind not in NEVER_LATE


ENDS_BY_ITSELF = frozenset(
    {HolderKind.RETIRED, HolderKind.STAGED, HolderKind.ORPHAN, HolderKind.WATERMARKS, HolderKind.OBJECT_LOCK}
)
"""What lets go at a known time, without anybody's doing but a purge's."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a topic promises of bytes that are not live, in ms."""

    delete_delay_ms: int
    """``file.delete.delay.ms``."""
    purge_interval_ms: int = PURGE_INTERVAL_MS
    """``keptlog.purge.interval.ms``."""
    orphan_grace_ms: int = ORPHAN_GRACE_MS


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes that are not live: of one file, or of the files that one commit has superseded."""

    kind: HolderKind
    since_ms: int
    """When they were superseded; of what nothing refers to, when it was written."""
    files: int | None = 1
    """Null: some, not counted."""
    bytes: int | None = None
    """Null: not known."""
    name: str = ""
    """Which tag, which branch, which file."""
    partition: int | None = None
    """Null: of no log alone, so of all of the topic."""
    path: str | None = None
    """Of the one file."""
    until_ms: int | None = None
    """When it may be deleted, where that is not what its kind says."""
    written_ms: int | None = None
    """When the file was written, as far as that is known; null: it may be as old as can be."""
    kept_until_ms: int | None = None
    """When whoever keeps it lets go: the end of a lock, or of the retention of a tag or a branch."""

    def due_ms(self, terms: Terms) -> int | None:
        """From when on a purge may delete it, if nobody keeps it; null for what is never late."""
        if self.kind in NEVER_LATE:
            return None
        if self.until_ms is not None:
            return self.until_ms
        if self.kind in AFTER_GRACE:
            return self.since_ms + terms.orphan_grace_ms
        return self.since_ms + (terms.delete_delay_ms if self.kind in AFTER_DELAY else 0)

    def deadline_ms(self, terms: Terms) -> int | None:
        """When it is to be gone: a purge has come by then. Null for what is never late."""
        due_ms = self.due_ms(terms)
        return None if due_ms is None else due_ms + terms.purge_interval_ms


@dataclass(frozen=True, slots=True)
class Holder:
    """All that one holder keeps of a topic, or of one of its logs, as it stands at one time."""

    kind: HolderKind
    name: str
    topic: str
    """Empty for what lies on this machine, and may be of any topic."""
    partition: int | None
    """Null: of the whole topic."""
    files: int | None
    """Null: not counted."""
    bytes: int | None
    """Null: not known."""
    since_ms: int
    """Of what is held longest."""
    until_ms: int | None
    """When it lets go of the last of it; null: not before somebody acts."""
    deadline_ms: int | None
    """When the first of it is to be gone, or was; null: never."""
    late_files: int
    """How many are past their deadline. Those that are not counted count as one."""
    remedy: str
    """Who must act, and how."""
    is_post_dated: bool = False
    """Whether since when it is held lies ahead of the clock: then nobody can tell whether a deadline has passed."""
    is_purge_refused: bool = False
    """Whether a purge deletes nothing of the topic before something else is mended; the remedy says what."""

    @property
    def is_late(self) -> bool:
        """Whether a deadline has passed: G8 is broken."""
        return self.late_files > 0

    def __str__(self) -> str:
        """One line for people: what keeps how much, until when, and what to do."""
        if self.kind is HolderKind.LIVE_SEGMENT:
            deleted, _, segment = self.name.partition(SEGMENT_IN_NAME)
            where = f"are below the log start and still lie in the live segment at {segment}"
            return f"offsets {deleted} of {self._which} {where}: {self.remedy}"
        told = f"{self._subject()} {'keep' if self.kind in _SUBJECTS else 'keeps'} {self._what()}"
        if self.is_late and self.deadline_ms is not None:
            number = "" if self.files in {None, self.late_files} else f"{self.late_files} "
            whose = "its" if self.files == 1 else "their"
            told += f", {number}past {whose} deadline ({iso_time(self.deadline_ms)})"
            if self.kind in _KEEP_TO_AN_END and self.until_ms is not None:
                told += f", until {iso_time(self.until_ms)}"
        elif self.until_ms is not None:
            told += f" until {iso_time(self.until_ms)}"
        elif self.deadline_ms is not None:
            told += f", to be gone by {iso_time(self.deadline_ms)}"
        return f"{told}: {self.remedy}"

    @property
    def _which(self) -> str:
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"

    def _subject(self) -> str:
        named = " ".join(filter(None, (_SUBJECTS.get(self.kind, self.kind), self.name)))
        return f"{named} of {self._which}" if self._which else named

    def _what(self) -> str:
        noun = _NOUNS.get(self.kind, "file")
        counted_files = f"{noun}s" if self.files is None else counted(self.files, noun)
        return f"{counted_files}{_NOUN_GOES_ON.get(self.kind, '')}"


_SUBJECTS = {
    HolderKind.RETIRED: "older snapshots",
    HolderKind.STAGED: "runs that are under way, or died,",
    HolderKind.ORPHAN: "runs that died",
    HolderKind.POST_DATED: "runs that are under way, or died,",
    HolderKind.WATERMARKS: "earlier cleans",
    HolderKind.JOURNAL: "purges or deletions that were not finished",
    HolderKind.ELSEWHERE: "other programs",
    HolderKind.STATISTICS: "other programs",
    HolderKind.METADATA: "older states of the table",
    HolderKind.CACHE: "earlier looks",
}
"""Who keeps, where the kind is not the word for it; all of them are many."""
_NOUNS = {
    HolderKind.RETIRED: "retired segment",
    HolderKind.TAG: "retired segment",
    HolderKind.BRANCH: "retired segment",
    HolderKind.STAGED: "staged file",
    HolderKind.ORPHAN: "orphan",
    HolderKind.POST_DATED: "post-dated file",
    HolderKind.WATERMARKS: "retired watermark file",
    HolderKind.JOURNAL: "journal",
    HolderKind.ELSEWHERE: "replaced file",
    HolderKind.COPIED_STATE: "replaced file",
    HolderKind.COMMIT_AHEAD: "staged file",
    HolderKind.METADATA: "old metadata file",
    HolderKind.CACHE: "outdated cache file",
}
_NOUN_GOES_ON = {HolderKind.ELSEWHERE: " outside of its folder", HolderKind.STATISTICS: " with statistics"}
"""What stands behind the noun, also behind its plural."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a look at one topic has found."""

    topic: str
    """Empty for what lies on this machine, and may be of any topic."""
    terms: Terms
    held: tuple[Held, ...] = ()
    unread: tuple[str, ...] = ()
    """What could not be listed or read, a line each: what only that shows is missing."""
    not_looked_at: tuple[str, ...] = ()
    """What this storage does not tell, a line each: whether it keeps versions. It never does, so that G8 is judged
    without. A store that did not answer belongs to the above."""
    clock_ms: int | None = None
    """What the clock showed at the look, or the time as of which it was, if later; null: nobody has compared."""
    no_purge: str = ""
    """Why a purge refuses to delete anything, and what to do; empty if it does not, or nobody has looked."""

    def holders(self, now_ms: int, partition: int | None = None) -> list[Holder]:
        """The holders of the topic or, with a partition, of one of its logs: what is late first.

        What belongs to no log alone is told of each of them.
        """
        by_holder: dict[tuple[HolderKind, str, bool], list[Held]] = defaultdict(list)
        for each in self.held:
            if partition is None or each.partition in {None, partition}:
                by_holder[each.kind, each.name, self.is_post_dated(each)].append(each)
        found = [_holder(self, of_holder, now_ms, partition) for of_holder in by_holder.values()]
        return sorted(found, key=lambda each: (not each.is_late, _ORDER[each.kind], each.name, each.is_post_dated))

    def late(self, now_ms: int) -> list[Holder]:
        """Those of which a deadline has passed."""
        # Asked at every look at very many topics, of which hardly one has any.
        if not any(_passed(each.deadline_ms(self.terms), now_ms) for each in self.held):
            return []
        return [each for each in self.holders(now_ms) if each.is_late]

    def post_dated(self, now_ms: int) -> list[Holder]:
        """Those of which nobody can tell whether a deadline has passed."""
        return [each for each in self.holders(now_ms) if each.is_post_dated]

    def is_post_dated(self, held: Held) -> bool:
        """Whether nobody can tell since when it is held: that lies ahead of the clock."""
        if self.clock_ms is not None and held.kind in AFTER_DELAY:
            return held.since_ms > self.clock_ms + CLOCKS_DIFFER_MS
        return held.kind is HolderKind.POST_DATED


_REFS = frozenset({HolderKind.TAG, HolderKind.BRANCH})
_KEEP_TO_AN_END = _REFS | {HolderKind.OBJECT_LOCK}
"""What may keep something beyond its deadline, and still lets go at a known time."""
_ORDER = {kind: number for number, kind in enumerate(HolderKind)}


def _holder(holdings: Holdings, held: Sequence[Held], now_ms: int, partition: int | None) -> Holder:
    kind, name, topic, terms = held[0].kind, held[0].name, holdings.topic, holdings.terms
    deadlines_ms = [(each.deadline_ms(terms), each.files) for each in held]
    due_ms = max(max(each.kept_until_ms or 0, each.due_ms(terms) or 0) for each in held)
    since_ms, is_post_dated = min(each.since_ms for each in held), holdings.is_post_dated(held[0])
    why, purge = "", next_command("purge", topic)
    if is_post_dated and kind is not HolderKind.POST_DATED:
        why, purge = COMMITTED_AHEAD.format(since=iso_time(since_ms)), f"KEPTLOG_NOW_MS={due_ms} {purge}"
    is_kept = held[0].kept_until_ms is not None and kind in _REFS
    has_ended = is_kept and due_ms < now_ms
    what = ENDED if has_ended else ENDS if is_kept else kind
    return Holder(
        kind=kind,
        name=name,
        topic=topic,
        partition=partition,
        files=_total(each.files for each in held),
        bytes=_total(each.bytes for each in held),
        since_ms=since_ms,
        until_ms=due_ms if kind in ENDS_BY_ITSELF or (is_kept and not has_ended) else None,
        deadline_ms=min((each for each, _ in deadlines_ms if each is not None), default=None),
        late_files=sum(1 if files is None else files for late_ms, files in deadlines_ms if _passed(late_ms, now_ms)),
        remedy=why + remedy(what, {"kind": kind, "name": name, "topic": topic, "purge": purge}, holdings.no_purge),
        is_post_dated=is_post_dated,
        is_purge_refused=bool(holdings.no_purge),
    )


def _passed(deadline_ms: int | None, now_ms: int) -> bool:
    return deadline_ms is not None and deadline_ms < now_ms


def _total(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(each for each in known if each is not None)
