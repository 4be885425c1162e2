"""One ingest as a Dagster run: what the job and the dirty section's asset have in common.

Both plan, read and commit with the library, and then tell Dagster: a materialization of the dirty
section for each topic-partition that got something, with its numbers, whether the asset graph knows the partition yet
or not. The run fails last, when all else has landed, and names what did not come in, why, and what the choices are.

What failed, and at which position, stands in a tag of the run: the sensor's back-off remembers by that.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg

from keptlog.dagster.assets.long_tags import as_tags
from keptlog.dagster.assets.markdown import as_list
from keptlog.dagster.assets.mount import Run
from keptlog.dagster.assets.names import AssetKeys
from keptlog.dagster.assets.numbers import Metadata
from keptlog.dagster.assets.outage import (
    FAILED_TAG,
    Context,
    outage_among,
    refusing_what_was_asked,
    tag_outage,
    tell_in_tags,
)
from keptlog.dagster.assets.report import run_id_of
from keptlog.errors import KeptlogError, UnknownTopic, first_line
from keptlog.ingest.lag_news import ShownLag
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted, first_lines, some_of

if TYPE_CHECKING:
    from keptlog.ingest.ingest_pass import Ingest
    from keptlog.ingest.lag import LagScan, TopicLag
    from keptlog.ingest.log_lag import LogLag
    from keptlog.ingest.plans import IngestPlans
    from keptlog.ingest.result import IngestResult, Intake
    from keptlog.log.source import SourceIdentity

FAILED_AT_TAG = "keptlog/ingest_failed_at"
"""On a run: JSON with the time, and the position of each topic-partition that did not come in; null for a topic, and
for what was never read. Beside it the id of each topic that did not come in as a whole.
"""
_NAMES_IN_LINE = 3
_REASONS = 5
_FIELDS = {"--skip-lost": "skip_lost", "--reconcile": "reconcile"}
"""By the option of the command that does the same."""
_ITSELF = "\0"
"""Stands for a log in what is said of it."""


def run_ingest(run: Run, ingest: Ingest, plans: IngestPlans, now_ms: int) -> None:
    """Ingest what is planned, whatever its source, and report it.

    Raises:
        Failure: a topic or topic-partition did not come in; all others did.
        InvalidConfig: nobody has said where the source is.
        StorageUnavailable: Spark can't be started, or fails; nothing was committed.
    """
    context = run.context
    for line in plans.notes:
        context.log.info("%s", line)
    result = ingest.carry_out(plans, run_id_of(context), context.log.info)
    for line in result.warnings:
        context.log.warning("%s", warning_in_configuration(line))
    lag = _lag_afterwards(context, ingest, plans, result)
    for intake in result.committed:
        context.log_event(ingest_materialization(run.keys, intake, lag.get(intake.topic_partition)))
    _fail_if_any_failed(run, plans, result, now_ms)
    records = sum(each.records for each in result.committed)
    context.log.info("%s into %s", counted(records, "record"), counted(len(result.committed), "topic-partition"))


@contextmanager
def refusing_an_ingest(context: Context, now_ms: int) -> Iterator[None]:
    """Around what a run's own configuration makes impossible: no topic-partition has failed, and none is to wait.

    Raises:
        Failure: it can't be accepted; with the reason.
    """
    try:
        with refusing_what_was_asked():
            yield
    except dg.Failure:
        # Without this tag all that it has named would count as failed.
        tags = as_tags(FAILED_AT_TAG, json.dumps({"at_ms": now_ms, "positions": {}}))
        tell_in_tags(context.instance, context.run.run_id, tags)
        raise


def without_broker(topic: str) -> UnknownTopic:
    """The error for a topic that had a broker when its ingest was asked for."""
    return UnknownTopic(
        f"topic {topic} is not here any more, or remembers no broker: nothing of it was ingested; "
        "if it is to be ingested from its beginning, name it in topics, and the broker in bootstrap"
    )


def ingest_materialization(keys: AssetKeys, intake: Intake, consumer_lag: int | None) -> dg.AssetMaterialization:
    """What one topic-partition got; ``consumer_lag`` in offsets afterwards, null if nobody could tell."""
    name, read = intake.topic_partition, intake.range
    numbers: Metadata = {
        "records_ingested": intake.records,
        "tombstones_ingested": intake.tombstones,
        "keys_reconciled": intake.reconciled,
        "bytes_written": intake.bytes,
        "files_new": len(intake.segments),
        "from_offset": read.from_offset,
        "log_end_offset": read.end_offset,
    }
    if consumer_lag is not None:
        numbers["consumer_lag"] = consumer_lag
    description = (
        f"{counted(intake.records, 'record')} ingested, of offsets {read.from_offset} to {read.end_offset - 1}"
    )
    return dg.AssetMaterialization(
        keys.dirty(name.topic),
        description=description,
        partition=str(name),
        metadata=numbers,
        tags={"dagster/data_version": str(read.end_offset)},
    )


def source_outlook(topic: TopicLag) -> Metadata:
    """What every observation of a source tells of its whole topic: a page shows the last one, of whichever log it is.

    The lag is of what may be read, as ``keptlog/health`` counts it: where a log is stopped for good, the distance to an
    end that may be another topic's is no lag. Where a log can't be looked at it is not told: it would be of the others.
    """
    told: Metadata = {}
    if topic.stopped:
        lines = by_reason(stopped_in_configuration(topic))
        told["topic_stopped"] = dg.MetadataValue.md(as_list(first_lines(lines, _REASONS)))
    if not topic.failed:
        told["topic_consumer_lag"] = topic.lag
    if waiting := sum(each.waiting for each in topic.logs.values()):
        told["topic_behind_open_transaction"] = waiting
    return told


def source_observation(
    keys: AssetKeys, name: TopicPartition, lag: LogLag, outlook: Metadata, source: SourceIdentity | None = None
) -> dg.AssetObservation:
    """A topic-partition at its source, and how far behind the one here is; ``outlook`` is that of its topic."""
    stopped, position, log, offsets = lag
    # Nothing else on the page of what nobody materializes says whose numbers these are.
    numbers: Metadata = {**outlook, "log": str(name)}
    if position is not None:
        numbers["position"] = position
    if log:
        numbers["log_start_offset"] = log.log_start_offset
        numbers["last_stable_offset"] = log.end_offset
        if log.high_watermark is not None:
            numbers["high_watermark"] = log.high_watermark
            numbers["behind_open_transaction"] = log.waiting
        if offsets is not None:
            numbers["consumer_lag"] = offsets
    if stopped:
        numbers["stopped"] = stopped
    return dg.AssetObservation(
        keys.source(name.topic),
        partition=str(name),
        description=f"stopped: {in_configuration(stopped, name.topic, source)}" if stopped else None,
        metadata=numbers,
    )


def lag_told(observation: dg.AssetObservation) -> ShownLag:
    """What an observation of a source has told: the other way round."""
    told = {name: value.value for name, value in observation.metadata.items()}
    stopped, names = told.get("stopped"), ("position", "log_start_offset", "last_stable_offset", "high_watermark")
    offsets = (each if isinstance(each := told.get(name), int) else None for name in names)
    return ShownLag(None if stopped is None else str(stopped), *offsets)


def in_configuration(reason: str, topic: str, source: SourceIdentity | None) -> str:
    """Why something of a topic is stopped, with the choice as the configuration of a run has it, not a command line.

    Another topic is new here: a run takes it by its name there, and nothing here remembers its brokers. ``source`` is
    null if nobody knows where that is; then whoever has named it has to do that again.
    """
    for option, field in _FIELDS.items():
        reason = reason.replace(f"({option})", f"(topics: [{topic}], {field}: true)")
    there = f"topics: [{source.topic}], " if source else ""
    there += f"bootstrap: {source.bootstrap}, " if source and source.bootstrap else ""
    return re.sub(r"\(--into (\S+)\)", lambda found: f"({there}into: {found[1]})", reason)


def warning_in_configuration(warning: str) -> str:
    """A warning of a topic-partition, with what finds the rest as above."""
    topic = warning.partition(":")[0].rpartition("-")[0]
    for option, field in _FIELDS.items():
        warning = warning.replace(f"({option} finds ", f"(a run with topics: [{topic}], {field}: true finds ")
    return warning


def stopped_in_configuration(topic: TopicLag) -> dict[str, str]:
    """By topic-partition why it is stopped, as above."""
    reasons = topic.stopped.items()
    return {str(name): in_configuration(why, topic.topic, topic.plan.source) for name, why in reasons}


def scan_in_configuration(scan: LagScan) -> LagScan:
    """The same scan, with each reason why something is stopped as above: what is shown of it is compared later."""
    return replace(scan, topics=tuple(map(_topic_in_configuration, scan.topics)))


def _topic_in_configuration(topic: TopicLag) -> TopicLag:
    def told(reasons: Mapping[int, str]) -> dict[int, str]:
        return {number: in_configuration(why, topic.topic, topic.plan.source) for number, why in reasons.items()}

    return replace(topic, noted=told(topic.noted), plan=replace(topic.plan, stopped=told(topic.plan.stopped)))


def by_reason(reasons: Mapping[str, str]) -> list[str]:
    """A line for each reason, with the names that it is given for: all partitions of a topic often share one.

    A reason may name its own log in a command. Then that of the first one is shown.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in reasons.items():
        names[reason.replace(name, _ITSELF)].append(name)
    return [f"{some_of(each, _NAMES_IN_LINE)}: {reason.replace(_ITSELF, each[0])}" for reason, each in names.items()]


