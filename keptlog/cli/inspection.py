"""``keptlog plan``, ``explain``, ``status`` and ``verify``: looking, without changing anything."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from keptlog.cleaner import observe, select_logs
from keptlog.cli.output import clock_ms, json_option, print_json, print_table, size
from keptlog.home import open_home
from keptlog.log.explain import explain as explain_assessment
from keptlog.log.explain import iso_time, summary
from keptlog.log.plan import describe_step, make_plan
from keptlog.log.selection import Assessment
from keptlog.log.topic_partition import TopicPartition
from keptlog.verify import verify_log

_EXIT_FOUND = 1


@click.command(short_help="Say what a clean would do now; changes nothing.")
@click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1)
@click.option("--requested", is_flag=True, help="As if cleaned by name: whatever is cleanable, due or not.")
@json_option
def plan(names: Sequence[str], *, requested: bool, as_json: bool) -> None:
    """Say what a clean would do now, most urgent first, and why it would leave the rest alone."""
    now_ms = clock_ms()
    made = make_plan(observe(open_home().store, names, now_ms=now_ms), now_ms, requested=requested)
    if as_json:
        print_json(asdict(made))
        return
    for step in made.steps:
        click.echo(describe_step(step))
    for name, reason in made.left_alone.items():
        click.echo(f"{name}: left alone, {reason}")
    if not made.steps and not made.left_alone:
        click.echo("no topics yet")


@click.command(short_help="Say why one log is (not) cleaned, and when it will be.")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(0))
@json_option
def explain(topic: str, partition: int, *, as_json: bool) -> None:
    """Say why one log is, or is not, cleaned now, and when it will be."""
    name = str(TopicPartition(topic, partition))
    assessment = next(iter(observe(open_home().store, [name], now_ms=clock_ms())))
    explanation = explain_assessment(assessment)
    if as_json:
        print_json(asdict(explanation))
        return
    click.echo(f"{explanation.topic_partition}: {explanation.verdict}\n")
    print_table([asdict(section) for section in explanation.sections], empty="")
    click.echo()
    for rule in explanation.rules:
        click.echo(f"  {rule}")
    click.echo(f"\ndue: {explanation.due}")


@click.command()
@click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1)
@json_option
def status(names: Sequence[str], *, as_json: bool) -> None:
    """Show every log: how dirty, how late, what is due."""
    rows = [_status_row(each) for each in observe(open_home().store, names, now_ms=clock_ms())]
    if as_json:
        print_json(rows)
        return
    shown = [
        {
            "topic-partition": row["topic_partition"],
            "log end": row["log_end_offset"],
            "segments": row["segments"],
            "clean": size(int(str(row["clean_bytes"]))),
            "cleanable": size(int(str(row["cleanable_bytes"]))),
            "ratio": row["cleanable_ratio"],
            "late by ms": row["max_compaction_delay_ms"],
            "oldest uncompacted": row["earliest_uncompacted"],
            "due": row["trigger"] or row["due"],
        }
        for row in rows
    ]
    print_table(shown, empty="no topics yet: keptlog topic create TOPIC --config cleanup.policy=compact")


@click.command(short_help="Check guarantees G1..G5 on the stored logs.")
@click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1)
@json_option
def verify(names: Sequence[str], *, as_json: bool) -> None:
    """Read the stored logs and check guarantees G1..G5 on them; exit 1 if one is broken."""
    store, now_ms = open_home().store, clock_ms()
    found = [
        (log.topic_partition, check) for log in select_logs(store, names) for check in verify_log(store, log, now_ms)
    ]
    rows = [{"topic-partition": str(where)} | _check_row(asdict(check)) for where, check in found]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, empty="no topics yet")
    if not all(check.passed for _, check in found):
        sys.exit(_EXIT_FOUND)


def _check_row(check: dict[str, object]) -> dict[str, object]:
    return {"check": check["name"], "result": "ok" if check["passed"] else "BROKEN", "what": check["description"]}


def _status_row(assessment: Assessment) -> dict[str, object]:
    log, sections = assessment.log, assessment.sections
    oldest_ms = assessment.earliest_uncompacted_ms
    return {
        "topic_partition": str(log.topic_partition),
        "log_start_offset": log.log_start_offset,
        "first_dirty_offset": sections.first_dirty_offset,
        "log_end_offset": log.log_end_offset,
        "segments": len(log.segments),
        "clean_bytes": summary("clean", sections.clean).bytes,
        "cleanable_bytes": summary("cleanable", sections.cleanable).bytes,
        "cleanable_ratio": assessment.cleanable_ratio,
        "max_compaction_delay_ms": assessment.max_compaction_delay_ms,
        "earliest_uncompacted": None if oldest_ms is None else iso_time(oldest_ms),
        "trigger": assessment.trigger.value if assessment.trigger else None,
        "due": None if assessment.due_ms is None else iso_time(assessment.due_ms),
    }
