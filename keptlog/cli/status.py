"""``keptlog status``: every log at a glance.

It is asked often, by people and by monitoring, and over very many logs; so it starts as little as it can (``glance``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from keptlog.cli.glance import glance
from keptlog.cli.output import clock_ms, exit_if_failed, json_option, print_json, print_table, size
from keptlog.log.assessment import Assessment, assess
from keptlog.log.iso_time import iso_time
from keptlog.log.metrics import cleaner_metrics, metrics_by_log
from keptlog.log.plan import why_left_alone
from keptlog.log.segment import total_bytes


@click.command()
@click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1)
@json_option
def status(names: Sequence[str], *, as_json: bool) -> None:
    """Show every log: how dirty, how late, what is due; and the cleaner's metrics, under Kafka's names."""
    now_ms = clock_ms()
    seen = glance(names)
    assessments = [assess(log, now_ms) for log in seen.logs]
    metrics = cleaner_metrics(assessments, seen.last_passes, now_ms).to_dict()
    if as_json:
        of_log = metrics_by_log(assessments, seen.last_passes, now_ms)
        rows = [_status_row(each) | {"metrics": of_log[each.log.topic_partition].to_dict()} for each in assessments]
        unreadable = {name: str(error) for name, error in seen.unreadable.items()}
        print_json({"metrics": metrics, "logs": rows, "unreadable": unreadable})
    else:
        print_table(
            [_shown(_status_row(each)) for each in assessments],
            empty="no topics yet: keptlog topic create TOPIC --config cleanup.policy=compact",
        )
        for each in assessments:
            if each.log.uncleanable:
                click.echo(f"{each.log.topic_partition}: {why_left_alone(each)}")
        if assessments:
            click.echo("\n" + ", ".join(f"{name} {'-' if value is None else value}" for name, value in metrics.items()))
    exit_if_failed(seen.unreadable)


def _shown(row: dict[str, object]) -> dict[str, object]:
    return {
        "topic-partition": row["topic_partition"],
        "log start": row["log_start_offset"],
        "log end": row["log_end_offset"],
        "segments": row["segments"],
        "clean": size(int(str(row["clean_bytes"]))),
        "cleanable": size(int(str(row["cleanable_bytes"]))),
        "ratio": row["cleanable_ratio"],
        "late by ms": row["max_compaction_delay_ms"],
        "oldest uncompacted": row["earliest_uncompacted"],
        "due": row["trigger"] or row["due"],
    }


def _status_row(assessment: Assessment) -> dict[str, object]:
    log, sections = assessment.log, assessment.sections
    oldest_ms = assessment.earliest_uncompacted_ms
    return {
        "topic_partition": str(log.topic_partition),
        "log_start_offset": log.log_start_offset,
        "first_dirty_offset": sections.first_dirty_offset,
        "log_end_offset": log.log_end_offset,
        "segments": len(log.segments),
        "clean_bytes": total_bytes(sections.clean),
        "cleanable_bytes": total_bytes(sections.cleanable),
        "cleanable_ratio": assessment.cleanable_ratio,
        "max_compaction_delay_ms": assessment.max_compaction_delay_ms,
        "earliest_uncompacted": None if oldest_ms is None else iso_time(oldest_ms),
        "uncleanable": asdict(log.uncleanable) if log.uncleanable else None,
        "trigger": assessment.trigger.value if assessment.trigger else None,
        "due": None if assessment.due_ms is None else iso_time(assessment.due_ms),
    }
