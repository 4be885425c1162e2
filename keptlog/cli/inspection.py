"""``keptlog plan`` and ``explain``: what would be done and why, without changing anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import logs_argument, topic_or_log_argument
from keptlog.cli.holders import all_holders, holders_json
from keptlog.cli.most_shown import MOST_SHOWN, tell_more
from keptlog.cli.output import (
    clock_ms,
    exit_if_failed,
    json_option,
    no_topics,
    print_json,
    print_table,
    require_topics_here,
)
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.log.broker import BrokerConfig
from keptlog.log.holder import Holder
from keptlog.log.plan import describe_step
from keptlog.log.segment import total_bytes
from keptlog.log.steps import CleanStep, Compact, Retain
from keptlog.log.told.explain import SectionSummary
from keptlog.log.told.explain import explain as explain_assessment
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.log.words.harmless import harmless
from keptlog.log.words.units import size
from keptlog.passes.clean import clean_plan
from keptlog.passes.names import refuse_unknown, require_all
from keptlog.passes.observer import observe
from keptlog.passes.retain import retention_plan

if TYPE_CHECKING:
    from keptlog.table.unopened import UnopenedStore


@click.command(short_help="Say what a clean would do now; changes nothing.")
@logs_argument
@click.option("--requested", is_flag=True, help="As if cleaned by name: whatever is cleanable, due or not.")
@json_option
def plan(names: Sequence[str], *, requested: bool, as_json: bool) -> None:
    """Say what a clean would do now, most urgent first, why it leaves the rest alone, and what retention removes.

    Below that it says what holds superseded bytes, and until when, as far as tables tell. explain and verify look at
    the storage too.
    """
    store, now_ms = unopened_store(), clock_ms()
    require_topics_here()
    broker = BrokerConfig.of(store.broker_settings)
    seen = observe(store, names, now_ms=now_ms)
    refuse_unknown(seen.unreadable)
    made = clean_plan(seen.logs, broker, now_ms, requested=requested)
    retention = retention_plan(seen.logs, broker, now_ms)
    failed = {**seen.unreadable, **made.unplanned, **retention.unplanned}
    if as_json:
        answer = {"now_ms": made.now_ms, "steps": [_step(each) for each in made.steps], "left_alone": made.left_alone}
        rest = {"retention": [_step(each) for each in retention.steps], "holders": holders_json(all_holders(seen))}
        print_json(answer | rest, failed)
    else:
        told = [(str(step.topic_partition), describe_step(step)) for step in made.steps + retention.steps]
        told += [(name, f"{name}: left alone, {reason}") for name, reason in made.left_alone.items()]
        _tell_logs(told, len(told) if names else MOST_SHOWN)
        for holder in all_holders(seen):
            click.echo(harmless(str(holder)))
        if not seen.logs:
            click.echo(no_topics(failed))
    exit_if_failed(failed)


@click.command(short_help="Say why one log is (not) cleaned, and when it will be.")
@topic_or_log_argument
@click.argument("partition", type=click.IntRange(0), required=False)
@json_option
def explain(topic: str, partition: int | None, *, as_json: bool) -> None:
    """Say why one log is, or is not, cleaned now, when it will be, and what holds its superseded bytes.

    \b
    keptlog explain users-0
    keptlog explain users 0
    """
    from keptlog.cli.obstacles import exit_if_obstructed, obstacles_of  # noqa: PLC0415  # a plan needs none of it

    name = topic if partition is None else str(TopicPartition(topic, partition))
    store, now_ms = unopened_store(), clock_ms()
    require_topics_here()
    seen = observe(store, [name], now_ms=now_ms)
    require_all(seen.unreadable)
    if len(seen.assessments) > 1:
        last = seen.assessments[-1].log.topic_partition
        logs = counted(len(seen.assessments), "log")
        raise InvalidConfig(f"{topic} has {logs}: name one of {topic}-0 to {last}")
    (assessment,) = seen.assessments
    log = assessment.log.topic_partition
    store.load_table(log.topic)  # memory does not know that the home was moved
    obstacles, unlisted = obstacles_of(store, assessment)
    explanation = explain_assessment(assessment, BrokerConfig.of(store.broker_settings), obstacles)
    holders, unseen = _holders(store, log.topic, log.partition, now_ms)
    if as_json:
        answer = asdict(explanation) | {"trigger": assessment.trigger, "due_ms": assessment.due_ms}
        of_storage = {"holders": holders_json(holders), "holders_not_looked_at": unseen}
        print_json(answer | of_storage | {"files_not_looked_at": unlisted})
        exit_if_obstructed(explanation.obstacles, as_json=True)
        return
    click.echo(f"{explanation.topic_partition}: {explanation.verdict}\n")
    print_table([_shown(section) for section in explanation.sections], empty="")
    click.echo()
    for rule in explanation.rules:
        click.echo(f"  {rule}")
    click.echo(f"\ndue: {explanation.due}")
    click.echo("\nholds superseded bytes:" if holders or unseen else "\nholds superseded bytes: nothing")
    for line in (*map(str, holders), *(f"not looked at: {what}" for what in unseen)):
        click.echo(f"  {harmless(line)}")
    for what in unlisted:
        click.echo(f"files of the log were not looked at: {what}")
    exit_if_obstructed(explanation.obstacles)


def _tell_logs(told: Sequence[tuple[str, str]], limit: int) -> None:
    """The first lines about logs; each comes with the name of its log."""
    for _, line in told[:limit]:
        click.echo(harmless(line))
    for name, _ in told[limit : limit + 1]:
        how = harmless(f"name topics or logs to see theirs (keptlog plan {name})")
        tell_more("first", limit, len(told), "line", how=how)


def _step(step: CleanStep | Retain) -> dict[str, object]:
    """What a step does, of which log and why; what it would read."""
    compact = step if isinstance(step, Compact) else None
    return {
        "topic_partition": str(step.topic_partition),
        "action": type(step).__name__.lower(),
        "trigger": None if isinstance(step, Retain) else step.trigger,
        "segments": len(step.segments),
        "bytes": total_bytes(step.segments),
        "log_start_offset": step.log_start_offset,
        "first_dirty_offset": compact.first_dirty_offset if compact else None,
        "end_offset": compact.end_offset if compact else None,
        "new_log_start_offset": step.new_log_start_offset if isinstance(step, Retain) else None,
        "told": describe_step(step),
    }


def _shown(section: SectionSummary) -> dict[str, object]:
    return {name.replace("_", " "): value for name, value in asdict(section).items()} | {"bytes": size(section.bytes)}


def _holders(store: UnopenedStore, topic: str, partition: int, now_ms: int) -> tuple[list[Holder], list[str]]:
    """What holds bytes of a log, and what could not be looked at."""
    from keptlog.passes.holders import look_for_holders  # noqa: PLC0415  # a plan needs none of it

    try:
        found = look_for_holders(store, topic, now_ms)
    except KeptlogError as error:
        return [], [str(error)]
    return found.holders(now_ms, partition), [*found.unread, *found.not_looked_at]
