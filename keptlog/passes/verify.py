"""Checks the guarantees on a log as it is stored, long after the cleans that should have kept them.

A clean verifies its own outcome before it commits (``keptlog.log.result.verify``): there the records that go are still
at hand, so there it is shown that every latest record stayed. On a stored log they are gone. What can still be seen is
whether the log contradicts itself, and each guarantee leaves something to see:

    G1  in the clean section every key occurs once and no record lacks a key; every segment holds as many records as
        the table says. That the *right* one of a key's records stayed was shown when it was committed.
    G2  offsets rise, inside every segment and from one to the next.
    G3  every offset lies where the table says that its segment lies, and between log start and log end.
    G4  the dirty section is as it was appended: consecutive offsets, no delete horizon. Were a record of it touched,
        one or the other would show, except for a value changed in place, which nothing in keptlog can do to a file.
        A log that is ingested has the gaps of its source, so that there a record that went is only seen by G1's count.
    G5  in the clean section every tombstone has its delete horizon, and nothing else has one: no tombstone may go
        before a horizon that it has. That none went too early was checked by the clean that removed it.

``max_compaction_lag`` is no guarantee of the log but a promise of those who run it: it warns.

Keys, offsets and horizons are read, values only where a file has no statistics of them. Memory: one row group, and
eight bytes for each record of the clean section, at most for ``RECORDS_PER_PASS`` of them at a time. Problems name
offsets, never keys: keys are personal data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from keptlog.log.assessment import Assessment, assess
from keptlog.log.sections import Sections
from keptlog.log.segment import Log, Segment
from keptlog.storage.files import Files
from keptlog.storage.segment_reader import open_segment

if TYPE_CHECKING:
    from keptlog.table.store import LogStore

RECORDS_PER_PASS = 50_000_000
_PROBLEMS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is checked. ``title`` says it in words, fit for an identifier."""

    name: str
    title: str
    description: str
    warns_only: bool = False


