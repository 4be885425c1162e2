"""The checks of a clean section: the guarantees, on the stored log, and whether its last clean landed.

Specs and results both come from ``passes.check.CHECKS`` and ``passes.holders``. A run looks at some topic-partitions;
an evaluation tells of all of them what was found last (``last_results``), and fails while one of them is broken. A
check of which a run has learnt nothing is not evaluated: what was not looked at is neither broken nor fine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from keptlog.dagster.assets.last_results import (
    TABLE,
    TOPIC_ID,
    WHOLE_TOPIC,
    LastResult,
    LastResults,
    as_table,
    last_evaluations,
    last_results,
    merged,
    results_of,
    told_topic_id,
    with_few_times,
)
from keptlog.dagster.assets.markdown import as_markdown, without_folders
from keptlog.dagster.assets.mount import Run, Tick
from keptlog.dagster.assets.numbers import Metadata
from keptlog.errors import KeptlogError
from keptlog.log.segment import Log
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.named import named
from keptlog.notify.checks import broken_checks, leave_checks
from keptlog.passes.check import CHECKS, Check, CheckResult, Outcome, what_broke
from keptlog.passes.holders import GONE_IN_TIME, check_gone
from keptlog.passes.verify import verify_log

if TYPE_CHECKING:
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore

_CLEANED = Check("cleaned", "", "The last clean of every topic-partition landed; if not, the reason stands here.")
_OF_LOGS = (*CHECKS, GONE_IN_TIME)
_PROBLEMS_TOLD = 5


@dataclass(frozen=True)
class TopicFindings:
    """What a run has learnt of one topic's logs."""

    topic: str
    now_ms: int
    found: Mapping[int, Sequence[CheckResult]] = field(default_factory=dict)
    """Partition to the results of the checks, of the logs that were read back."""
    reasons: Mapping[int, str | None] = field(default_factory=dict)
    """Partition to the reason why its last clean did not land, null if it did; ``WHOLE_TOPIC`` for all its logs."""
    unlooked: frozenset[int] = frozenset()
    """The partitions whose reason is that nobody could look: whether their last clean landed is not known."""
    in_full: frozenset[int] = frozenset()
    """The partitions of which every byte was read that the checks look at: what passes there is whole."""
    looked_ms: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """By partition and check, when it was looked at. A run may last for hours, and others look meanwhile."""
    reasons_ms: int | None = None
    """When the reasons were known, if not at ``now_ms``."""

    @property
    def broken(self) -> dict[int, str]:
        """Partition to what is broken in its log."""
        found = {number: list(filter(None, what_broke(results).values())) for number, results in self.found.items()}
        return {number: _each_once(problems) for number, problems in found.items() if problems}

    @property
    def unseen(self) -> dict[int, str]:
        """Partition to what could not be looked at in its log, of which nothing that was seen is broken."""
        found: dict[int, str] = {}
        for number, results in self.found.items():
            missing = [each.description for each in results if each.outcome is Outcome.NOT_LOOKED_AT]
            if missing and number not in self.broken:
                found[number] = _each_once(missing)
        return found

    @property
    def wrong(self) -> dict[int, str]:
        """Partition to why its log is not looked at and as it should be: whoever is told of one shows it as failed."""
        failed = {number: reason for number, reason in self.reasons.items() if reason}
        unseen = {number: f"not looked at: {why}" for number, why in self.unseen.items()}
        return failed | unseen | self.broken

    @property
    def whole(self) -> set[int]:
        """The logs that were looked at, and are as they should be."""
        return self.found.keys() - self.wrong.keys()

    def without(self, check: Check) -> TopicFindings:
        """The same without the results of one check."""
        found = {number: [each for each in of_log if each.name != check.name] for number, of_log in self.found.items()}
        return replace(self, found=found)


def _each_once(reasons: Iterable[str]) -> str:
    """What one log's checks say: of a file that could not be read they mostly say the same."""
    return "; ".join(dict.fromkeys(reasons))


