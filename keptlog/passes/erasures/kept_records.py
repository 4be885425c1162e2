"""What keeps records of an erasure that are not live any more, in the words of holders (``keptlog.log.holder``).

    superseded by the time the records were gone      older snapshots, tags, branches
    written by that time, and shown by no snapshot    staged files, orphans, watermarks, what another home may need
    of a time that nobody knows                       journals, post-dated files, what a bucket keeps of deleted files

What came later can't have them. Where that is wrong after all, because a run had begun before, the search finds it: it
opens every file, and asks here whose a file is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError
from keptlog.log.erasures.erasure import Erasure, ErasureWay, GoneSince
from keptlog.log.holder import Held, HolderKind, Holdings
from keptlog.log.words.counted import some_of
from keptlog.passes.holders import look_for_holders
from keptlog.storage.object_version import VERSION_IN_PATH
from keptlog.table.removal.erasure_look import SnapshotAges
from keptlog.table.removal.held_versions import with_locks
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.table.store import LogStore

_IN_SNAPSHOTS = frozenset({HolderKind.RETIRED, HolderKind.TAG, HolderKind.BRANCH})
_LEFT = frozenset(
    {
        HolderKind.STAGED,
        HolderKind.ORPHAN,
        HolderKind.POST_DATED,
        HolderKind.WATERMARKS,
        HolderKind.JOURNAL,
        HolderKind.ELSEWHERE,
        HolderKind.COPIED_STATE,
        HolderKind.COMMIT_AHEAD,
        HolderKind.OBJECT_VERSION,
        HolderKind.OBJECT_LOCK,
        HolderKind.LEGAL_HOLD,
    }
)
_WRITTEN_ANEW = frozenset({HolderKind.JOURNAL})
"""What is in them may be older than they are."""
_HERE = "erase --here with another id"
_ANEW = "erase with another id"
_AGAIN: Mapping[str, str] = {
    ErasureWay.SOURCE: _HERE,
    ErasureWay.HERE: _HERE,
    ErasureWay.TOMBSTONE: _ANEW,
    ErasureWay.RETENTION: _ANEW,
}
"""How the keys are asked for again."""
_TAKEN_BY_A_CLEAN = frozenset({ErasureWay.SOURCE, ErasureWay.TOMBSTONE})
"""Where that takes a value too that has no newer record."""
_SHOWN = 3


@dataclass(frozen=True)
class KeptRecords:
    """A full look at what holds bytes of a topic that are not live."""

    store: LogStore
    topic: str
    now_ms: int
    holdings: Holdings
    # Told once, however many erasures it is told of: the store may be asked of locks for it.
    _told_of_files: dict[str, Sequence[str]] = field(default_factory=dict, init=False, repr=False)
    _told_of_snapshots: dict[GoneSince, Sequence[str]] = field(default_factory=dict, init=False, repr=False)
    _told_of_left: dict[int, Sequence[str]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def look(cls, store: LogStore, topic: str, now_ms: int) -> KeptRecords:
        """Look at snapshots and storage.

        Raises:
            LogCorrupt: the topic can't be read.
            StorageUnavailable: the storage can't be listed.
        """
        return cls(store, topic, now_ms, look_for_holders(store, topic, now_ms))

    @property
    def oldest_left_ms(self) -> int | None:
        """When the oldest file was written that no snapshot shows; null if there is none."""
        return min((_written_ms(each) for each in self.holdings.held if each.kind in _LEFT), default=None)

    @cached_property
    def _ages(self) -> SnapshotAges:
        """Looked for once, however many erasures there are."""
        table = self.store.load_table(self.topic)
        with reaching(f"snapshots of topic {self.topic} can't be looked at"):
            return SnapshotAges.of(table, looks_inside=True)

    def in_snapshots(self, gone: GoneSince) -> Sequence[str]:
        """A line for each who keeps a snapshot from before the records were gone."""
        if gone not in self._told_of_snapshots:
            self._told_of_snapshots[gone] = self._lines(self._held_in_snapshots(gone))
        return self._told_of_snapshots[gone]

    def left(self, until_ms: int) -> Sequence[str]:
        """A line for each who keeps files of until then that no snapshot shows, with some of their paths."""
        if until_ms not in self._told_of_left:
            held = (each for each in self.holdings.held if each.kind in _LEFT and _written_ms(each) <= until_ms)
            self._told_of_left[until_ms] = self._lines(held)
        return self._told_of_left[until_ms]

    def no_purge(self) -> list[str]:
        """Why a purge, which an erasure waits for, deletes nothing; empty if it does."""
        return [f"waits for a purge: {self.holdings.no_purge}"] if self.holdings.no_purge else []

    def not_read(self) -> list[str]:
        """A line for each that could not be read: nobody can tell what only that shows."""
        return [f"not looked at: {each}" for each in self.holdings.unread]

    def of_file(self, path: str, erasure: Erasure, *, has_records: bool) -> str | None:
        """Who keeps a file, or a version of one, in a line; null if nobody does, or nobody knows of it.

        A value below the log start, whose tombstone lay there too, is superseded by nothing that a clean looks at.
        Of a file of which it is not known that it ``has_records`` of the erasure, that is not said: to put it back, or
        to wait, may be all that is wanted.
        """
        lines = list(self._of_path(path))
        if has_records and any(each.kind is HolderKind.LIVE_SEGMENT for each in self._by_path.get(path, ())):
            again = f"{_AGAIN[erasure.way]}, or " if erasure.way in _TAKEN_BY_A_CLEAN else ""
            lines.append(
                "no clean takes them before a newer record of their key comes: "
                f"{again}delete all records of that segment (keptlog delete-records)"
            )
        elif has_records and path in self._live:
            # A clean has passed it, and so it was put there since, or has won against the tombstone.
            won = ", or by an altered compaction.strategy" if erasure.way in _TAKEN_BY_A_CLEAN else ""
            lines.append(
                f"they are live again, by an adoption or another program{won}: "
                f"{_AGAIN.get(erasure.way, _ANEW)}, and both requests end once that one has removed them"
            )
        return "; ".join(lines) or None

    def _held_in_snapshots(self, gone: GoneSince) -> list[Held]:
        named = self._ages.keepers(gone.sequence_number)
        # Since when a tag or branch keeps a file says too little: it may stand on what took the records' place.
        held = [
            each
            for each in self.holdings.held
            if each.kind in _IN_SNAPSHOTS
            and each.since_ms <= gone.at_ms
            and (each.kind is HolderKind.RETIRED or f"{each.kind} {each.name}" in named)
        ]
        told = {f"{each.kind} {each.name}" for each in held}
        for keeper in named:
            if keeper not in told:  # all that it shows is live: it keeps an old snapshot, and no other file
                kind, _, name = keeper.partition(" ")
                held.append(Held(HolderKind(kind), gone.at_ms, None, name=name))
        return held

    def _of_path(self, path: str) -> Sequence[str]:
        if path not in self._told_of_files:
            paths = dict.fromkeys([path, path.partition(VERSION_IN_PATH)[0]])
            self._told_of_files[path] = self._lines([held for each in paths for held in self._by_path.get(each, ())], 0)
        return self._told_of_files[path]

    @cached_property
    def _by_path(self) -> Mapping[str, Sequence[Held]]:
        by_path: dict[str, list[Held]] = {}
        for each in self.holdings.held:
            if each.path is not None:
                by_path.setdefault(each.path, []).append(each)
        return by_path

    @cached_property
    def _live(self) -> frozenset[str]:
        """The segments of the current snapshot, also one that another program has committed; none if it is unusable."""
        try:
            logs = self.store.reader(self.topic).logs
        except KeptlogError:
            return frozenset()
        return frozenset(segment.path for log in logs for segment in log.segments)

    def _lines(self, held: Iterable[Held], shown: int = _SHOWN) -> list[str]:
        held = list(held)
        due = [each for each in held if (each.due_ms(self.holdings.terms) or self.now_ms) < self.now_ms]
        with reaching(f"files of topic {self.topic} can't be looked at"):
            asked = replace(self.holdings, held=with_locks(self.store.files, held, due, self.holdings.terms))
        lines = []
        for holder in asked.holders(self.now_ms):
            files = [each.path for each in asked.held if (each.kind, each.name) == (holder.kind, holder.name)]
            lines.append(f"{holder}{_shown([path for path in files if path], shown)}")
        return lines


def _written_ms(held: Held) -> int:
    known_ms = None if held.kind in _WRITTEN_ANEW else held.written_ms
    return 0 if known_ms is None else known_ms


def _shown(paths: list[str], count: int) -> str:
    if not paths or not count:
        return ""
    return f" ({some_of(sorted(paths), count)})"
