"""The job that verifies: reads logs back and checks the guarantees on them, whether they were cleaned lately or not.

A clean checks the logs that it has changed. What breaks in a log that nobody changes, such as a file that rots, is seen
here: all logs every night, or those that are named. One topic after the other is read and told, so that a run that is
ended early has told what it had read.

What is found broken is failed wherever Dagster shows it: the check, the run, and the topic-partition in the Partitions
tab. What passes ends that: it is said to be materialized again, if an attempt that failed was the last that was heard.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import dagster as dg
from pydantic import Field

from keptlog.dagster.assets.attempts import begin_attempts, end_attempts, failed_attempts
from keptlog.dagster.assets.checks import TopicFindings, as_evaluation, check_results, look_at
from keptlog.dagster.assets.mount import Mount, MountCall, Run
from keptlog.dagster.assets.outage import telling_outages
from keptlog.dagster.assets.report import failed_topic_and_partition
from keptlog.dagster.orchestration.own_runs import VERIFY_JOB_NAME
from keptlog.dagster.orchestration.requests import TRIGGER_TAG
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError, LogCorrupt, first_line
from keptlog.log.segment import Log
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted, first_lines
from keptlog.log.words.named import named_lines
from keptlog.passes.holders import GONE_IN_TIME, THIS_MACHINE, judged_here
from keptlog.passes.judging import judged_apart
from keptlog.passes.verify_pass import all_that_is_there, is_gone

_TOLD = 5


class VerifyConfig(dg.Config):
    """Which logs to verify."""

    logs: list[str] = Field(
        default=[], description="Topics and topic-partitions to verify, such as orders or orders-0; all if empty."
    )


def verify_job(mount: Mount) -> dg.JobDefinition:
    """``verify`` of a home."""

    @dg.op(
        name=mount.name("verify_logs"),
        required_resource_keys=mount.needs("log_store", "clock"),
        description="Read logs back, check every guarantee on them, and fail if one is broken or can't be read.",
    )
    def verify_logs(context: dg.OpExecutionContext, config: VerifyConfig) -> None:
        _verify(MountCall(mount, context), config)

    @dg.job(
        name=mount.name(VERIFY_JOB_NAME),
        executor_def=dg.in_process_executor,
        description="Read logs back and check the guarantees on them: those that are named, or all. Needs no Spark.",
    )
    def verify() -> None:
        verify_logs.alias("verify_logs")()

    return verify


def _verify(run: Run, config: VerifyConfig) -> None:
    context, log_store = run.context, run.log_store
    now_ms = run.now_ms()
    with telling_outages(context, now_ms, None):
        store = log_store.store
        asked = all_that_is_there(store, config.logs)
        topics = store.topics()
        if not topics and (unbegun := log_store.why_unbegun()):
            # The schedule is on from the start, and most homes without a catalog are new ones.
            if context.run.tags.get(TRIGGER_TAG) != "schedule":
                log_store.require_begun()
            context.log.warning("nothing was verified: %s", unbegun)
    logs: dict[str, list[Log]] = defaultdict(list)
    for log in asked.logs:
        logs[log.topic_partition.topic].append(log)
    unreadable: dict[str, dict[int, KeptlogError]] = defaultdict(dict)
    for name, error in asked.unreadable.items():
        topic, partition = failed_topic_and_partition(name, topics, logs)
        unreadable[topic][partition] = error
    attempts = {topic: failed_attempts(run, topic) for topic in logs}
    problems: dict[str, str] = {}
    for topic in sorted({*logs, *unreadable}):
        looked = look_at(run, _unread(topic, now_ms, unreadable[topic]), logs[topic], every_byte=True)
        if looked.wrong and logs[topic] and is_gone(store, asked, logs[topic][0]):
            context.log.info("%s was deleted while it was verified", topic)
            continue
        for result in check_results(run, looked):
            context.log_event(as_evaluation(result))  # type: ignore[arg-type]  # it takes them, undeclared
        _tell_attempts(run, looked, attempts.get(topic, {}), logs[topic])
        problems |= {f"{topic}-{number}": problem for number, problem in looked.broken.items()}
        problems |= {f"{topic}-{number}": f"not looked at: {why}" for number, why in looked.unseen.items()}
    count = counted(len(asked.logs), "log")
    context.log.info("%s there, %d of them broken or not looked at", count, len(problems))
    _fail_if_any(
        {
            f"{counted(len(problems), 'log')} broken or not looked at": named_lines(problems),
            # What is no log, or can't be told apart into logs, is not counted among them.
            f"{len(asked.not_looked_at)} not looked at": named_lines(asked.not_looked_at),
            THIS_MACHINE: _wrong_here(log_store, now_ms),
            counted(len(asked.unknown), "unknown name"): named_lines(asked.unknown),
        }
    )


def _unread(topic: str, now_ms: int, why: Mapping[int, KeptlogError]) -> TopicFindings:
    """What is known of what can't be read: what is not corrupt may well be whole, and could not be looked at."""
    reasons = {number: str(error) for number, error in why.items()}
    unlooked = frozenset(number for number, error in why.items() if not isinstance(error, LogCorrupt))
    return TopicFindings(topic, now_ms, reasons=reasons, unlooked=unlooked)


def _wrong_here(log_store: LogStoreResource, now_ms: int) -> list[str]:
    """What is wrong with what lies on this machine; also that nobody knows, because that needs the catalog."""
    try:
        here = judged_here(log_store.holdings_here, now_ms)
    except KeptlogError as error:
        return [f"not looked at: {first_line(error)}"]
    return [here.description] if here and not here.passed else []


def _tell_attempts(run: Run, looked: TopicFindings, before: Mapping[str, str], logs: Sequence[Log]) -> None:
    """Let the Partitions tab show what is broken, and what passes again; not where others have tried since ``before``.

    What the storage holds for too long has a check of its own: no clean of the log would end that.
    """
    looked = looked.without(GONE_IN_TIME)
    broken = {TopicPartition(looked.topic, number) for number in looked.broken}
    topic_ids = {log.topic_partition: log.topic_id for log in logs}
    begin_attempts(run, {name: topic_ids.get(name) for name in sorted(broken, key=str)})
    same = {name for name, run_id in failed_attempts(run, looked.topic).items() if before.get(name) == run_id}
    whole = {TopicPartition(looked.topic, number) for number in looked.whole}
    reasons = {name: "verify finds nothing broken in it" for name in whole if str(name) in same}
    judged, _ = judged_apart([log for log in logs if log.topic_partition in reasons], run.now_ms())
    end_attempts(run, reasons, judged)


def _fail_if_any(lines_of: Mapping[str, Sequence[str]]) -> None:
    """End the run as failed; by what is wrong, a line for each that it is wrong with."""
    told = []
    for what, lines in lines_of.items():
        if lines:
            told.append(f"{what}: {'; '.join(first_lines(lines, _TOLD))}")
    if told:
        raise dg.Failure("; ".join(told), allow_retries=False)
