"""``keptlog retain`` and ``delete-records``: what goes from the head of a log, whatever its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from keptlog.cli.output import (
    clock_ms,
    exit_if_failed,
    json_option,
    print_json,
    print_table,
    require_topics_here,
    run_id_option,
    size,
)
from keptlog.home import new_id, open_home
from keptlog.log.counted import counted
from keptlog.log.segment import total_bytes
from keptlog.log.steps import Retain
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.names import named_logs, refuse_unknown

if TYPE_CHECKING:
    from keptlog.passes.retain import RetentionResult


@click.command(short_help="Remove old segments, by retention.ms, retention.bytes and log start.")
@click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1)
@run_id_option
@json_option
def retain(names: Sequence[str], run_id: str | None, *, as_json: bool) -> None:
    """Remove old segments from the logs whose cleanup.policy has delete; all logs without a name.

    Whole segments go, from the oldest on, and the log start offset moves. Their files are deleted by a later purge.
    """
    home = open_home()
    require_topics_here()
    named = named_logs(home.store, names)
    refuse_unknown(named.unreadable)
    result = home.retainer.retain(named, run_id or new_id(), now_ms=clock_ms())
    if as_json:
        print_json(
            {
                "run_id": result.run_id,
                "committed": [_row(step) for step in result.committed],
                "failed": {name: str(error) for name, error in result.failed.items()},
                "left_alone": result.plan.left_alone,
            }
        )
    else:
        _print(result, show_left_alone=bool(names))
    exit_if_failed(result.failed)


@click.command("delete-records", short_help="Delete the records of one log before an offset.")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(0))
@click.argument("offset", type=click.IntRange(-1))
@run_id_option
@json_option
def delete_records(topic: str, partition: int, offset: int, run_id: str | None, *, as_json: bool) -> None:
    """Delete the records of one log before OFFSET, or all of them if it is -1, whatever the cleanup.policy.

    Nobody reads them from now on. Segments that lie wholly before OFFSET go at once; of the segment that holds it, the
    rest goes with that segment. With -1 write: keptlog delete-records TOPIC PARTITION -- -1

    With --run-id it can be repeated: "all of them" then stay those of the first time.
    """
    deleted = open_home().store.delete_records(TopicPartition(topic, partition), offset, run_id)
    row = {
        "topic-partition": str(deleted.topic_partition),
        "log start": deleted.log_start_offset,
        "segments": deleted.segments,
        "bytes": deleted.bytes,
    }
    if as_json:
        print_json(row | {"run_id": deleted.run_id, "is_repeated": deleted.is_repeated})
        return
    went = f"{counted(deleted.segments, 'segment')} ({size(deleted.bytes)}) went"
    if deleted.is_repeated:
        before = f"before offset {deleted.log_start_offset} of {deleted.topic_partition}"
        click.echo(f"run {deleted.run_id} has deleted {before} already; then {went}")
    else:
        click.echo(f"{row['topic-partition']} begins at offset {deleted.log_start_offset} now; {went}")


def _print(result: RetentionResult, *, show_left_alone: bool) -> None:
    rows = [_row(step) for step in result.committed]
    print_table([row | {"bytes": size(int(str(row["bytes"])))} for row in rows], empty="nothing is old")
    for name, reason in result.plan.left_alone.items() if show_left_alone else ():
        click.echo(f"{name}: left alone, {reason}")


def _row(step: Retain) -> dict[str, object]:
    return {
        "topic-partition": str(step.topic_partition),
        "segments": len(step.segments),
        "records": sum(segment.record_count for segment in step.segments),
        "bytes": total_bytes(step.segments),
        "log start before": step.log_start_offset,
        "log start": step.new_log_start_offset,
    }
