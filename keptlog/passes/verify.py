"""Checks the guarantees on a log as it is stored, long after the cleans that should have kept them.

A clean verifies its own outcome before it commits (``keptlog.log.result.verify``): there the records that go are still
at hand, so there it is shown that every latest record stayed. On a stored log they are gone. What can still be seen is
whether the log contradicts itself, and each guarantee leaves something to see:

    G1  in the clean section every key occurs once and no record lacks a key; every file, watermarks included, is there
        and is what was written. That the *right* one of a key's records stayed was shown when it was committed.
    G2  offsets rise, inside every segment and from one to the next.
    G3  every offset lies where the table says that its segment lies, and between log start and log end.
    G4  the dirty section is as it was appended: consecutive offsets up to the log end, inside of segments and from one
        to the next, no delete horizon. Were a record of it touched, or a segment lost, one or the other would show, and
        a value changed in place breaks the checksum of G1.
        What a clean in legs has begun with and not ended (ADR 47) has lost records, and is left out; so is what was
        clean before a repair gave up the checkpoint (ADR 27). Until a clean ends after that, no record is judged, and
        the description says so. An adopted table may have gaps anywhere: nobody looks for segments that it lacks, and
        the description says that too.
        A log that is ingested has the gaps of its source, so that there a record that went is only seen by G1's count.
    G5  in the clean section every tombstone has its delete horizon, and nothing else has one: no tombstone may go
        before a horizon that it has, and a value that has one goes as if it were a tombstone. They are compared record
        by record (``segment_content``). That none went too early was checked by the clean that removed it.

``max_compaction_lag`` is no guarantee of the log but a promise of those who run it: it warns.

A check has one of three outcomes. A file that is damaged or lost breaks G1; what the other checks ask of it is not
looked at, and neither is what the storage does not give. Not looked at is neither fine nor broken, so it is told as
what it is, and never as passed. One file that can't be read, or one topic, hides nothing of the others.

All bytes are read for their checksums, but only keys, offsets and horizons are decoded, and values where some of a row
group's records are tombstones. ``every_byte=False`` leaves out what is none of these, and values: enough after a clean,
which has just written them. Memory: one row group, and eight
bytes for each record of the clean section, at most for ``RECORDS_PER_PASS`` of them at a time. Problems name offsets,
never keys: keys are personal data.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keptlog.errors import KeptlogError, LogCorrupt, first_line
from keptlog.log.assessment import Assessment, assess
from keptlog.log.sections import Sections, appended_from, missing_offsets
from keptlog.log.segment import Log, Segment
from keptlog.log.words.counted import counted
from keptlog.log.words.units import duration
from keptlog.passes.check import CHECKS, Check, CheckResult, sentence
from keptlog.passes.segment_content import Bounds, SegmentContent, content_of
from keptlog.storage.segment_reader import open_segment
from keptlog.storage.watermark_file import read_watermark_file
from keptlog.table.waiting.reaching import apart

if TYPE_CHECKING:
    from keptlog.storage.files import Files
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore

RECORDS_PER_PASS = 50_000_000


def _by_check() -> dict[str, list[str]]:
    return {check.name: [] for check in CHECKS}


_OF_SEGMENTS = ("G1", "G2", "G3", "G4", "G5")
"""What is seen in the segments themselves."""


@dataclass
class _Findings:
    """What a walk over the log found: by check the problems and what could not be looked at, and a few counts."""

    problems: dict[str, list[str]] = field(default_factory=_by_check)
    unseen: dict[str, list[str]] = field(default_factory=_by_check)
    records: int = 0
    tombstones: int = 0
    last_offset: int = -1
    without_checksums: int = 0
    """Segments."""
    only_counted: int = 0
    """Segments of which tombstones and delete horizons were counted, and not compared one by one."""

    missing: list[tuple[str, Collection[str]]] = field(default_factory=list)
    """Paths that are not there, each with the checks that still ask something of it, until somebody has said why."""

    def add(self, name: str, problem: str) -> None:
        self.problems[name].append(problem)

    def leave_out(self, what: str, names: Iterable[str] = _OF_SEGMENTS) -> None:
        for name in names:
            self.unseen[name].append(what)


def verify_log(store: LogStore | UnopenedStore, log: Log, now_ms: int, *, every_byte: bool = True) -> list[CheckResult]:
    """Check one log; one result for each of ``CHECKS``, in their order."""
    seen = apart(log.topic_partition.topic, lambda: assess(log, now_ms))
    if isinstance(seen, KeptlogError):
        return none_looked_at(str(seen))
    assessment, findings, files = seen, _Findings(), store.files
    bounds = Bounds.of(log, assessment.sections)
    _judge_between(log, assessment.sections, findings)
    for number, segment in enumerate(log.segments):
        with _looking(segment.path, findings, _OF_SEGMENTS) as look, open_segment(files, segment) as opened:
            found = content_of(opened, bounds, findings.last_offset, with_values=every_byte)
            _judge(found, segment, log, assessment.sections, findings)
            look.rest = ("G1",)
            findings.without_checksums += not opened.has_checksums
            if every_byte:
                opened.read_through()
        if look.is_out_of_reach:
            behind = len(log.segments) - number - 1
            findings.leave_out(f"{counted(behind, 'segment')} behind it", _OF_SEGMENTS if behind else ())
            break
    if log.watermarks_path:
        with _looking(log.watermarks_path, findings, ("G1",)):
            read_watermark_file(files, log.watermarks_path, log.config.strategy, log.topic_partition.topic)
    _judge_missing(store, log, findings)
    if not findings.problems["G1"] and not findings.unseen["G1"]:
        _judge_keys(store.files, assessment, findings)
        _judge_missing(store, log, findings)
    delay_ms = assessment.max_compaction_delay_ms
    if delay_ms > 0:
        findings.add("max_compaction_lag", f"the oldest uncompacted record is {duration(delay_ms)} late")
    return [_result(check, findings, assessment, every_byte=every_byte) for check in CHECKS]


def none_looked_at(why: str, shown_by: Collection[str] = ()) -> list[CheckResult]:
    """One result for each of ``CHECKS`` of a log of which nothing is known, but what this very reason shows."""
    return [
        CheckResult(check.name, passed=False, description=why, metadata={}, is_looked_at=check.name in shown_by)
        for check in CHECKS
    ]


def _judge_between(log: Log, sections: Sections, findings: _Findings) -> None:
    """Find what was appended and is in no segment, where nobody has given it up."""
    for first, last in missing_offsets(log, sections):
        what = f"offset {first} is" if first == last else f"offsets {first} to {last} are"
        if log.may_be_adopted:
            why = "nobody can tell whether an adoption by an older keptlog gave that up, or it was lost"
            findings.leave_out(f"{what} in no segment: {why}", ["G4"])
        else:
            findings.add("G4", f"{what} in no segment, and nothing has removed what was appended there")


@dataclass
class _Look:
    """A look at one file. ``rest`` are the checks that still ask something of it."""

    rest: Collection[str]
    is_out_of_reach: bool = False
    """Whether the storage does not give it: then it will not give the next one either."""


@contextmanager
def _looking(path: str, findings: _Findings, names: Collection[str]) -> Iterator[_Look]:
    """Look at a file of the log. If it is damaged or missing, or can't be had, that is found, and not raised."""
    look = _Look(names)
    try:
        yield look
    except LogCorrupt as error:
        findings.add("G1", str(error))
        findings.leave_out(f"{_name(path)}, for G1 is broken there", [name for name in look.rest if name != "G1"])
    except FileNotFoundError:
        findings.missing.append((path, look.rest))
    except OSError as error:
        look.is_out_of_reach = True
        findings.leave_out(f"{_name(path)}: the storage does not give it ({first_line(error)})", look.rest)


