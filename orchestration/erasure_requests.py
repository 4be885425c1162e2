"""The runs that the sensor of erasures asks for: one over logs to clean, one over topics to purge, one to verify.

They go before all others in Dagster's queue, so what another run only waits there to do is asked for all the same. What
a run is working on is left alone, and so is what was asked for a few minutes ago: then something else is in the way,
and the erasure says what. The shorter pauses after an outage are for
what was stopped when it was asked for last (``outages``). Runs are the only memory of it; their tags say when they were
asked for.

A verification reads all of a topic. One that keeps finding what only a person can take away is asked for with pauses
that grow up to a day, unless one of its erasures has a deadline ahead, or another has come to wait for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

import dagster as dg

from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.orchestration.erasure_needs import TopicNeed
from keptlog.dagster.orchestration.in_flight import (
    UNDER_WAY,
    InFlight,
    configured_logs,
    configured_topics,
    has_looked_at,
    logs_in_flight,
    slow_cleans,
    slow_runs,
    stopped_logs,
    topics_in_flight,
)
from keptlog.dagster.orchestration.outages import MOST_UNBEGUN, Outages, recent_outages
from keptlog.dagster.orchestration.own_runs import PURGE_JOB_NAME, VERIFY_ERASURES_JOB_NAME, OwnRuns
from keptlog.dagster.orchestration.requests import LOGS_PER_RUN, LOGS_TAG, NAMES_IN_TAG, TRIGGER_TAG, left_of, run_key
from keptlog.log.erasures.erasure_schedule import VERIFIED_WITHIN_MS
from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.log.given.past import is_past
from keptlog.log.words.counted import some_of
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.observer import Overview

TRIGGER = "erasure"
ASKED_TAG = "keptlog/asked_at_ms"
PRIORITY = "10"
"""In Dagster's queue, where all other runs have 0."""
_RUNS = 200
"""So many runs are looked back at."""
AGAIN_MS = {CLEAN_JOB: 600_000, PURGE_JOB_NAME: 600_000, VERIFY_ERASURES_JOB_NAME: 3_600_000}
"""After this time the same is asked for again."""
_LONGEST_PAUSE_MS = VERIFIED_WITHIN_MS
"""Of verifications that were all in vain."""
_JOB_OF = {ErasureNeed.PURGE: PURGE_JOB_NAME, ErasureNeed.VERIFICATION: VERIFY_ERASURES_JOB_NAME}
_DOING = {CLEAN_JOB: "cleaned", PURGE_JOB_NAME: "purged", VERIFY_ERASURES_JOB_NAME: "looked through"}


@dataclass(frozen=True)
class ErasureRuns:
    """What is asked for in one tick, and why the rest is not."""

    requests: list[dg.RunRequest] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    names: dict[str, Sequence[str]] = field(default_factory=dict)
    """By job, what the run that is asked for works on."""
    left: list[str] = field(default_factory=list)
    """By job, how many a run does not take."""


@dataclass(frozen=True)
class _Wanted:
    """A log or a topic for one job."""

    name: str
    topic: str
    since_ms: int
    settled_ms: int
    """From when on another try finds the same erasures as the one before, and none of them has a deadline to keep."""


@dataclass(frozen=True)
class _Asked:
    """A run that this sensor has asked for, and when."""

    run_id: str
    at_ms: int
    has_searched: bool
    """Whether it is a verification that is over, and has looked through the topic."""


