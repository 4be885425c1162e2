"""What each topic-partition was last found to be by a check: carried from one evaluation of the check to the next.

Dagster shows a check's last evaluation, and a run looks at some topic-partitions of a topic only. So an evaluation
holds the last result of all of them, with its time: of those that a run looked at, and of the others as the evaluations
before told it. A log that was broken stays broken until it is looked at again and passes. One that could not be looked
at is told as that until somebody can: what was found before says nothing of it now. What nobody ever looked at is
counted. Whoever has not read the values finds no log whole that another has found broken.

    12:00 looks at 0 and 1        0 broken 12:00    1 ok 12:00
    12:05 looks at 1 and 2        0 broken 12:00    1 ok 12:05    2 ok 12:05     the check fails, because of 0

The memory is Dagster's event log: the table ``last_results`` in an evaluation's metadata, which people read too. It is
bounded, however many topic-partitions there are: a row for each time at which some were found whole, and one for each
that is broken or could not be looked at, at most ``ROWS`` of each kind. Beyond that the oldest share a row, under the
oldest of their times if they are whole, else under the newest. Two runs may evaluate a check at once, neither knowing
of the other: so several evaluations are read back, and of each topic-partition the newest result counts. Each result
has the time of its own look, or an earlier one if it is whole (``with_few_times``), and a run may tell it hours later:
what was found meanwhile is newer. But what is broken goes before newer results of those who could not look, or did not
read the values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from keptlog.dagster.assets.markdown import without_folders
from keptlog.log.given.past import is_past
from keptlog.log.words.iso_time import iso_time

ROWS = 50
TABLE, TOPIC_ID = "last_results", "topic_id"
"""Names in the metadata."""
WHOLE_TOPIC = -1
"""In a partition's place, where a topic can't be read at all."""
_WHOLE = "all"
_NOT_LOOKED_AT = "not looked at"
_NOT_IN_FULL = "ok, values not read"
_READ_BACK = 5
"""Evaluations; so many runs may make one at once, and nothing is lost."""
_EVALUATED = {AssetCheckExecutionRecordStatus.SUCCEEDED, AssetCheckExecutionRecordStatus.FAILED}
_LONGEST_PROBLEM = 500


_SCHEMA = dg.TableSchema([dg.TableColumn(name) for name in ("partitions", "result", "looked_at", "problem")])


@dataclass(frozen=True, slots=True)
class LastResult:
    """What a check found out about one topic-partition, and when."""

    at_ms: int
    problem: str | None
    """Null if nothing is wrong."""
    is_looked_at: bool = True
    """If not, the problem is why it could not be."""
    is_in_full: bool = True
    """If not, nothing is wrong in what was read, and the values were not."""

    @property
    def is_broken(self) -> bool:
        """Whether something is known to be wrong."""
        return self.problem is not None and self.is_looked_at

    @property
    def is_sure(self) -> bool:
        """Whether nothing that was not looked at could make it another."""
        return self.is_broken or (self.is_looked_at and self.is_in_full)

    def counts_after(self, before: LastResult | None) -> bool:
        """Whether this is what is known, and no longer what was found before: only who is sure finds a log whole."""
        return before is None or self.is_sure or not before.is_broken


LastResults = Mapping[int, LastResult]
"""By partition."""


Evaluations = Sequence[tuple[dg.AssetCheckEvaluation, int]]
"""Of one check, the newest first, and when each was made."""


def last_results(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey, topic_id: str | None, now_ms: int
) -> dict[int, LastResult]:
    """What the last evaluations of a check tell (``results_of``)."""
    return results_of(last_evaluations(instance, check), topic_id, now_ms)


def results_of(evaluations: Evaluations, topic_id: str | None, now_ms: int) -> dict[int, LastResult]:
    """What evaluations tell; nothing of those of an earlier topic of the same name.

    A time that is still to come was given by a clock that was ahead. It counts as the time of the evaluation, or no
    later look would be newer. Where that is to come too, the same clock gave it: what was found whole then is older
    than all else.
    """
    found: dict[int, list[LastResult]] = defaultdict(list)
    for evaluation, made_ms in evaluations:
        told_id, table = evaluation.metadata.get(TOPIC_ID), evaluation.metadata.get(TABLE)
        if isinstance(table, dg.TableMetadataValue) and (topic_id is None or not told_id or told_id.value == topic_id):
            for partition, told in _understood(table.records).items():
                found[partition].append(_in_time(told, made_ms, now_ms))
    # A topic of which a log was looked at could be read again: an older evaluation tells no more that it can't.
    read_ms = _read_ms((number, each) for number, results in found.items() for each in results)
    found[WHOLE_TOPIC] = [each for each in found[WHOLE_TOPIC] if each.at_ms >= read_ms]
    return {partition: _that_counts(results) for partition, results in found.items() if results}


def _in_time(told: LastResult, made_ms: int, now_ms: int) -> LastResult:
    """A result with a time that is past, if there is one that does no harm."""
    if is_past(told.at_ms, now_ms):
        return told
    return replace(told, at_ms=made_ms if told.is_broken or is_past(made_ms, now_ms) else 0)


def told_topic_id(evaluations: Evaluations) -> str | None:
    """The id of the topic that evaluations are of, for one that can't say it itself; null if none does.

    What is told without one counts for every topic of the name, also for one that is made anew.
    """
    told = (evaluation.metadata.get(TOPIC_ID) for evaluation, _ in evaluations)
    return next((str(each.value) for each in told if each), None)


def last_evaluations(instance: dg.DagsterInstance, check: dg.AssetCheckKey, most: int = _READ_BACK) -> Evaluations:
    """Those of a check that count."""
    # One that is only planned tells nothing, and there may be any number: of the run that asks, of those that wait.
    records = instance.event_log_storage.get_asset_check_execution_history(check, limit=most, status=_EVALUATED)
    return [
        (record.event.dagster_event.asset_check_evaluation_data, round(record.create_timestamp * 1000))
        for record in records
        if record.event and record.event.dagster_event
    ]


def _read_ms(results: Iterable[tuple[int, LastResult]]) -> int:
    """When a log of the topic was last looked at; 0 for never."""
    return max((each.at_ms for number, each in results if number != WHOLE_TOPIC and each.is_looked_at), default=0)


def _that_counts(results: Sequence[LastResult]) -> LastResult:
    """Of what evaluations tell of one topic-partition, the last evaluation first."""
    newest = max(results, key=lambda each: each.at_ms)
    sure = max((each for each in results if each.is_sure), key=lambda each: each.at_ms, default=None)
    return newest if sure is None or newest.counts_after(sure) else sure


def _understood(records: Iterable[dg.TableRecord]) -> dict[int, LastResult]:
    """What a table tells; nothing if it is of another keptlog: that must not keep a check from ever being made."""
    try:
        return dict(_from_rows(records))
    except (ValueError, LookupError):
        return {}


def merged(before: LastResults, now: LastResults, partitions: int | None) -> dict[int, LastResult]:
    """The last results once these are known too; ``partitions`` is how many the topic has, null if it can't be read.

    These may be older than what others have told while the run went on.
    """
    told = {number: [each[number] for each in (now, before) if number in each] for number in before.keys() | now.keys()}
    found = {number: _that_counts(results) for number, results in told.items()}
    if WHOLE_TOPIC in found:
        # At the same time, this is what was known first.
        is_first = WHOLE_TOPIC not in now and found[WHOLE_TOPIC].at_ms == _read_ms(now.items())
        if is_first or found[WHOLE_TOPIC].at_ms < _read_ms(found.items()):
            del found[WHOLE_TOPIC]
    return {number: each for number, each in found.items() if partitions is None or number < partitions}


def with_few_times(before: LastResults, now: LastResults) -> dict[int, LastResult]:
    """The same, where logs that were found whole share an earlier time: it has a row, and there are few (``ROWS``).

    No log gets one at which something was known to be wrong with it: that would outweigh it again.
    """
    shared, shared_ms = dict(now), -1
    whole = [number for number, each in now.items() if each.problem is None]
    for number in sorted(whole, key=lambda number: now[number].at_ms):
        known = before.get(number)
        if shared_ms < 0 or (known and known.problem is not None and known.at_ms >= shared_ms):
            shared_ms = now[number].at_ms
        shared[number] = replace(now[number], at_ms=shared_ms)
    return shared


def as_table(results: LastResults) -> dg.TableMetadataValue:
    """The last results as rows: what is broken one by one, then what is whole by its time, newest first."""
    newest_first = sorted(results.items(), key=lambda each: (-each[1].at_ms, each[0]))
    rows = []
    for is_looked_at, others in ((True, "broken as well"), (False, "not looked at as well")):
        found = [each for each in newest_first if each[1].problem is not None and each[1].is_looked_at is is_looked_at]
        rows += [_row([number], each) for number, each in found[:ROWS]]
        if len(found) > ROWS:
            # The newest: an older result that was fine is not to count again.
            result = LastResult(found[ROWS][1].at_ms, f"{others}: see keptlog verify", is_looked_at)
            rows.append(_row([number for number, _ in found[ROWS:]], result))
    whole: dict[LastResult, list[int]] = defaultdict(list)
    for number, each in newest_first:
        if each.problem is None:
            whole[each].append(number)
    kinds = list(whole)
    rows += [_row(whole[each], each) for each in kinds[:ROWS]]
    if len(kinds) > ROWS:
        numbers = [number for each in kinds[ROWS:] for number in whole[each]]
        in_full = all(each.is_in_full for each in kinds[ROWS:])
        rows.append(_row(numbers, LastResult(kinds[-1].at_ms, None, is_in_full=in_full)))
    return dg.MetadataValue.table(rows, _SCHEMA)


def _row(numbers: Iterable[int], found: LastResult) -> dg.TableRecord:
    whole = "ok" if found.is_in_full else _NOT_IN_FULL
    wrong = "broken" if found.is_looked_at else _NOT_LOOKED_AT
    return dg.TableRecord(
        {
            "partitions": _as_text(numbers),
            "result": whole if found.problem is None else wrong,
            "looked_at": iso_time(found.at_ms),
            # A path would push what stands at the right of the page, its buttons too, out of the window.
            "problem": "" if found.problem is None else without_folders(found.problem)[:_LONGEST_PROBLEM],
        }
    )


def _from_rows(records: Iterable[dg.TableRecord]) -> Iterator[tuple[int, LastResult]]:
    for record in records:
        row = {name: str(value) for name, value in record.data.items()}
        at_ms = round(datetime.fromisoformat(row["looked_at"]).timestamp() * 1000)
        is_looked_at = row["result"] != _NOT_LOOKED_AT
        problem = row["problem"] if row["result"] == "broken" or not is_looked_at else None
        for number in _as_numbers(row["partitions"]):
            yield number, LastResult(at_ms, problem, is_looked_at, row["result"] != _NOT_IN_FULL)


def _as_text(numbers: Iterable[int]) -> str:
    """In ranges: ``0-2, 5``."""
    ordered = sorted(numbers)
    if ordered == [WHOLE_TOPIC]:
        return _WHOLE
    ends = [(a, b) for a, b in pairwise(ordered) if b != a + 1]
    firsts, lasts = [ordered[0], *(b for _, b in ends)], [*(a for a, _ in ends), ordered[-1]]
    return ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in zip(firsts, lasts, strict=True))


def _as_numbers(text: str) -> Iterator[int]:
    if text == _WHOLE:
        yield WHOLE_TOPIC
        return
    for piece in text.split(", "):
        first, _, last = piece.partition("-")
        yield from range(int(first), int(last or first) + 1)
