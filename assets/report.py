"""Tells Dagster what a pass did: numbers, checks, and a run that fails when a clean did not land.

The job and the asset report alike; they differ only in how check results leave them. The run fails last, after all that
landed has been told, and names every log that failed: others of the same run are cleaned all the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg

from keptlog.dagster.assets.attempts import begin_attempts, end_attempts, failed_attempts
from keptlog.dagster.assets.checks import TopicFindings, broken_before, look_at
from keptlog.dagster.assets.erasures import bring_erasures_on, look_at_erasures
from keptlog.dagster.assets.last_results import WHOLE_TOPIC
from keptlog.dagster.assets.long_tags import as_tags
from keptlog.dagster.assets.mount import Run
from keptlog.dagster.assets.numbers import Metadata, materializations
from keptlog.dagster.assets.outage import FAILED_TAG, Context, tag_outage, tell_in_tags
from keptlog.dagster.assets.outlook import outlook_of_logs
from keptlog.errors import (
    CommitStateUnknown,
    KeptlogError,
    LogCorrupt,
    StalePlan,
    StorageUnavailable,
    UnknownTopic,
    first_line,
)
from keptlog.log.broker import CLEANER_DISABLED, BrokerConfig
from keptlog.log.segment import Log
from keptlog.log.told.metrics import metrics_by_log
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.log.words.named import named_lines
from keptlog.passes.holders import GONE_IN_TIME
from keptlog.passes.observer import Overview, observe

if TYPE_CHECKING:
    from keptlog.passes.clean import Pass


def run_id_of(context: Context) -> str:
    """The run id under which a pass commits: Dagster's, so that files and snapshots lead back to the run.

    A step that Dagster tries again makes a new plan, which must not be taken for the old one; hence the number.
    """
    return f"{context.run.run_id}-{context.retry_number}"


def is_of_run(run_id: str | None, dagster_id: str) -> bool:
    """Whether a pass was committed by a step of this run of Dagster's."""
    return run_id is not None and run_id.rpartition("-")[0] == dagster_id


def observe_after(run: Run, cleaned: Pass, names: Sequence[str]) -> tuple[Pass, Overview]:
    """The logs ``names`` as the pass left them; one that can't be read any more counts as failed.

    Where the catalog is away since the commit nothing is known of them, and that is said. What has landed is told all
    the same.
    """
    if not names:
        return cleaned, Overview(cleaned.plan.now_ms)
    try:
        after = observe(run.log_store.store, names, now_ms=cleaned.plan.now_ms)
    except StorageUnavailable as error:
        run.context.log.warning("what was committed is not looked at: %s", first_line(error))
        return cleaned, Overview(cleaned.plan.now_ms, unreadable=dict.fromkeys(names, error))
    return replace(cleaned, failed=cleaned.failed | dict(after.unreadable)), after


def cleaned_names(cleaned: Pass) -> list[str]:
    """The topic-partitions whose clean has landed."""
    return [str(outcome.step.topic_partition) for outcome in cleaned.committed]


def names_to_check(cleaned: Pass) -> list[str]:
    """The topic-partitions that a pass has changed, or has found something wrong with."""
    names = [str(step.topic_partition) for step in cleaned.plan.steps]
    landed = set(cleaned_names(cleaned))
    return [name for name in names if name in landed or (name in cleaned.failed and name not in cleaned.blameless)]


def report_numbers(run: Run, cleaned: Pass, after: Overview) -> None:
    """Log the materializations of a pass; ``after`` are the logs as the pass left them."""
    now_ms = cleaned.plan.now_ms + cleaned.duration_ms
    metrics = metrics_by_log(after.assessments, after.last_passes, after.erasures, now_ms)
    before = _told_before(run, cleaned)
    for materialization in materializations(run.keys, cleaned, after, metrics, told_of_topics(run, after, now_ms)):
        if materialization.partition not in before:
            run.context.log_event(materialization)
    # What was not as it should be was made failed after it was told.
    for topic in sorted({TopicPartition.of_a_log(name).topic for name in before}):
        red = [TopicPartition.of_a_log(name) for name in failed_attempts(run, topic).keys() & before]
        end_attempts(run, dict.fromkeys(red, "cleaned by the run before"), after.assessments)