@dataclass(frozen=True)
class _Seen:
    """What one check found: by partition, for those that a run looked at."""

    results: LastResults
    rows: Sequence[dg.TableRecord] = ()


def check_specs(key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """What a clean section is checked for; ``key`` is its own."""
    return [
        dg.AssetCheckSpec(_name(check), asset=key, description=check.description) for check in (*_OF_LOGS, _CLEANED)
    ]


def broken_before(call: Run | Tick, topic: str, topic_id: str | None, *, or_unseen: bool = False) -> set[int]:
    """The partitions of a topic whose logs were last found broken: a quick look can't find them whole.

    Nor can it where a log could not be looked at before (``or_unseen``): that may have been the values.

    Dagster may know nothing of it: whoever verifies in a terminal tells the home alone, and what Dagster was told may
    be lost, or wiped.
    """
    keys = [dg.AssetCheckKey(call.keys.clean(topic), _name(check)) for check in CHECKS if not check.warns_only]
    known = [last_results(call.context.instance, key, topic_id, call.now_ms()) for key in keys]
    told = {
        number
        for results in known
        for number, each in results.items()
        if each.is_broken or (or_unseen and each.problem)
    }
    return told | _left_broken(call.log_store.path, topic)


def _left_broken(home: Path, topic: str) -> set[int]:
    """The partitions of a topic of which the home remembers that a guarantee is broken."""
    try:
        left = broken_checks(home)
    except KeptlogError:
        # Nobody knows then; status says so, and notify.
        return set()
    guarantees = {check.name for check in CHECKS if not check.warns_only}
    names = [name.rpartition("-") for name, found in left.items() if guarantees & found.keys()]
    return {int(number) for of_topic, _, number in names if of_topic == topic and number.isdecimal()}


def look_at(run: Run, looked: TopicFindings, logs: Sequence[Log], *, every_byte: bool) -> TopicFindings:
    """What is known once logs of the topic are read back, as they are now; what was known of them before stays.

    With every byte of a log goes a look at the whole storage of the topic; a clean has no time for either.
    """
    store = run.log_store.store
    found: dict[int, list[CheckResult]] = {}
    looked_ms, told = dict(looked.looked_ms), set[str]()
    for log in logs:
        number, began_ms = log.topic_partition.partition, run.now_ms()
        found[number] = list(verify_log(store, log, looked.now_ms, every_byte=every_byte))
        _leave(run, looked.topic, {number: found[number]}, told, in_full=every_byte)
        looked_ms |= _times({number: found[number]}, began_ms, run.now_ms())
    if every_byte:
        began_ms = run.now_ms()
        gone = {each: [result] for each, result in check_gone(store, looked.topic, list(found), looked.now_ms).items()}
        _leave(run, looked.topic, gone, told, in_full=True)
        found = {number: [*results, *gone[number]] for number, results in found.items()}
        looked_ms |= _times(gone, began_ms, run.now_ms())
    # A log says itself whether its last clean failed.
    marks = {log.topic_partition.partition: log.uncleanable for log in logs}
    reasons = {number: mark.reason if mark else None for number, mark in marks.items()}
    in_full = looked.in_full | found.keys() if every_byte else looked.in_full
    return replace(
        looked,
        found={**looked.found, **found},
        reasons={**reasons, **looked.reasons},
        in_full=in_full,
        looked_ms=looked_ms,
    )


def _times(found: Mapping[int, Sequence[CheckResult]], began_ms: int, ended_ms: int) -> dict[tuple[int, str], int]:
    """When logs were looked at: what is not whole was found before a look ended, what is whole when it began."""
    results = [(number, each) for number, of_log in found.items() for each in of_log]
    return {(number, each.name): began_ms if each.passed else ended_ms for number, each in results}


def check_results(run: Run, looked: TopicFindings) -> Iterator[dg.AssetCheckResult]:
    """A result for each check that something was learnt for."""
    topic = _described(run.log_store.store, looked.topic)
    for check in _OF_LOGS:
        found = [(number, each) for number, results in looked.found.items() for each in results]
        of_check = {number: each for number, each in found if each.name == check.name}
        yield from _result(run, looked.topic, topic, check, _seen(looked, of_check))
    cleaned = {
        number: LastResult(looked.reasons_ms or looked.now_ms, reason, is_looked_at=number not in looked.unlooked)
        for number, reason in looked.reasons.items()
    }
    yield from _result(run, looked.topic, topic, _CLEANED, _Seen(cleaned))


def _leave(run: Run, topic: str, found: Mapping[int, Sequence[CheckResult]], told: set[str], *, in_full: bool) -> None:
    """Leave in the home what is broken, for ``keptlog notify`` too, and what is whole of logs that were read in full.

    Right after each look: a run may last for hours, and what others find meanwhile is newer. ``told`` has why results
    could not be left.
    """
    # Who has not read every byte may find a log whole in which a value has rotted.
    left = {
        f"{topic}-{number}": {check: why for check, why in what_broke(results).items() if why or in_full}
        for number, results in found.items()
    }
    leave_checks(run.log_store.path, left, told)


def gone_results(run: Run, topic: str, now_ms: int) -> Iterator[dg.AssetCheckResult]:
    """G8 of all logs of a topic, after something was deleted from its storage, or should have been."""
    store = run.log_store.store
    described = _described(store, topic)
    if described:
        began_ms = run.now_ms()
        gone = check_gone(store, topic, list(range(described.partitions)), now_ms)
        found = {number: [result] for number, result in gone.items()}
        _leave(run, topic, found, set(), in_full=True)
        looked_ms = _times(found, began_ms, run.now_ms())
        yield from check_results(
            run, TopicFindings(topic, now_ms, found, in_full=frozenset(found), looked_ms=looked_ms)
        )


def as_evaluation(result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """The same as an event that an op of any job may log."""
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(result.asset_key.path if result.asset_key else []),
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )


def bring_forward(run: Run, result: dg.AssetCheckResult) -> None:
    """Tell a result once more, without a run, if Dagster would not show it, and would forget it.

    Dagster makes a row for each check when a run is made, writes the run's result into that row, and shows the newest
    row. A newer one is of somebody who evaluated while this run waited, or of a run that was made to do the same, which
    may be ended or taken over: then it evaluates nothing, and the check would be shown as skipped.
    """
    evaluation, instance = as_evaluation(result), run.context.instance
    newest = instance.event_log_storage.get_asset_check_execution_history(evaluation.asset_check_key, limit=1)
    if newest and newest[0].run_id != run.context.run.run_id:
        instance.report_runless_asset_event(evaluation)


def bring_back(instance: dg.DagsterInstance, key: dg.AssetKey, topic_id: str | None) -> None:
    """Tell anew what the checks of a clean section found last, where Dagster shows them as skipped.

    What was found of an earlier topic of the name is not told of this one.
    """
    for check in _skipped(instance, key):
        for evaluation, _ in last_evaluations(instance, check)[:1]:
            if topic_id and told_topic_id([(evaluation, 0)]) not in (None, topic_id):
                continue
            # Without a materialization: the page shows none of an earlier one.
            instance.report_runless_asset_event(
                dg.AssetCheckEvaluation(
                    asset_key=evaluation.asset_key,
                    check_name=evaluation.check_name,
                    passed=evaluation.passed,
                    metadata=evaluation.metadata,
                    severity=evaluation.severity,
                    description=evaluation.description,
                )
            )


def _skipped(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[dg.AssetCheckKey]:
    """The checks of a clean section that a run was to evaluate which is over, and has not failed.

    Dagster keeps the rows that were planned of a run that is deleted. One that has failed it shows as failed.
    """
    keys = [spec.key for spec in check_specs(key)]
    newest = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    planned = {
        check: row.run_id for check, row in newest.items() if row.status is AssetCheckExecutionRecordStatus.PLANNED
    }
    if not planned:
        return []
    runs = instance.get_runs(dg.RunsFilter(run_ids=[*{*planned.values()}]))
    shown = {run.run_id for run in runs if not run.is_finished or run.is_failure}
    return [check for check, run_id in planned.items() if run_id not in shown]


def _name(check: Check) -> str:
    return f"{check.name}_{check.title}" if check.title else check.name


def _described(store: LogStore, topic: str) -> Topic | None:
    try:
        return store.describe_topic(topic)
    except KeptlogError:
        return None


def _seen(looked: TopicFindings, found: Mapping[int, CheckResult]) -> _Seen:
    results = {
        number: LastResult(
            looked.looked_ms.get((number, each.name), looked.now_ms),
            None if each.passed else each.description,
            each.is_looked_at,
            is_in_full=not each.passed or each.warns_only or number in looked.in_full,
        )
        for number, each in found.items()
    }
    rows = [
        dg.TableRecord(
            {
                "topic_partition": f"{looked.topic}-{number}",
                "result": str(each.outcome),
                **each.metadata,
            }
        )
        for number, each in sorted(found.items())
    ]
    return _Seen(results, rows)


def _result(run: Run, name: str, topic: Topic | None, check: Check, seen: _Seen) -> Iterator[dg.AssetCheckResult]:
    if not seen.results:
        return
    key = dg.AssetCheckKey(run.keys.clean(name), _name(check))
    evaluations = last_evaluations(run.context.instance, key)
    topic_id = topic.id if topic else told_topic_id(evaluations)
    before = results_of(evaluations, topic_id, run.now_ms())
    now = merged(before, with_few_times(before, seen.results), topic.partitions if topic else None)
    wrong = {number: each for number, each in now.items() if each.problem is not None}
    broken = sum(each.is_broken for each in wrong.values())
    checked = sum(each.is_looked_at for each in seen.results.values())
    metadata: Metadata = {"checked": checked, "broken": broken, TABLE: as_table(now)}
    if topic_id:
        metadata[TOPIC_ID] = topic_id
    if topic:
        metadata["never_looked_at"] = _never_looked_at(topic, now)
    if seen.rows:
        metadata["topic_partitions"] = dg.MetadataValue.table(list(seen.rows))
    yield dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=not wrong,
        severity=dg.AssetCheckSeverity.ERROR if broken and not check.warns_only else dg.AssetCheckSeverity.WARN,
        description=as_markdown(without_folders(_problems(name, wrong, seen)) or _what_is_missing(topic, now)) or None,
        metadata=metadata,
    )


def _never_looked_at(topic: Topic, results: LastResults) -> int:
    return topic.partitions - len(results.keys() - {WHOLE_TOPIC})


def _what_is_missing(topic: Topic | None, results: LastResults) -> str:
    never = _never_looked_at(topic, results) if topic else 0
    if not (topic and never):
        return ""
    return f"never looked at: {never} of {counted(topic.partitions, 'topic-partition')}"


def _problems(topic: str, wrong: LastResults, seen: _Seen) -> str:
    """What is broken, then what can't be looked at: first what this run has found, then what is known from before."""
    is_new = {number: seen.results.get(number) == each for number, each in wrong.items()}
    numbers = sorted(wrong, key=lambda number: (not wrong[number].is_broken, not is_new[number], number))
    lines = []
    for number in numbers[:_PROBLEMS_TOLD]:
        name = topic if number == WHOLE_TOPIC else f"{topic}-{number}"
        when = "" if is_new[number] else f" (found at {iso_time(wrong[number].at_ms)}, not looked at since)"
        lines.append(f"{named(name, wrong[number].problem)}{when}")
    more = len(wrong) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")