def _judge_missing(store: LogStore | UnopenedStore, log: Log, findings: _Findings) -> None:
    """Tell files that are lost from those that were replaced, by one look at the topic after all of them were missed.

    A log that has lost its volume misses all its segments.
    """
    missing, findings.missing = findings.missing, []
    if not missing:
        return
    topic = log.topic_partition.topic
    now = apart(topic, lambda: store.lost_files(topic))
    for path, names in missing:
        lost = now if isinstance(now, KeptlogError) else apart(topic, partial(now.first, [path]))
        if isinstance(lost, LogCorrupt) and lost is not now:
            findings.add("G1", str(lost))
            findings.leave_out(f"{_name(path)}, which is missing", [name for name in names if name != "G1"])
        elif lost:
            why = f"whether it was replaced can't be seen now ({first_line(lost)})"
            findings.leave_out(f"{_name(path)}, which is missing; {why}", names)
        else:
            findings.leave_out(f"{_name(path)}: it was replaced and purged meanwhile, verify again", names)


def _judge_keys(files: Files, assessment: Assessment, findings: _Findings) -> None:
    """Look for keys that are twice in the clean section."""
    if not assessment.sections.clean:
        return
    with _looking(str(assessment.log.topic_partition), findings, ("G1",)):
        for first, again in _repeated_keys(files, assessment):
            findings.add("G1", f"offsets {first} and {again} have the same key")