def _lag_afterwards(
    context: Context, ingest: Ingest, plans: IngestPlans, result: IngestResult
) -> dict[TopicPartition, int]:
    """Of what landed, as far as catalog and source tell."""
    landed = sorted({each.topic_partition.topic for each in result.committed})
    try:
        return ingest.plan(plans.source, landed).lag if landed else {}
    except KeptlogError as error:
        # What landed is told in any case.
        context.log.warning("the consumer lag after this ingest is not known: %s", first_line(error))
        return {}


def _fail_if_any_failed(run: Run, plans: IngestPlans, result: IngestResult, now_ms: int) -> None:
    if not result.failed:
        return
    context = run.context
    names = sorted(result.failed)
    outage = outage_among(result.failed, is_any_done=bool(result.committed))
    if outage:
        tag_outage(context, outage, now_ms)
        tags = as_tags(FAILED_TAG, ",".join(names))
    else:
        positions = _positions(plans, result)
        failed_at = {"at_ms": now_ms, "positions": positions, "topic_ids": _topic_ids(run, positions)}
        tags = as_tags(FAILED_TAG, ",".join(names)) | as_tags(FAILED_AT_TAG, json.dumps(failed_at))
    tell_in_tags(context.instance, context.run.run_id, tags)
    reasons = _in_configuration(plans, {name: str(result.failed[name]) for name in names})
    raise dg.Failure(
        f"{len(names)} not ingested, {len(result.committed)} ingested: " + "; ".join(by_reason(reasons)),
        metadata=reasons,
        allow_retries=False,
    )