def _told_before(run: Run, cleaned: Pass) -> set[str]:
    """What has landed, and a run that this one executes again has told to be made: told twice, it would count twice.

    Such a run may also have died after its commit, and have told nothing.
    """
    instance, told = run.context.instance, set[str]()
    run_id = run.context.run.parent_run_id if cleaned.planned_ms is not None else None
    while run_id:
        for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION):
            event = entry.dagster_event
            if event and event.partition:
                told.add(event.partition)
        parent = instance.get_run_by_id(run_id)
        # One before that had a plan of its own.
        run_id = parent.parent_run_id if parent and not cleaned.run_id.startswith(run_id) else None
    return told & set(cleaned_names(cleaned))


def told_of_topics(run: Run, after: Overview, now_ms: int) -> dict[str, Metadata]:
    """What every event of a clean section tells of its whole topic; ``after`` are the logs as the pass left them.

    Of a topic that can't be judged no more is told than which one it is: what has landed is told all the same.
    """
    return {topic: outlook_of_logs(run, topic, logs, now_ms) for topic, logs in after.whole_topics.items()}


def look_after(run: Run, cleaned: Pass, after: Overview) -> list[TopicFindings]:
    """Read the logs ``after`` back and check them: of each topic that the pass touched, what it has learnt of it."""
    store = run.log_store.store
    try:
        topics = list(store.topics())
    except StorageUnavailable:
        topics = sorted({step.topic_partition.topic for step in cleaned.plan.steps})
    logs: dict[str, list[Log]] = defaultdict(list)
    for log in after.logs:
        logs[log.topic_partition.topic].append(log)
    failed: dict[str, dict[int, str]] = defaultdict(dict)
    unlooked: dict[str, set[int]] = defaultdict(set)
    cleanable = {str(step.topic_partition) for step in cleaned.plan.steps}
    landed = set(cleaned_names(cleaned))
    for name, error in cleaned.failed.items():
        # What is no topic has no asset whose checks could tell it.
        if name not in cleaned.blameless and not isinstance(error, StalePlan | CommitStateUnknown | UnknownTopic):
            topic, partition = failed_topic_and_partition(name, topics, () if name in cleanable else logs)
            failed[topic][partition] = str(error)
            # No clean of it was tried, or it landed: it can't be read now, and what is not corrupt may be whole.
            if (name in landed or name not in cleanable) and not isinstance(error, LogCorrupt):
                unlooked[topic].add(partition)
    findings = []
    for topic in sorted({*logs, *failed}):
        looked = TopicFindings(
            topic,
            cleaned.plan.now_ms,
            reasons=failed[topic],
            unlooked=frozenset(unlooked[topic]),
            reasons_ms=run.now_ms(),
        )
        topic_id = next((log.topic_id for log in logs[topic]), None)
        before = broken_before(run, topic, topic_id, or_unseen=True) if logs[topic] else set()
        # The clean has just written the values, so most logs are not read in full. What was wrong is: it is
        # whole only if who reads every byte finds it so.
        again = [log for log in logs[topic] if log.topic_partition.partition in before]
        looked = look_at(run, looked, [log for log in logs[topic] if log not in again], every_byte=False)
        findings.append(look_at(run, looked, again, every_byte=True) if again else looked)
    return findings


def wrong_among(findings: Iterable[TopicFindings]) -> dict[str, str]:
    """Topic-partition to why its log is not looked at and as it should be; a topic that failed as a whole has none.

    What the storage holds for too long is left to whoever purges: a clean can't do anything about it.
    """
    return {
        f"{each.topic}-{number}": why
        for each in findings
        for number, why in each.without(GONE_IN_TIME).wrong.items()
        if number != WHOLE_TOPIC
    }


