"""``recovery``: what a crash in the middle of a clean leaves, against the real table.

Kafka swaps files by renames: ``.cleaned`` while a clean is written, ``.swap`` once it is whole, ``.deleted`` for what
it replaced. keptlog has one commit in their place (ADR 1), so a case's files are read as how far a clean had come:

    .cleaned            staged, and the process died before its commit
    .swap               committed, and the process died before anything else
    .deleted            committed, and the purge had not run yet

Each clean really happens on the table up to that point. Then the home is opened again, as the next process does, and
purged: the segments that are live, and the only files there are, must be those that Kafka's recovery leaves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from keptlog.log.record import Record
from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields, understood
from tests.conformance.logs import TOPIC, Pass, TableLog
from tests.table.stores import store_at

_FILE = re.compile(r"(\d+)\.(log|index|timeindex|txnindex)(?:\.(cleaned|swap|deleted))?")
_STEP = 10
_LATER_MS = 4_000_000_000_000
"""Later than any snapshot and file that the test makes."""
_BY_COMMIT = Difference(1, "one commit swaps all files of a clean at once; there is nothing to recover")


@dataclass(frozen=True)
class Clean:
    """A clean of ``[base_offset, end_offset)`` into one segment."""

    base_offset: int
    end_offset: int
    is_committed: bool


def run(case: Fields, home: Path) -> list[Difference]:
    fields = case_fields(case, {"swap_next_offset"}, {"files", "expect"})
    expect = understood(fields["expect"], "expect", set(), {"files"})
    plain, cleaned, swap, deleted = (_logs(fields["files"], suffix) for suffix in (None, "cleaned", "swap", "deleted"))
    sources = sorted(set(plain) | set(deleted) | set(swap) | set(cleaned))
    log = TableLog(home, {"cleanup.policy": "compact", "file.delete.delay.ms": "0"})
    ends = dict(zip(sources, [*sources[1:], (sources or [0])[-1] + _STEP], strict=True))
    for base_offset in sources:
        log.append([Record(offset, b"%d" % offset, b"v", 0) for offset in (base_offset, ends[base_offset] - 1)])
    next_offsets = {_parse(name)[0]: end for name, end in fields.get("swap_next_offset", {}).items()}
    for each in _cleans(ends, cleaned, swap, deleted, next_offsets):
        _carry_out(log, each)
    store = store_at(home)
    store.purge(TOPIC, _LATER_MS, 0)
    (live,) = store.logs(TOPIC)
    wanted = _logs(expect["files"], None)
    assert [segment.base_offset for segment in live.segments[:-1]] == wanted
    stored = {file.path for file in store.files.list(store.data_location(TOPIC))}
    assert stored == {segment.path for segment in live.segments}
    return [_BY_COMMIT]


def _cleans(
    ends: dict[int, int], cleaned: list[int], swap: list[int], deleted: list[int], next_offsets: dict[int, int]
) -> list[Clean]:
    """What must have happened for these files to lie there.

    Kafka renames to ``.swap`` from the highest base down, so one above a ``.cleaned`` is part of a clean that was not
    whole yet.
    """
    lowest_cleaned = min(cleaned, default=2**63)
    cleans = [
        Clean(base, next_offsets.get(base, ends[base]), is_committed=base < lowest_cleaned)
        for base in sorted({*swap, *cleaned})
    ]
    if deleted and not swap:
        cleans.append(Clean(min(deleted), max(ends[base] for base in deleted), is_committed=True))
    return cleans


def _carry_out(log: TableLog, clean: Clean) -> None:
    step = log.step(Pass(clean.base_offset, clean.end_offset, now_ms=0))
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
