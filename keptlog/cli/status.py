"""``keptlog status``: every log at a glance.

It is asked often, by people and by monitoring, and over very many logs; so it starts as little as it can: the store is
opened only for what has changed since the last look.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from keptlog.cli.arguments import logs_argument
from keptlog.cli.colour import Wrong, wrong
from keptlog.cli.holders import all_holders, holders_json, late_here, tell_late
from keptlog.cli.output import (
    EXIT_FAILED,
    clock_ms,
    exit_if_failed,
    json_option,
    no_topics,
    print_json,
    print_table,
    require_topics_here,
    tell_wrong,
)
from keptlog.cli.unopened import unopened_store
from keptlog.errors import LogCorrupt
from keptlog.log.assessment import Assessment
from keptlog.log.broker import BrokerConfig
from keptlog.log.conditions import Condition, check_condition
from keptlog.log.counted import counted
from keptlog.log.health import worst_of
from keptlog.log.metrics import cleaner_metrics, metrics_by_log
from keptlog.log.plan import why_off
from keptlog.log.segment import total_bytes
from keptlog.log.units import duration, glance, size
from keptlog.notify.checks import broken_checks
from keptlog.passes.names import refuse_unknown
from keptlog.passes.observer import Overview, observe
from keptlog.passes.stored_files import still_wrong, wrong_on_disk
from keptlog.settings import home_path
from keptlog.table.embedded import unfinished_deletion

MOST_SHOWN = 200
"""Rows, if no topic was named; JSON has all."""
MOST_DAMAGED = 20
"""Lines about logs whose files are missing or damaged."""
_SEEN_HERE = {"G8", "max_compaction_lag"}
"""Checks of verify that each status makes anew."""


@click.command()
@logs_argument
@json_option
def status(names: Sequence[str], *, as_json: bool) -> None:
    """Show every log: how dirty, how late, what is due; and the cleaner's metrics, under Kafka's names.

    It ends in exit code 1 if something is wrong, and names it. That may be superseded bytes that are held past their
    deadline, as far as tables tell. It may be a file on a disk that is missing or has another size than its table says.
    Or it may be what verify has found broken, and has not seen whole since. It does not look at
    files in an object store; explain and verify do.
    """
    store = unopened_store()
    require_topics_here()
    seen = observe(store, names, now_ms=clock_ms())
    refuse_unknown(seen.unreadable)
    assessments = seen.assessments
    failed = {**seen.unreadable, **{name: unfinished_deletion(name) for name in store.being_deleted()}}
    damaged, broken = {} if store.read_only else _damaged(seen), _broken(home_path(), seen)
    metrics = cleaner_metrics(assessments, seen.last_passes, seen.erasures, seen.now_ms).to_dict()
    broker = BrokerConfig.of(store.broker_settings)
    off_reason = next((why for each in assessments if (why := why_off(each.log, broker))), None)
    if as_json:
        of_log = metrics_by_log(assessments, seen.last_passes, seen.erasures, seen.now_ms)
        rows = [_status_row(each) | {"metrics": of_log[each.log.topic_partition].to_dict()} for each in assessments]
        state = {"holders": holders_json(all_holders(seen)), "read_only": store.read_only}
        off = {"cleaner_disabled": off_reason, "damaged": {name: str(error) for name, error in damaged.items()}}
        checks = {"broken": {each.subject: each.text for each in broken}}
        print_json({"now_ms": seen.now_ms, "metrics": metrics, "logs": rows} | state | off | checks, failed)
    else:
        shown = assessments if names else _at_a_glance(assessments, seen.now_ms)
        print_table([_shown(_status_row(each), each, seen.now_ms) for each in shown], empty=no_topics(failed))
        _tell_notes(seen, shown, off_reason)
        _tell_metrics(metrics if assessments else {})
    if store.read_only and store.read_only not in map(str, failed.values()):
        click.echo(f"keptlog: {store.read_only}", err=True)
    late = [*seen.late_holders(), *late_here(store.broker_settings, seen.now_ms)]
    tell_late(late)
    _tell_broken(broken)
    exit_if_failed({**failed, **_first(damaged)})
    if store.read_only or late or broken:
        sys.exit(EXIT_FAILED)


def _tell_notes(seen: Overview, shown: Sequence[Assessment], off_reason: str | None) -> None:
    """What no cell of the table has room for."""
    if len(shown) < len(seen.assessments):
        count = counted(len(seen.assessments), "log")
        click.echo(f"these are the worst {len(shown)} of {count}; name topics to see theirs, --json has all")
    if off_reason:
        click.echo(off_reason)
    for each in shown:
        if each.log.uncleanable:
            click.echo(f"{wrong(str(each.log.topic_partition))}: {each.log.uncleanable.told(seen.now_ms)}")
    for holder in all_holders(seen):
        if not holder.is_late:
            click.echo(str(holder))


def _tell_metrics(metrics: Mapping[str, object]) -> None:
    if metrics:
        click.echo("\n" + ", ".join(f"{name} {'-' if value is None else value}" for name, value in metrics.items()))


def _broken(home: Path, seen: Overview) -> list[Condition]:
    """What verify has found broken in these logs, and has not seen whole since.

    How late a log is, and what holds old bytes, is not taken from what verify has seen: it is looked at here.
    """
    topic_of = {name: each.log.topic_partition.topic for each in seen.assessments for name in _names(each)}
    known = broken_checks(home) or {}
    found = {name: _not_seen_here(checks) for name, checks in known.items() if name in topic_of}
    return [check_condition(name, topic_of[name], checks) for name, checks in found.items() if checks]


def _not_seen_here(checks: Mapping[str, str]) -> dict[str, str]:
    return {name: what for name, what in checks.items() if name not in _SEEN_HERE}


def _tell_broken(broken: Sequence[Condition]) -> None:
    for each in broken:
        tell_wrong(each.text)


def _names(assessment: Assessment) -> tuple[str, str]:
    name = assessment.log.topic_partition
    return name.topic, str(name)


def _damaged(seen: Overview) -> dict[str, LogCorrupt]:
    """Topic-partition to what is wrong with its files, where they lie on a disk."""
    found: dict[str, LogCorrupt] = {}
    suspected = wrong_on_disk(seen.logs)
    later = observe(unopened_store(), {name.topic for name in suspected}, now_ms=seen.now_ms) if suspected else seen
    logs = {log.topic_partition: log for log in later.logs}
    for name, seen_wrong in suspected.items():
        if name in logs and (still := still_wrong(seen_wrong, logs[name])):
            more = f"; and {len(still) - 1} more" if len(still) > 1 else ""
            found[str(name)] = LogCorrupt(f"{still[0]}{more}")
    return found


def _first(damaged: Mapping[str, LogCorrupt]) -> dict[str, LogCorrupt]:
    """A few of them, and how many more there are: a volume that is not mounted damages every log."""
    told = dict(list(damaged.items())[:MOST_DAMAGED])
    more = counted(len(damaged) - len(told), "more log")
    rest = LogCorrupt("files are missing or damaged; status --json and verify name them all")
    return told if len(told) == len(damaged) else {**told, more: rest}


def _at_a_glance(assessments: Sequence[Assessment], now_ms: int) -> Sequence[Assessment]:
    """As many as a person reads, the worst first if there are more."""
    return assessments if len(assessments) <= MOST_SHOWN else worst_of(assessments, now_ms, MOST_SHOWN)


def _shown(row: dict[str, object], assessment: Assessment, now_ms: int) -> dict[str, object]:
    late_ms, oldest_ms = assessment.max_compaction_delay_ms, assessment.earliest_uncompacted_ms
    due_ms = assessment.due_ms
    return {
        "topic-partition": row["topic_partition"],
        "log start": row["log_start_offset"],
        "log end": row["log_end_offset"],
        "segments": row["segments"],
        "clean": size(int(str(row["clean_bytes"]))),
        "cleanable": size(int(str(row["cleanable_bytes"]))),
        "ratio": row["cleanable_ratio"],
        "late by": Wrong(duration(late_ms)) if late_ms else None,
        "oldest uncompacted": None if oldest_ms is None else glance(oldest_ms, now_ms),
        "due": row["trigger"] or (None if due_ms is None else glance(due_ms, now_ms)),
    }


def _status_row(assessment: Assessment) -> dict[str, object]:
    log, sections = assessment.log, assessment.sections
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
        "earliest_uncompacted_ms": assessment.earliest_uncompacted_ms,
        "uncleanable": asdict(log.uncleanable) if log.uncleanable else None,
        "trigger": assessment.trigger.value if assessment.trigger else None,
        "due_ms": assessment.due_ms,
    }
