"""What outages have stopped lately, and when it is asked for again. Runs are the only memory of it, as of all else.

A run that an outage has stopped says so in a tag (``keptlog.dagster.assets.outage``). One that never began can't, and
has tried nothing: the code server was down, or the start took too long. Nor can a clean that has failed around its ops,
which ``failed_run_sensor`` says in such a tag (``untried_runs``). After three of these within an hour a further clean
or ingest of the same is a run that died: what never begins may be no outage, and somebody is to be told.

What either was asked for is asked for again at the next tick, under a new run key; if that run is stopped too, after
half a minute, a minute and so on up to five minutes: an outage of hours is not to leave a failed run every half minute,
and the first run after it is not to wait for long. What happened more than an hour ago is forgotten, and a time that is
still to come says nothing.

Which runs were stopped is told whatever their times are. Dagster starts a run key only once, so the run after one that
was stopped needs a new key in any case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from keptlog.dagster.assets.outage import ToldOutage, told_outage
from keptlog.dagster.orchestration.own_runs import OwnRuns, happened_ms
from keptlog.log.given.past import was_within
from keptlog.log.uncleanable import Backoff

_RUNS = 100
"""So many failed runs are looked back at."""
_REMEMBERED_MS = 3_600_000
MOST_UNBEGUN = 3
"""So many runs over a name that never began within an hour count as stopped, where people are told of further ones."""
_PAUSES = Backoff(first_ms=30_000, longest_ms=300_000)
"""After the second stopped run, the third and so on."""


@dataclass(frozen=True)
class Outages:
    """When runs were stopped, by what they were asked for."""

    by_name: dict[str, dict[str, int]] = field(default_factory=dict)
    """By name and run, or else one that was asked for a log by two names would count twice."""
    now_ms: int = 0

    def runs(self, *names: str) -> list[str]:
        """The runs that were asked for one of these names and were stopped, whatever their clocks said."""
        return sorted(self._of(names))

    def count(self, *names: str) -> int:
        """How many of them were stopped lately."""
        return len(self._lately(names))

    def retry_at_ms(self, *names: str) -> int:
        """When it may be asked for again; 0 for at once."""
        stopped = self._lately(names)
        return max(stopped) + _PAUSES.after(len(stopped) - 1) if len(stopped) > 1 else 0

    def _lately(self, names: Iterable[str]) -> list[int]:
        return [at_ms for at_ms in self._of(names).values() if was_within(_REMEMBERED_MS, at_ms, self.now_ms)]

    def _of(self, names: Iterable[str]) -> dict[str, int]:
        return {run: at_ms for name in names for run, at_ms in self.by_name.get(name, {}).items()}


def outages_of(
    records: Sequence[dg.RunRecord],
    names_of: Callable[[dg.DagsterRun], Iterable[str]],
    most_unbegun: int | None = None,
    untried: Mapping[str, str] | None = None,
) -> dict[str, ToldOutage]:
    """By run, what has stopped those that an outage has stopped; ``records`` have the newest first.

    ``names_of`` says what a run was asked for; ``most_unbegun`` how many that never began count, null for all;
    ``untried`` what has failed around the ops of runs that no tag says this of yet.
    """
    found: dict[str, ToldOutage] = {}
    never_began: dict[str, list[int]] = defaultdict(list)
    for record in reversed(records):
        run = record.dagster_run
        tagged = told_outage(run.tags)
        told = tagged or _tried_nothing(record, untried or {})
        if told is None:
            continue
        names = list(names_of(run))
        before = [[at for at in never_began[name] if was_within(_REMEMBERED_MS, at, told.at_ms)] for name in names]
        is_stopped = most_unbegun is None or all(len(times) < most_unbegun for times in before)
        if is_stopped or tagged:
            found[run.run_id] = told
        if told.is_untried:
            for name in names:
                never_began[name].append(told.at_ms)
    return found


def _tried_nothing(record: dg.RunRecord, untried: Mapping[str, str]) -> ToldOutage | None:
    """That a run has failed before it began, or around its ops."""
    run = record.dagster_run
    at_ms = round(1000 * (record.end_time or record.update_timestamp.timestamp()))
    if record.start_time is None and run.status is dg.DagsterRunStatus.FAILURE:
        return ToldOutage(at_ms, "an outage before it began", is_untried=True)
    return ToldOutage(at_ms, untried[run.run_id], is_untried=True) if run.run_id in untried else None


def recent_outages(
    own: OwnRuns,
    job_name: str,
    names_of: Callable[[dg.DagsterRun], Iterable[str]],
    now_ms: int,
    most_unbegun: int | None = None,
) -> Outages:
    """What the failed runs of a job tell; ``names_of`` and ``most_unbegun`` as for ``outages_of``."""
    records = failed_records(own, job_name)
    return outages_among(records, outages_of(records, names_of, most_unbegun), names_of, now_ms)


def failed_records(own: OwnRuns, job_name: str) -> Sequence[dg.RunRecord]:
    """The runs of a job that are judged together: whether one is stopped is told by how many are so before it."""
    return own.records(dg.DagsterRunStatus.FAILURE, job_name=job_name, limit=_RUNS)


def outages_among(
    records: Sequence[dg.RunRecord],
    stopped: Mapping[str, ToldOutage],
    names_of: Callable[[dg.DagsterRun], Iterable[str]],
    now_ms: int,
) -> Outages:
    """What those of the runs tell that are ``stopped``."""
    by_name: dict[str, dict[str, int]] = defaultdict(dict)
    for record in records:
        run = record.dagster_run
        if told := stopped.get(run.run_id):
            at_ms = happened_ms(record, told.at_ms, now_ms)
            for name in names_of(run):
                by_name[name][run.run_id] = at_ms
    return Outages(dict(by_name), now_ms)