def _judge(found: SegmentContent, segment: Segment, log: Log, sections: Sections, findings: _Findings) -> None:
    """Compare what a segment holds with what the table says of it and with what its section demands."""
    where = _name(segment.path)
    findings.last_offset = found.last_offset
    findings.records += found.records
    findings.tombstones += found.tombstones
    if not found.rises:
        findings.add("G2", f"{where}: offsets do not rise between {segment.base_offset} and {segment.last_offset}")
    held = (found.first_offset, found.last_offset)
    if held != (segment.base_offset, segment.last_offset):
        findings.add("G3", f"{where} holds offsets {held}, not {(segment.base_offset, segment.last_offset)}")
    # One that ends before the log start is what a clean has made of one that did not: the next retention takes it.
    if held[1] >= log.log_end_offset:
        findings.add("G3", f"{where} holds offsets {held}, the log is [{log.log_start_offset}, {log.log_end_offset})")
    if segment.last_offset < log.log_start_offset:
        return  # it goes with the next retention, and may never have been cleaned
    _judge_clean(found, where, findings)
    if segment.last_offset < sections.first_dirty_offset:
        return
    if sections.checkpoint_reset is None and segment.last_offset >= appended_from(log, sections):
        _judge_dirty(found, segment, log, findings, appended_from(log, sections))


def _judge_clean(found: SegmentContent, where: str, findings: _Findings) -> None:
    if found.unkeyed.count:
        findings.add("G1", f"{where} has {found.unkeyed.told('record', 'without a key')}")
    if found.unstamped.count:
        findings.add("G5", f"{where} has {found.unstamped.told('tombstone', 'without a delete horizon')}")
    if found.stamped_values.count:
        findings.add("G5", f"{where} has {found.stamped_values.told('value', 'with a delete horizon')}")
    if found.counted_tombstones != found.counted_horizons:
        stamped = counted(found.counted_horizons, "delete horizon")
        findings.add("G5", f"{where} has {counted(found.counted_tombstones, 'tombstone')} but {stamped}")
    findings.only_counted += found.is_only_counted


def _judge_dirty(
    found: SegmentContent, segment: Segment, log: Log, findings: _Findings, first_dirty_offset: int
) -> None:
    where = _name(segment.path)
    first_offset = max(segment.base_offset, first_dirty_offset)
    if not log.is_ingested and found.dirty_records != segment.last_offset - first_offset + 1:
        findings.add("G4", f"{where} lacks offsets between {first_offset} and {segment.last_offset}")
    if found.dirty_stamped:
        stamped = counted(found.dirty_stamped, "delete horizon")
        findings.add("G4", f"{where} has {stamped} from offset {first_offset} on")


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _repeated_keys(files: Files, assessment: Assessment) -> list[tuple[int, int]]:
    """Pairs of offsets in the clean section that have the same key.

    Hashes are sorted and compared first; only the records behind equal hashes are then compared by their keys.
    """
    clean = assessment.sections.clean
    passes = max(1, math.ceil(sum(segment.record_count for segment in clean) / RECORDS_PER_PASS))
    found: list[tuple[int, int]] = []
    for number in range(passes):
        pieces = [hashes[hashes % passes == number] for hashes, _ in _hashed_keys(files, assessment)]
        if not pieces:
            continue
        ordered = np.sort(np.concatenate(pieces))
        suspects = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        if not suspects.size:
            continue
        first_offsets: dict[bytes, int] = {}
        for hashes, table in _hashed_keys(files, assessment):
            among = table.filter(pa.array(np.isin(hashes, suspects)))
            for key, offset in zip(among["key"].to_pylist(), among["offset"].to_pylist(), strict=True):
                first = first_offsets.setdefault(key, offset)
                if first != offset:
                    found.append((first, offset))
    return found