@dataclass(frozen=True)
class _Job:
    """What is known of a job's runs."""

    name: str
    mount: Mount
    begun: InFlight
    queued: InFlight
    """What runs of this sensor wait in Dagster's queue to do."""
    outages: Outages
    asked: Mapping[str, Sequence[_Asked]]
    """Of the last runs that this sensor asked for, by name, those that were asked for it."""
    slow: Sequence[str] = ()
    """The runs that have been at it for hours, as people are told of them."""

    def ask(self, asked: ErasureRuns, wanted: Sequence[_Wanted], seen: Overview) -> None:
        """Ask for one run over what can be asked for."""
        names: list[str] = []
        states: list[str] = []
        under_way = (self.begun, self.queued)
        if any(runs.includes_name(each.name, each.topic) for each in wanted for runs in under_way):
            asked.reasons.extend(self.slow)
        for each in wanted:
            again_ms = self._again_ms(each, seen.now_ms)
            if self.begun.includes_name(each.name, each.topic):
                asked.reasons.append(f"{each.name} is being {_DOING[self.name]}")
            elif self.queued.includes_name(each.name, each.topic):
                asked.reasons.append(f"{each.name} waits to be {_DOING[self.name]}, its run is queued")
            elif seen.now_ms < again_ms:
                told = f"{each.name} was to be {_DOING[self.name]} already, again at {iso_time(again_ms)}"
                asked.reasons.append(f"{told}{self._how_sooner(each, seen.now_ms)}")
            else:
                names.append(each.name)
                # Whatever a clock says: the run after one that was asked for already has another key.
                runs = [asked.run_id for asked in self.asked.get(each.name, ())]
                states.append(f"{seen.locations[each.topic]}#{runs}")
        if names:
            if left := left_of(len(names), LOGS_PER_RUN, "log" if self.name == CLEAN_JOB else "topic"):
                asked.left.append(left)
            names, states = names[:LOGS_PER_RUN], states[:LOGS_PER_RUN]
            asked.names[self.name] = names
            asked.requests.append(_request(self.mount, self.name, names, states, seen.now_ms))

    def _again_ms(self, wanted: _Wanted, now_ms: int) -> int:
        """When it may be asked for again; 0 for at once."""
        past = self._past(wanted, now_ms)
        last = max(past, key=attrgetter("at_ms"), default=None)
        if last is None or last.run_id in self.outages.runs(wanted.name):
            return self.outages.retry_at_ms(wanted.name, wanted.topic)
        if last.at_ms < wanted.since_ms:
            return 0
        doubled = max(self._in_vain(wanted, now_ms) - 1, 0)
        return last.at_ms + min(AGAIN_MS[self.name] << doubled, _LONGEST_PAUSE_MS)

    def _past(self, wanted: _Wanted, now_ms: int) -> list[_Asked]:
        return [each for each in self.asked.get(wanted.name, ()) if is_past(each.at_ms, now_ms)]

    def _in_vain(self, wanted: _Wanted, now_ms: int) -> int:
        """How often the same erasures were looked for already, and something has kept them open."""
        return sum(each.has_searched and each.at_ms >= wanted.settled_ms for each in self._past(wanted, now_ms))

    def _how_sooner(self, wanted: _Wanted, now_ms: int) -> str:
        count = self._in_vain(wanted, now_ms)
        if count < 2:  # the pause has not grown yet
            return ""
        return f" ({count} times in vain: take away what its erasures name, and launch {self.mount.name(self.name)})"


def requests_for(own: OwnRuns, needs: Sequence[TopicNeed], seen: Overview) -> ErasureRuns:
    """Ask for what is needed now, most urgent first."""
    wanted: dict[str, dict[str, _Wanted]] = defaultdict(dict)
    for need in needs:
        since = need.possible_ms, need.settled_ms
        if need.need in _JOB_OF:
            wanted[_JOB_OF[need.need]].setdefault(need.topic, _Wanted(need.topic, need.topic, *since))
        for each in need.logs:
            name = str(each.log.topic_partition)
            wanted[CLEAN_JOB].setdefault(name, _Wanted(name, need.topic, *since))
    asked_before, records = (_asked_before(own), own.records(*UNDER_WAY)) if wanted else ({}, ())
    asked = ErasureRuns()
    begun, queued = begun_and_first(records)
    for job_name, by_name in wanted.items():
        under_way = (_in_flight(own, job_name, begun), _in_flight(own, job_name, queued))
        slow, outages = _slow(own, job_name, records, seen.locations), _outages(own, job_name, seen.now_ms)
        job = _Job(job_name, own.mount, *under_way, outages, asked_before.get(job_name, {}), slow)
        job.ask(asked, list(by_name.values()), seen)
    return asked


def begun_and_first(records: Sequence[dg.RunRecord]) -> tuple[list[dg.RunRecord], list[dg.RunRecord]]:
    """Of the runs that are under way, those that have begun, and this sensor's that wait in Dagster's queue.

    A run that is asked for now begins before all others that wait there.
    """
    begun = [each for each in records if each.dagster_run.status is not dg.DagsterRunStatus.QUEUED]
    queued = [each for each in records if each.dagster_run.status is dg.DagsterRunStatus.QUEUED]
    return begun, [each for each in queued if each.dagster_run.tags.get(TRIGGER_TAG) == TRIGGER]


