"""Whether a log still is what a change was made from; asked at each attempt to commit, of the table as it is then.

    planned    checkpoint 20, log start 0, inputs [ a ][ b ][ c ]
    now        checkpoint 20, log start 0, live   [ a ][ b ][ c ][ d ]     d came behind: nobody is disturbed
    now        checkpoint 30, log start 0, live   [ x ][ d ]               somebody was faster: ``StalePlan``

Swap, retain, append and arrival share it. Whoever comes second, a zombie or another cleaner, is told what changed;
nothing of his landed, nothing is lost, and he may plan again. A commit for several logs is told which of them came too
late (``require_each``), so that the others need not wait for a new plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from pyiceberg.table import Table

from keptlog.errors import StalePlan
from keptlog.log.retention import retention_of
from keptlog.log.sections import sections_of
from keptlog.log.segment import Log
from keptlog.log.steps import CleanStep, Compact, Drop, Retain, Step, due_horizon_ms, has_due_tombstone
from keptlog.log.words.counted import counted
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import comparable_forms
from keptlog.table.removal.journal import condemned_paths

_T = TypeVar("_T")


def require_each(of_logs: Mapping[str, _T], require: Callable[[_T], object], landed: Collection[str] = ()) -> None:
    """Ask the same of what is to land in several logs, which are named.

    ``landed`` are those in which it has landed before. They don't pass either, and are told as what they are.

    Raises:
        StalePlan: of those logs that do not pass (``StalePlan.logs``), or have before (``StalePlan.landed``).
    """
    found: dict[str, StalePlan] = {}
    for name, of_log in of_logs.items():
        try:
            require(of_log)
        except StalePlan as error:
            found[name] = error
    if found:
        stale = {name: error for name, error in found.items() if name not in landed}
        first, *others = (stale or found).values()
        more = f"; {counted(len(others), 'other log')} of the topic can't land either" if others else ""
        raise StalePlan(f"{first}{more}").of_logs(stale, found.keys() - stale.keys()) from first


def require_staged(files: TableFiles, table: Table, paths: Iterable[str]) -> None:
    """Refuse to commit a file that is no longer there, or that a purge is about to delete (ADR 28).

    Raises:
        StalePlan: a purge took it for the leftover of a dead run.
        LogCorrupt: what a purge has written down can't be read.
    """
    condemned = condemned_paths(files, table)  # first: of a journal that is gone, everything was deleted
    forms = comparable_forms(paths)
    gone = {path for path, form in forms.items() if form in condemned} or set(files.missing(list(forms)))
    for path in forms:
        if path in gone:
            raise StalePlan(f"staged file {path} is gone: a purge swept it because the run took too long; run it again")


def require_cleanable(step: CleanStep, log: Log) -> None:
    """Whether the log still is what a clean was planned from, and may still be cleaned like that.

    Raises:
        StalePlan: naming what changed.
    """
    _require_state(step, log)
    _require_live(step, log)
    if step.strategy != log.config.strategy:
        raise _stale(step, f"compaction.strategy was {step.strategy}, now it is {log.config.strategy}")
    if isinstance(step, Compact):
        _require_same_range(step, log)


def require_droppable(step: Drop, log: Log) -> None:
    """Whether the log still is what a drop was planned from, so that nothing of the keys is left behind by it.

    Raises:
        StalePlan: naming what changed.
    """
    _require_state(step, log)
    _require_live(step, log)
    _require_none_came(step, log)


def require_not_held(step: CleanStep, log: Log) -> None:
    """Whether what a clean took away by its horizon waits for nobody who has come since, or starts over.

    ``log`` has the holds of now. Who has read on since, or was removed, disturbs nobody. Who has come is not overrun
    either, whatever his time: the clean does not know what he would miss.

    Raises:
        StalePlan: naming the readers.
    """
    for segment in step.segments:
        if not has_due_tombstone(step, segment):
            continue
        known = {hold.reader for hold in step.holds.behind(segment)}
        behind = {hold.reader for hold in log.holds.behind(segment)}
        due_ms = log.holds.due_horizon_ms(segment, step.now_ms)
        if behind - known or due_ms < due_horizon_ms(step, segment):
            names = ", ".join(sorted(behind))
            raise _stale(step, f"tombstones of segment {segment.path} wait for readers now: {names}")


def require_old(step: Retain, log: Log) -> None:
    """Whether retention, asked again of the log and the settings as they are now, still takes the step's segments.

    Raises:
        StalePlan: naming what changed.
    """
    _require_state(step, log)
    old = {segment.path for segment in retention_of(log, step.now_ms).segments}
    for segment in step.segments:
        if segment.path not in old:
            raise _stale(step, f"segment {segment.path} is no longer live, or its settings keep it now")
    # A truncation takes back what lies behind the last record too, and other records may have come there since.
    removed = {segment.path for segment in step.segments}
    first_left = next((segment.base_offset for segment in log.segments if segment.path not in removed), None)
    begins_by = log.log_end_offset if first_left is None else max(first_left, log.log_start_offset)
    if step.new_log_start_offset > begins_by:
        raise _stale(step, f"it was to begin at offset {step.new_log_start_offset}, now at {begins_by} at the latest")


def _require_live(step: CleanStep | Drop, log: Log) -> None:
    live_paths = {segment.path for segment in log.segments}
    for segment in step.segments:
        if segment.path not in live_paths:
            raise _stale(step, f"segment {segment.path} is no longer live")


def _require_none_came(step: Compact | Drop, log: Log) -> None:
    planned = {segment.path for segment in step.segments}
    for live in log.segments:
        if live.base_offset < step.end_offset and live.path not in planned:
            raise _stale(step, f"segment {live.path} came into the range that was cleaned")


def _require_same_range(step: Compact, log: Log) -> None:
    _require_none_came(step, log)
    protected_from = sections_of(log, step.now_ms).first_uncleanable_offset
    if protected_from < step.end_offset:
        raise _stale(step, f"its settings were altered and protect what lies behind offset {protected_from}")


def _require_state(step: Step, log: Log) -> None:
    """Whether the log's stored state still is that of the step."""
    if (log.checkpoint, log.log_start_offset) != (step.checkpoint, step.log_start_offset):
        raise _stale(
            step,
            f"its first dirty offset was {step.checkpoint} and its log start offset {step.log_start_offset}, "
            f"now they are {log.checkpoint} and {log.log_start_offset}",
        )
    if log.watermarks_path != step.watermarks_path:
        raise _stale(step, f"its watermarks were {step.watermarks_path}, now they are {log.watermarks_path}")


def _stale(step: Step, what: str) -> StalePlan:
    return StalePlan(f"{step.topic_partition}: the log changed since it was planned: {what}; nothing lost, plan again")