def _hashed_keys(files: Files, assessment: Assessment) -> Iterator[tuple[Any, pa.Table]]:
    """The clean section's keys and offsets, row group by row group, each with the keys' hashes."""
    first_offset, end_offset = assessment.log.log_start_offset, assessment.sections.first_dirty_offset
    for segment in assessment.sections.clean:
        with open_segment(files, segment) as opened:
            for row_group in range(len(opened.row_groups)):
                table = opened.read(row_group, ["key", "offset"])
                is_clean = pc.and_(
                    pc.greater_equal(table["offset"], first_offset), pc.less(table["offset"], end_offset)
                )
                table = table.filter(is_clean)
                hashes = map(hash, table["key"].to_pylist())
                yield np.fromiter(hashes, dtype=np.int64, count=table.num_rows), table


def _result(check: Check, findings: _Findings, assessment: Assessment, *, every_byte: bool) -> CheckResult:
    problems, unseen = findings.problems[check.name], findings.unseen[check.name]
    description = check.description
    if check.name == "G1":
        description += _how_far(findings, len(assessment.log.segments), every_byte=every_byte)
    reset = assessment.sections.checkpoint_reset
    if check.name == "G5" and findings.only_counted:
        description += (
            f" In {counted(findings.only_counted, 'segment')} they were only counted, for values were not read."
        )
    if check.name == "G4" and reset:
        description = f"No record was judged, for none need be as it was appended: {reset}."
    elif check.name == "G4" and _is_unjudged_between(assessment.log, assessment.sections):
        description += " Nobody looked for missing segments, for the topic was adopted, and may have gaps anywhere."
    if problems:
        description = sentence(problems)
    elif unseen:
        description = f"nothing is broken in what was read; not looked at: {sentence(unseen)}"
    return CheckResult(
        name=check.name,
        passed=not problems and not unseen,
        description=description,
        metadata=_metadata(check, findings, assessment) | {"problems": len(problems)},
        is_looked_at=bool(problems) or not unseen,
    )


def _is_unjudged_between(log: Log, sections: Sections) -> bool:
    """Whether segments may be missing from what the log has of a dirty section, because it was adopted."""
    return log.was_adopted and appended_from(log, sections) < log.log_end_offset


def _how_far(findings: _Findings, segments: int, *, every_byte: bool) -> str:
    """What G1 can't say of files that look whole."""
    told = ""
    if findings.without_checksums:
        told += (
            f" {findings.without_checksums} of {counted(segments, 'segment')} have no checksums, so damage in them may "
            "go unseen: they were written before format 1.1, and a clean that rewrites them adds them."
        )
    return told if every_byte else f"{told} Values were not read."


def _metadata(check: Check, findings: _Findings, assessment: Assessment) -> dict[str, int | float]:
    if check.name == "max_compaction_lag":
        return {"late_ms": assessment.max_compaction_delay_ms, "dirty_ratio": assessment.cleanable_ratio}
    if check.name == "G5":
        return {"tombstones": findings.tombstones, "removable_for_ms": assessment.delete_expired_ms}
    if check.name == "G4":
        return {"dirty_segments": len(assessment.sections.dirty)}
    found: dict[str, int | float] = {"records": findings.records, "segments": len(assessment.log.segments)}
    return found | {"segments_without_checksums": findings.without_checksums} if check.name == "G1" else found
