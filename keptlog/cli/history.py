"""``keptlog history``: what was done to a topic, and what it cost a day."""

from __future__ import annotations

from dataclasses import asdict

import click

from keptlog.cli.arguments import topic_argument
from keptlog.cli.output import clock_ms, json_option, print_json, print_table, wall_clock_ms
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig
from keptlog.log.broker import BrokerConfig
from keptlog.log.told.history import OTHERS, DayCost, HistoryEntry, cost_by_day
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.units import duration, size
from keptlog.table.metadata.history import history_of
from keptlog.table.waiting.reaching import reaching

_SHOWN = 20
_GO_FIRST = ("run", "logs", "commits", "read", "written", "took")
"""Columns, where a terminal has no room: what was done, why, and to how many records, stays."""


@click.command(short_help="Show what each pass did to a topic, and its cost a day.")
@topic_argument
@click.option("--per-day", is_flag=True, help="Only what it adds up to, day by day (UTC).")
@click.option("--last", metavar="COUNT", type=click.IntRange(min=1), help=f"So many commits; default: {_SHOWN}.")
@click.option("--all", "is_all", is_flag=True, help="All commits that are remembered.")
@json_option
def history(topic: str, *, per_day: bool, last: int | None, is_all: bool, as_json: bool) -> None:
    """Show what was done to TOPIC, commit by commit: why, what it read and wrote, how long it took, and by which run.

    It is remembered for keptlog.history.retention.ms (90 days), even when a purge has expired the snapshots.
    `keptlog receipt list` tells what purges have deleted.
    """
    if per_day and last:
        raise InvalidConfig("--per-day adds up all commits: leave out --last")
    if is_all and last:
        raise InvalidConfig("--all shows all commits, and --last only some: choose one")
    store = unopened_store()
    retention_ms = BrokerConfig.of(store.broker_settings).keptlog_history_retention_ms
    # Snapshots are made at the machine's time, whatever time logs are judged as of.
    now_ms = max(clock_ms(), wall_clock_ms())
    with reaching(f"the history of topic {topic} can't be read"):
        table = store.load_table(topic)
        remembered = history_of(store.files, table, now_ms, retention_ms)
    entries = [each for each in remembered if each.moves_records]
    days = cost_by_day(entries)
    shown = entries if is_all else entries[-(last or _SHOWN) :]
    if as_json:
        commits = [] if per_day else [_as_json(topic, each) for each in shown]
        print_json({"topic": topic, "commits": commits, "days": [asdict(each) for each in days]})
        return
    none = _no_commit(topic, retention_ms, is_all_remembered=len(remembered) >= table.last_sequence_number)
    if not per_day:
        if len(shown) < len(entries):
            click.echo(f"the last {len(shown)} of {len(entries)} commits (--all shows the others)")
        print_table(
            [_row(each) for each in shown],
            empty=none,
            expendable=_GO_FIRST,
        )
        click.echo()
    print_table([_day(each) for each in days], empty=none if per_day else "", expendable=_GO_FIRST)


def _no_commit(topic: str, retention_ms: int, *, is_all_remembered: bool) -> str:
    if is_all_remembered:
        return f"no record of {topic} was ever written or removed"
    lasts = f"that lasts for keptlog.history.retention.ms ({duration(retention_ms)})"
    return f"no commit that wrote or removed records of {topic} is remembered: {lasts}"


def _as_json(topic: str, entry: HistoryEntry) -> dict[str, object]:
    told = asdict(entry)
    cost = told.pop("cost") or {"logs": [], "duration_ms": None}
    logs = [_log_json(topic, each) for each in cost["logs"]]
    triggers = entry.cost.triggers if entry.cost else []
    return told | {"duration_ms": cost["duration_ms"], "triggers": triggers, "logs": logs}


def _log_json(topic: str, log: dict[str, object]) -> dict[str, object]:
    """Several that are told together have no name."""
    partition = log.pop("partition")
    return {"topic_partition": None if partition == OTHERS else f"{topic}-{partition}"} | log


def _row(entry: HistoryEntry) -> dict[str, object]:
    cost = entry.cost
    return {
        "at": iso_time(entry.at_ms),
        "pass": entry.operation if entry.is_own else f"{entry.operation} of another program",
        "why": ", ".join(cost.triggers) if cost else None,
        "logs": cost.log_count if cost else None,
        "read": size(cost.bytes_read) if cost else None,
        "written": size(entry.bytes_added),
        "records added": entry.records_added,
        "removed": entry.records_removed,
        "took": f"{cost.duration_ms / 1000:.1f} s" if cost and cost.duration_ms is not None else None,
        "run": entry.run_id,
    }


def _day(day: DayCost) -> dict[str, object]:
    return {
        "day": day.day,
        "commits": day.commits,
        "cleans": day.cleans,
        "read": size(day.bytes_read),
        "written": size(day.bytes_written),
        "records arrived": day.records_arrived,
        "removed": day.records_removed,
        "took": f"{day.duration_ms / 1000:.1f} s",
    }