def _in_configuration(plans: IngestPlans, reasons: Mapping[str, str]) -> dict[str, str]:
    """Why topics and topic-partitions have failed, as above; of one that was not planned nothing is known of there."""
    sources: dict[str, tuple[str, SourceIdentity | None]] = {
        each.plan.topic: (each.plan.topic, each.plan.source) for each in plans.topics
    }
    sources |= {str(log): sources[log.topic] for each in plans.topics for log in each.plan.names}
    return {name: in_configuration(why, *sources.get(name, (name, None))) for name, why in reasons.items()}


def _positions(plans: IngestPlans, result: IngestResult) -> dict[str, int | None]:
    """Where the topic-partitions that failed stand after this run; null for what was never read, and for whole topics.

    The run knows that by itself, so that an outage that begins meanwhile makes no position unknown.
    """
    stands: dict[str, int | None] = {
        str(TopicPartition(each.plan.topic, partition)): each.position(partition)
        for each in plans.topics
        for partition in range(each.plan.partitions)
    }
    stands |= {str(each.topic_partition): each.range.end_offset for each in result.committed}
    stands |= dict.fromkeys(plans.source.topics)
    return {name: stands.get(name) for name in sorted(result.failed)}


def _topic_ids(run: Run, positions: Mapping[str, int | None]) -> dict[str, str]:
    """The ids of topics among what has failed, as far as they are there: one made anew has not failed with the old."""
    found: dict[str, str] = {}
    for name in (name for name, position in positions.items() if position is None):
        with suppress(KeptlogError):
            topic_id = run.log_store.store.describe_topic(name).id
            found |= {name: topic_id} if topic_id else {}
    return found