def ask_for_look(mount: Mount, topics: Sequence[str], asked: ErasureRuns, seen: Overview) -> None:
    """Ask for a run that looks how far the erasures of large topics are, and verifies those that are deleted.

    A run that is asked for already to verify those of a topic looks how far they are, too.
    """
    left = [topic for topic in topics if topic not in asked.names.get(VERIFY_ERASURES_JOB_NAME, ())]
    if left:
        states = [seen.locations[topic] for topic in left]
        asked.requests.append(_request(mount, VERIFY_ERASURES_JOB_NAME, left, states, seen.now_ms))


@dataclass(frozen=True)
class LookRun:
    """A run that this sensor has asked for to look at a topic's erasures: when, and what became of it."""

    asked_ms: int
    has_looked: bool | None
    """Null while it is under way. One that looked fails too, if an erasure could not be verified."""


def last_looks(own: OwnRuns) -> Mapping[str, LookRun]:
    """By topic, the last run that was to look at it."""
    found: dict[str, LookRun] = {}
    for run in own.runs(job_name=VERIFY_ERASURES_JOB_NAME, tags={TRIGGER_TAG: TRIGGER}, limit=_RUNS):
        for topic in configured_topics(run, VERIFY_ERASURES_JOB_NAME):
            has_looked = None if run.status in UNDER_WAY else has_looked_at(run, topic)
            found.setdefault(topic, LookRun(_asked_ms(run), has_looked))
    return found


def _request(mount: Mount, job_name: str, names: Sequence[str], states: Sequence[str], now_ms: int) -> dg.RunRequest:
    named = {
        CLEAN_JOB: {"plan": {"config": {"logs": list(names), "requested": True}}},
        PURGE_JOB_NAME: {"delete_retired_files": {"config": {"topics": list(names)}}},
        VERIFY_ERASURES_JOB_NAME: {"verify_deleted": {"config": {"topics": list(names)}}},
    }
    return dg.RunRequest(
        job_name=mount.name(job_name),
        run_key=f"{job_name}:{run_key(TRIGGER, names, states, now_ms)}",
        run_config={"ops": named[job_name]},
        tags={
            TRIGGER_TAG: TRIGGER,
            LOGS_TAG: some_of(names, NAMES_IN_TAG),
            ASKED_TAG: str(now_ms),
            "dagster/priority": PRIORITY,
            # The sensor tries again, with pauses; two ways of trying again would multiply.
            "dagster/max_retries": "0",
        },
    )


def _in_flight(own: OwnRuns, job_name: str, records: Sequence[dg.RunRecord]) -> InFlight:
    return logs_in_flight(own, records) if job_name == CLEAN_JOB else topics_in_flight(own, job_name, records)


def _slow(own: OwnRuns, job_name: str, records: Sequence[dg.RunRecord], topics: Iterable[str]) -> Sequence[str]:
    return slow_cleans(own, records, topics) if job_name == CLEAN_JOB else slow_runs(own, records, job_name)


def _outages(own: OwnRuns, job_name: str, now_ms: int) -> Outages:
    return recent_outages(own, job_name, partial(_stopped, job_name=job_name), now_ms, _most_unbegun(job_name))


def _most_unbegun(job_name: str) -> int | None:
    """Logs of cleans that never begin are marked; nothing of other runs is."""
    return MOST_UNBEGUN if job_name == CLEAN_JOB else None


def _named(run: dg.DagsterRun, job_name: str) -> list[str]:
    return configured_logs(run) if job_name == CLEAN_JOB else configured_topics(run, job_name)


def _stopped(run: dg.DagsterRun, job_name: str) -> list[str]:
    return stopped_logs(run) if job_name == CLEAN_JOB else configured_topics(run, job_name)


def _asked_before(own: OwnRuns) -> Mapping[str, Mapping[str, Sequence[_Asked]]]:
    """By job and name, the last runs that this sensor asked for."""
    found: dict[str, dict[str, list[_Asked]]] = defaultdict(lambda: defaultdict(list))
    runs = own.runs(tags={TRIGGER_TAG: TRIGGER}, limit=_RUNS)
    for job_name in AGAIN_MS:
        of_job = [run for run in runs if own.is_of(run, job_name)]
        for run in of_job:
            for name in _named(run, job_name):
                has_searched = job_name == VERIFY_ERASURES_JOB_NAME and has_looked_at(run, name)
                found[job_name][name].append(_Asked(run.run_id, _asked_ms(run), has_searched))
    return found


def _asked_ms(run: dg.DagsterRun) -> int:
    """When a run was asked for; long ago if somebody has typed such a tag by hand."""
    text = run.tags.get(ASKED_TAG, "")
    return int(text) if text.isdecimal() else 0
