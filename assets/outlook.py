"""What logs wait for, and until when: on the pages of their topic, beside what Dagster shows of the last partition.

A page shows the metadata of the last event, which is of one topic-partition. What is told of the whole topic has names
that begin with ``topic_``, and is the same in all of its events.

It is told beside what has been done, or is to be asked for. So where it can't be told of a topic, a line says why, and
no more of it is told than which one it is: everything else goes on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

import dagster as dg

from keptlog.dagster.assets.last_results import TOPIC_ID
from keptlog.dagster.assets.markdown import as_list, name_cell, without_paths
from keptlog.dagster.assets.mount import Run, Tick
from keptlog.dagster.assets.names import CLEAN_JOB, AssetKeys
from keptlog.dagster.assets.numbers import UNCLEANABLE, Metadata, row_count_of
from keptlog.errors import KeptlogError, first_line
from keptlog.log.assessment import Assessment
from keptlog.log.broker import BrokerConfig
from keptlog.log.segment import Log
from keptlog.log.told.explain import due_if_off, verdict_under
from keptlog.log.told.health import totals_of
from keptlog.log.words.counted import first_lines, some_of
from keptlog.log.words.iso_time import has_date, iso_time
from keptlog.passes.judging import judged_apart
from keptlog.table.waiting.reaching import apart

_REASONS = 5
_NAMES = 3
_NAME_WIDTH = 28
"""Beside names as long as Kafka's metrics have there is no more room."""


def log_outlook(assessment: Assessment, broker: BrokerConfig) -> Metadata:
    """Why a log is not cleaned yet, when it is looked at again, and when it is late."""
    off, mark = due_if_off(assessment, broker), assessment.log.uncleanable
    told: Metadata = {
        "why": without_paths(verdict_under(assessment, broker)),
        "due_at": off or _due_at(assessment.due_ms, [assessment]),
        "deadline": _time_or_none(assessment.deadline_ms),
    }
    return told | {UNCLEANABLE: without_paths(mark.told(assessment.now_ms, off))} if mark else told


def topic_outlook(call: Run | Tick, assessments: Sequence[Assessment], now_ms: int) -> Metadata:
    """The same of all logs of a topic, and its totals; where that can't be told, only which one it is."""
    topic = next((each.log.topic_partition.topic for each in assessments), "")
    found = apart(topic, partial(_topic_outlook, assessments, call.log_store.broker, now_ms))
    if isinstance(found, KeptlogError):
        return _only_which(call, topic, [each.log for each in assessments], found)
    return found


def _only_which(call: Run | Tick, topic: str, logs: Iterable[Log], why: KeptlogError) -> Metadata:
    call.context.log.warning("what %s waits for is not told: %s", topic, first_line(why))
    return identity_of(logs)


def _topic_outlook(assessments: Sequence[Assessment], broker: BrokerConfig, now_ms: int) -> Metadata:
    totals = totals_of(assessments, now_ms)
    off = next(filter(None, (due_if_off(each, broker) for each in assessments)), None)
    return {
        "topic_why": dg.MetadataValue.md(as_list(_reasons(assessments, broker))),
        "topic_due_at": off or _due_at(totals.earliest_due_ms, assessments),
        "topic_deadline": _time_or_none(totals.earliest_deadline_ms),
        "topic_logs": totals.logs,
        "topic_logs_late": totals.late,
        "topic_records": totals.records,
        "topic_dirty_records": totals.dirty_records,
        "topic_cleanable_bytes": totals.cleanable_bytes,
        "topic_waiting_bytes": totals.waiting_bytes,
        "dagster/size_bytes": totals.bytes,
        **identity_of(each.log for each in assessments),
    }


def of_dirty_section(outlook: Metadata) -> Metadata:
    """The same on the page of the dirty section, which is not the table: Dagster is told how large the section is."""
    names = ("topic_cleanable_bytes", "topic_waiting_bytes")
    sizes = [size for name in names if isinstance(size := outlook.get(name), int)]
    return {**outlook, "dagster/size_bytes": sum(sizes)} if sizes else outlook


def cleaned_by(call: Run | Tick, assessments: Sequence[Assessment]) -> Metadata:
    """A link to the job that cleans a topic, in this code location; nothing if none does, or if it is unknown."""
    if call.place is None or not any(each.log.config.is_compacted for each in assessments):
        return {}
    repository_name, location_name = call.place
    job_name = call.mount.name(CLEAN_JOB)
    return {"cleaned_by": dg.MetadataValue.job(job_name, location_name, repository_name=repository_name)}


def outlook_of(call: Run | Tick, assessments: Sequence[Assessment], now_ms: int) -> Metadata:
    """What every event of a clean section tells of its whole topic: what cleans it, and what it waits for."""
    return {**cleaned_by(call, assessments), **topic_outlook(call, assessments, now_ms)}


def outlook_of_logs(call: Run | Tick, topic: str, logs: Sequence[Log], now_ms: int) -> Metadata:
    """The same of logs that are still to be judged; where one can't be, only which topic it is."""
    assessments, unjudged = judged_apart(logs, now_ms)
    if topic in unjudged:
        return _only_which(call, topic, logs, unjudged[topic])
    return outlook_of(call, assessments, now_ms)


def identity_of(logs: Iterable[Log]) -> Metadata:
    """What tells a topic with these logs from another one of the same name; nothing of one that is older than ids."""
    topic_id = next((log.topic_id for log in logs), None)
    return {TOPIC_ID: topic_id} if topic_id else {}


def clean_observation(keys: AssetKeys, topic: str, outlook: Metadata) -> dg.AssetObservation:
    """What the clean section of a topic is to expect; ``outlook`` is that of all its logs."""
    return dg.AssetObservation(keys.clean(topic), metadata={**outlook, **row_count_of(outlook)})


def _reasons(assessments: Sequence[Assessment], broker: BrokerConfig) -> list[str]:
    """A line for each reason, the first logs named: all logs of a topic often share one."""
    names: dict[str, list[str]] = defaultdict(list)
    for each in assessments:
        names[without_paths(verdict_under(each, broker))].append(name_cell(each.log.topic_partition, _NAME_WIDTH))
    lines = []
    for reason, logs in sorted(names.items(), key=lambda pair: -len(pair[1])):
        lines.append(f"{some_of(logs, _NAMES)}: {reason}")
    return first_lines(lines, _REASONS)


def _due_at(due_ms: int | None, assessments: Sequence[Assessment]) -> str:
    if any(each.trigger for each in assessments):
        return "now"
    waits = [each.left_alone_until_ms for each in assessments]
    until_ms = min((ms for ms in waits if ms is not None), default=None) if None not in waits else None
    if due_ms is not None and due_ms == until_ms:
        return f"{iso_time(due_ms)}, when it is tried again"
    if until_ms is not None and not has_date(until_ms):
        return "never by itself: a clean failed"
    by_records = "with new records" if until_ms is None else f"with new records from {iso_time(until_ms)} on"
    return by_records if due_ms is None else f"{iso_time(due_ms)}, or {by_records}"


def _time_or_none(time_ms: int | None) -> str:
    return "none" if time_ms is None else iso_time(time_ms)