def why_uncleaned(cleaned: Pass, after: Overview) -> dict[str, str]:
    """The logs that would be cleaned if the cleaner were on; they were not looked at by it."""
    from keptlog.passes.clean import clean_plan  # noqa: PLC0415  # a run needs it, loading does not

    off = {name for name, why in cleaned.plan.left_alone.items() if why == CLEANER_DISABLED}
    logs = [log for log in after.logs if str(log.topic_partition) in off]
    steps = clean_plan(logs, BrokerConfig(), cleaned.plan.now_ms, requested=True).steps
    return {str(step.topic_partition): CLEANER_DISABLED for step in steps}


def not_looked_at(cleaned: Pass, after: Overview) -> dict[str, str]:
    """The names of which nothing is known since the commit, because the catalog is away; those that failed are told."""
    return {
        name: f"not looked at since the commit: {first_line(error)}"
        for name, error in after.unreadable.items()
        if name not in cleaned.failed
    }


def erasures_after(run: Run, after: Overview, now_ms: int) -> None:
    """See how far the erasures are of topics that a clean has changed."""
    topics = list(after.open_erasures)
    if topics:
        bring_erasures_on(run, lambda: look_at_erasures(run.log_store, now_ms, topics))


def fail_if_any_failed(run: Run, cleaned: Pass, names: Collection[str], wrong: Mapping[str, str]) -> None:
    """End the run as failed if a log was not cleaned, so that it is seen and tried again.

    ``names`` are the topic-partitions that Dagster expects to be cleaned; ``wrong`` those that are not as they should
    be although nothing of the pass has failed.

    Raises:
        Failure: naming each log and its reason.
    """
    reasons = {name: str(error) for name, error in sorted(cleaned.failed.items())}
    others = {name: why for name, why in sorted(wrong.items()) if name not in reasons}
    if not reasons and not others:
        return
    context = run.context
    _end_attempts(run, cleaned, [name for name in names if name not in others])
    # What has landed of them was told as made, and is not to look whole.
    landed = {*cleaned_names(cleaned)} & others.keys()
    steps = [step for step in cleaned.plan.steps if str(step.topic_partition) in landed]
    begin_attempts(run, {step.topic_partition: step.topic_id for step in steps})
    # A run without this tag would be taken for one that has died. What has landed was not stopped by anything.
    tell_in_tags(context.instance, context.run.run_id, as_tags(FAILED_TAG, ",".join(reasons or others)))
    told = []
    if reasons:
        told.append(f"{len(reasons)} not cleaned, {len(cleaned.committed)} cleaned: {'; '.join(named_lines(reasons))}")
    if others:
        told.append(f"{counted(len(others), 'log')} not as it should be: {'; '.join(named_lines(others))}")
    if cleaned.stopped_by:
        tag_outage(context, cleaned.stopped_by, run.now_ms())
    raise dg.Failure("; ".join(told), metadata={**reasons, **others}, allow_retries=False)


def _end_attempts(run: Run, cleaned: Pass, names: Collection[str]) -> None:
    """Of the logs that the run was about to clean, and that had nothing to be cleaned."""
    landed = set(cleaned_names(cleaned))
    reasons = {name: cleaned.plan.left_alone.get(name, "nothing had to be changed") for name in names}
    whole = {name: why for name, why in reasons.items() if name not in landed and name not in cleaned.failed}
    _, there = observe_after(run, cleaned, sorted(whole))
    end_attempts(run, {TopicPartition.of_a_log(name): why for name, why in whole.items()}, there.assessments)


def failed_topic_and_partition(name: str, topics: Collection[str], readable: Collection[str]) -> tuple[str, int]:
    """Topic and partition of something that failed; ``WHOLE_TOPIC`` where the name is a topic's.

    A topic may be called ``events-0`` beside another one that is called ``events``. If that is among the ``readable``
    ones, it is not what could not be read.
    """
    topic, _, partition = name.rpartition("-")
    is_log = topic in topics and partition.isdecimal() and not (name in topics and topic in readable)
    return (topic, int(partition)) if is_log else (name, WHOLE_TOPIC)


def fail_if_any(failed: Mapping[str, KeptlogError], what: str) -> None:
    """End the run as failed, after all that was done has been told.

    Raises:
        Failure: naming each log or topic and its reason.
    """
    if failed:
        raise dg.Failure(f"{len(failed)} {what}: {'; '.join(named_lines(failed))}", allow_retries=False)