CHECKS: tuple[Check, ...] = (
    Check("G1", "one_record_a_key", "The clean section holds one record of every key, and every segment is whole."),
    Check("G2", "order_is_kept", "Offsets rise inside every segment and from one to the next."),
    Check("G3", "offsets_are_kept", "Every offset lies where the table says, between log start and log end."),
    Check("G4", "dirty_section_is_untouched", "The dirty section is as it was appended."),
    Check("G5", "tombstones_wait", "Every tombstone of the clean section, and nothing else, has a delete horizon."),
    Check("max_compaction_lag", "", "No record is uncompacted for longer than max.compaction.lag.ms.", warns_only=True),
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check on one log; ``metadata`` are its numbers, times and sizes in ms and bytes."""

    name: str
    passed: bool
    description: str
    metadata: Mapping[str, int | float]


@dataclass
class _Findings:
    """What a walk over the log found: problems by check, and a few counts."""

    problems: dict[str, list[str]] = field(default_factory=lambda: {check.name: [] for check in CHECKS})
    records: int = 0
    tombstones: int = 0
    last_offset: int = -1

    def add(self, name: str, problem: str) -> None:
        self.problems[name].append(problem)


@dataclass
class _Content:
    """What one segment's file really holds."""

    records: int = 0
    first_offset: int = -1
    last_offset: int = -1
    rises: bool = True
    """Whether every offset is above the one before, that of the segment before included."""
    tombstones: int = 0
    stamped: int = 0
    unkeyed: int = 0
    dirty_records: int = 0
    """From the first dirty offset on, which may lie inside of a segment."""
    dirty_stamped: int = 0


def verify_log(store: LogStore, log: Log, now_ms: int) -> list[CheckResult]:
    """Check one log; one result for each of ``CHECKS``, in their order."""
    assessment = assess(log, now_ms)
    findings = _Findings()
    for segment in log.segments:
        try:
            with open_segment(store.files, segment) as parquet:
                found = _read(parquet, assessment.sections.first_dirty_offset, findings)
        except (OSError, pa.ArrowInvalid) as error:
            findings.add("G1", f"{segment.path} can't be read: {error}")
        else:
            _judge(found, segment, log, assessment.sections, findings)
    if not findings.problems["G1"]:
        for first, again in _repeated_keys(store.files, assessment):
            findings.add("G1", f"offsets {first} and {again} have the same key")
    delay_ms = assessment.max_compaction_delay_ms
    if delay_ms > 0:
        findings.add("max_compaction_lag", f"the oldest uncompacted record is {delay_ms} ms late")
    return [_result(check, findings, assessment) for check in CHECKS]


def _read(parquet: pq.ParquetFile, first_dirty_offset: int, findings: _Findings) -> _Content:
    """Walk one segment."""
    found = _Content()
    for index in range(parquet.num_row_groups):
        table = parquet.read_row_group(index, columns=["offset", "delete_horizon"], use_threads=False)
        offsets = table["offset"].to_numpy()
        if found.records == 0:
            found.first_offset = int(offsets[0])
        found.rises &= offsets[0] > findings.last_offset and bool((offsets[1:] > offsets[:-1]).all())
        found.last_offset = findings.last_offset = int(offsets[-1])
        found.records += table.num_rows
        is_stamped, is_dirty = table["delete_horizon"].is_valid().to_numpy(), offsets >= first_dirty_offset
        found.stamped += int(is_stamped.sum())
        found.dirty_records += int(is_dirty.sum())
        found.dirty_stamped += int((is_stamped & is_dirty).sum())
        found.tombstones += _nulls(parquet, index, "value")
        found.unkeyed += _nulls(parquet, index, "key")
    findings.records += found.records
    findings.tombstones += found.tombstones
    return found


def _judge(found: _Content, segment: Segment, log: Log, sections: Sections, findings: _Findings) -> None:
    """Compare what a segment holds with what the table says of it and with what its section demands."""
    where = _name(segment)
    if found.records != segment.record_count:
        findings.add("G1", f"{where} has {found.records} records, not {segment.record_count}")
    if not found.rises:
        findings.add("G2", f"{where}: offsets do not rise between {segment.base_offset} and {segment.last_offset}")
    held = (found.first_offset, found.last_offset)
    if held != (segment.base_offset, segment.last_offset):
        findings.add("G3", f"{where} holds offsets {held}, not {(segment.base_offset, segment.last_offset)}")
    if held[1] < log.log_start_offset or held[1] >= log.log_end_offset:
        findings.add("G3", f"{where} holds offsets {held}, the log is [{log.log_start_offset}, {log.log_end_offset})")
    if segment.last_offset < sections.first_dirty_offset:
        _judge_clean(found, where, findings)
    elif sections.checkpoint_reset is None:
        _judge_dirty(found, segment, log, findings, sections.first_dirty_offset)


def _judge_clean(found: _Content, where: str, findings: _Findings) -> None:
    if found.unkeyed:
        findings.add("G1", f"{where} has {found.unkeyed} records without a key")
    if found.tombstones != found.stamped:
        findings.add("G5", f"{where} has {found.tombstones} tombstones but {found.stamped} delete horizons")


def _judge_dirty(found: _Content, segment: Segment, log: Log, findings: _Findings, first_dirty_offset: int) -> None:
    where = _name(segment)
    first_offset = max(segment.base_offset, first_dirty_offset)
    if not log.is_ingested and found.dirty_records != segment.last_offset - first_offset + 1:
        findings.add("G4", f"{where} lacks offsets between {first_offset} and {segment.last_offset}")
    if found.dirty_stamped:
        findings.add("G4", f"{where} has {found.dirty_stamped} delete horizons from offset {first_offset} on")


def _name(segment: Segment) -> str:
    return segment.path.rpartition("/")[2]


def _nulls(parquet: pq.ParquetFile, row_group: int, column: str) -> int:
    """How many nulls a column has, from the file's statistics if it has them."""
    position = parquet.schema_arrow.get_field_index(column)
    metadata = parquet.metadata.row_group(row_group)
    by_path = {metadata.column(i).path_in_schema: metadata.column(i) for i in range(metadata.num_columns)}
    statistics = by_path[column].statistics if position >= 0 else None
    if statistics is not None and statistics.has_null_count:
        return int(statistics.null_count)
    return int(parquet.read_row_group(row_group, columns=[column], use_threads=False)[column].null_count)


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
        with open_segment(files, segment) as parquet:
            for index in range(parquet.num_row_groups):
                table = parquet.read_row_group(index, columns=["key", "offset"], use_threads=False)
                is_clean = pc.and_(
                    pc.greater_equal(table["offset"], first_offset), pc.less(table["offset"], end_offset)
                )
                table = table.filter(is_clean)
                hashes = map(hash, table["key"].to_pylist())
                yield np.fromiter(hashes, dtype=np.int64, count=table.num_rows), table


def _result(check: Check, findings: _Findings, assessment: Assessment) -> CheckResult:
    problems = findings.problems[check.name]
    return CheckResult(
        name=check.name,
        passed=not problems,
        description=_sentence(problems) if problems else check.description,
        metadata=_metadata(check, findings, assessment) | {"problems": len(problems)},
    )


def _sentence(problems: Sequence[str]) -> str:
    more = len(problems) - _PROBLEMS_SHOWN
    return "; ".join(problems[:_PROBLEMS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _metadata(check: Check, findings: _Findings, assessment: Assessment) -> dict[str, int | float]:
    if check.name == "max_compaction_lag":
        return {"late_ms": assessment.max_compaction_delay_ms, "dirty_ratio": assessment.cleanable_ratio}
    if check.name == "G5":
        return {"tombstones": findings.tombstones, "removable_for_ms": assessment.delete_expired_ms}
    if check.name == "G4":
        return {"dirty_segments": len(assessment.sections.dirty)}
    return {"records": findings.records, "segments": len(assessment.log.segments)}
