"""``recovery``: what a crash in the middle of a clean leaves, against the real table.

Kafka swaps files by renames: ``.cleaned`` while a clean is written, ``.swap`` once it is whole, ``.deleted`` for what
it replaced. keptlog has one commit in their place (ADR 1), so a case's files are read as how far a clean had come:

    .cleaned            staged, and the process died before its commit
    .swap               committed, and the process died before anything else
    .swap at or above   a part of the same clean, which was not whole yet: staged
    any .cleaned
    .deleted            committed, and the purge had not run yet

Each clean really happens on the table up to that point. Then the home is opened again, as the next process does, and
purged: the segments that are live, and the only files there are, must be those that Kafka's recovery leaves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from keptlog.engine.tasks import Sizes
from keptlog.log.record import Record
from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields, understood
from tests.conformance.logs import TOPIC, Pass, TableLog
from tests.in_process import in_process_engine
from tests.table.stores import store_at

_FILE = re.compile(r"(\d+)\.(log|index|timeindex|txnindex|snapshot)(?:\.(cleaned|swap|deleted))?")
_NO_PART_OF_A_CLEAN = {"leader-epoch-checkpoint", "partition.metadata"}
"""What lies beside the files of segments, and stays."""
_STEP = 10
_LATER_MS = 4_000_000_000_000
"""Later than any snapshot and file that the test makes."""
_SETTINGS = {
    "cleanup.policy": "compact",
    "file.delete.delay.ms": "0",
    # Below twice the size of any file: none is small, so none joins a clean that does not change it.
    "internal.segment.bytes": "3000",
}
_BY_COMMIT = Difference(1, "one commit swaps all files of a clean at once; there is nothing to recover")


@dataclass(frozen=True)
class Clean:
    """A clean of ``[base_offset, end_offset)`` into one segment."""

    base_offset: int
    end_offset: int
    is_committed: bool = True


@dataclass(frozen=True)
class Found:
    """What lies there after the crash: base offsets, sorted."""

    plain: list[int]
    swap: list[int]
    """Only those of a clean that was whole."""
    torn: list[int]
    """What a clean that was not whole yet has left."""
    deleted: list[int]

    @classmethod
    def of(cls, names: list[str]) -> Found:
        """Read the names as Kafka does: a ``.cleaned`` index is as good a sign of a torn clean as a log is."""
        cleaned = {base for base, _, ending in map(_parse, names) if ending == "cleaned"}
        swap = _logs(names, "swap")
        whole = [base for base in swap if base < min(cleaned, default=2**63)]
        torn = sorted(cleaned | set(swap) - set(whole))
        return cls(_logs(names, None), whole, torn, _logs(names, "deleted"))

    def ends(self) -> dict[int, int]:
        """Of each segment that existed or was made, where it ends."""
        bases = sorted({*self.plain, *self.swap, *self.deleted})
        last = max([*bases, *self.torn], default=0) + _STEP
        return dict(zip(bases, [*bases[1:], last], strict=True)) if bases else {}

    def dropped(self) -> list[int]:
        """Deleted segments of which nothing was left: no other lies below that could hold their records."""
        return [base for base in self.deleted if base < min([*self.plain, *self.swap], default=2**63)]


def run(case: Fields, home: Path) -> list[Difference]:
    fields = case_fields(case, {"swap_next_offset"}, {"files", "expect"})
    expect = understood(fields["expect"], "expect", set(), {"files"})
    found = Found.of([name for name in fields["files"] if name not in _NO_PART_OF_A_CLEAN])
    # A clean that is not cut makes one segment, as the case has it.
    log = TableLog(home, _SETTINGS, partial(in_process_engine, sizes=Sizes()))
    next_offsets = {_parse(name)[0]: end for name, end in fields.get("swap_next_offset", {}).items()}
    cleans = _cleans(found, next_offsets)
    for base_offset, end_offset in found.ends().items():
        is_kept = base_offset not in found.dropped()
        is_cleaned = any(each.base_offset < end_offset and base_offset < each.end_offset for each in cleans)
        log.append(_records(base_offset, end_offset, is_kept=is_kept, is_cleaned=is_cleaned))
    for each in cleans:
        _carry_out(log, each)
    store = store_at(home)
    store.purge(TOPIC, _LATER_MS, 0)
    (live,) = store.logs(TOPIC)
    wanted = _logs([name for name in expect["files"] if name not in _NO_PART_OF_A_CLEAN], None)
    bases = [segment.base_offset for segment in live.segments[:-1]]
    assert bases == wanted, (bases, wanted)
    stored = {file.path for file in store.files.list(store.data_location(TOPIC))}
    assert stored == {segment.path for segment in live.segments}
    return [_BY_COMMIT]


def _records(base_offset: int, end_offset: int, *, is_kept: bool, is_cleaned: bool) -> list[Record]:
    """The first and the last stay in a clean, if any does; one without a key between them makes it change something.

    A segment that no clean is to change has none: any clean above it would change it too.
    """
    kept = {base_offset, end_offset - 1} if is_kept else set()
    offsets = sorted({base_offset, min(base_offset + 1, end_offset - 1), end_offset - 1})
    if not is_cleaned:
        kept = set(offsets)
    return [Record(offset, b"%d" % offset if offset in kept else None, b"v", 0) for offset in offsets]


def _cleans(found: Found, next_offsets: dict[int, int]) -> list[Clean]:
    """What must have happened for these files to lie there."""
    ends = found.ends()
    cleans = []
    if found.swap:
        # Kafka takes all swap files for one range, from the first base to the last one's next offset.
        last = next_offsets.get(found.swap[-1], ends[found.swap[-1]])
        cleans = [Clean(*each) for each in zip(found.swap, [*found.swap[1:], last], strict=True)]
    replaced: dict[int, int] = {}
    for base_offset in found.deleted:
        if not any(each.base_offset <= base_offset < each.end_offset for each in cleans):
            into = max((base for base in (*found.plain, *found.swap) if base <= base_offset), default=found.deleted[0])
            replaced[into] = ends[base_offset]
    cleans = sorted([*cleans, *(Clean(*each) for each in replaced.items())], key=lambda clean: clean.base_offset)
    if found.torn and ends:
        first = max((base for base in ends if base <= found.torn[0]), default=min(ends))
        last = min((end for end in ends.values() if end > found.torn[-1]), default=max(ends.values()))
        cleans.append(Clean(first, last, is_committed=False))
    return cleans


def _carry_out(log: TableLog, clean: Clean) -> None:
    step = log.step(Pass(clean.base_offset, clean.end_offset, now_ms=0))
    if not step.segments:
        return  # nothing lies below its end
    outcome = log.rewrite(step)
    if clean.is_committed:
        log.commit(outcome)


def _logs(files: list[str], suffix: str | None) -> list[int]:
    """Base offsets of the logs that have this suffix."""
    parsed = [_parse(name) for name in files]
    return sorted(base for base, kind, ending in parsed if kind == "log" and ending == suffix)


def _parse(name: str) -> tuple[int, str, str | None]:
    found = _FILE.fullmatch(name)
    if not found:
        raise NotUnderstoodError(f"{name!r} is no file of a log")
    return int(found[1]), found[2], found[3]
