"""What the commands that ingest have in common: how they tell what came in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from keptlog.cli.output import exit_if_failed, print_json, print_table
from keptlog.errors import InvalidConfig
from keptlog.log.words.units import size

if TYPE_CHECKING:
    from keptlog.ingest.result import IngestResult, Intake

skip_lost_option = click.option(
    "--skip-lost", is_flag=True, help="Go on where a log begins now, if records or deletions before that are gone."
)
reconcile_option = click.option(
    "--reconcile", is_flag=True, help="Read all that is there, and delete here the keys that are gone there."
)


def report(
    result: IngestResult,
    configs: Mapping[str, Mapping[str, str]],
    more: Mapping[str, object] | None = None,
    *,
    as_json: bool,
) -> None:
    """Print what a run did; ``configs`` has what new topics were created with, ``more`` goes into the JSON too.

    Exits with 1 if a topic-partition failed.
    """
    rows = [_row(each) for each in result.committed]
    for warning in result.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        created = {topic: dict(configs[topic]) for topic in result.created}
        answer = {"run_id": result.run_id, "created": created, "committed": rows}
        print_json(answer | {"warnings": list(result.warnings)} | dict(more or {}), result.failed)
    else:
        for topic in result.created:
            settings = ", ".join(f"{name}={value}" for name, value in configs[topic].items())
            click.echo(f"created {topic} with {settings or 'no settings of its own'}")
        empty = "nothing came in" if result.failed else "nothing new"
        print_table([_shown(row) for row in rows], empty=empty, expendable=("from offset", "segments", "written"))
    exit_if_failed(result.failed)


def refuse_if_nothing_can_be_done(result: IngestResult, topics: Sequence[str]) -> None:
    """Raises InvalidConfig if only one topic was asked for, and it can't take records from there."""
    error = result.failed.get(topics[0]) if len(topics) == 1 else None
    if isinstance(error, InvalidConfig):
        raise error


def _row(intake: Intake) -> dict[str, object]:
    return {
        "topic_partition": str(intake.topic_partition),
        "records": intake.records,
        "tombstones": intake.tombstones,
        "reconciled": intake.reconciled,
        "unkeyed": intake.unkeyed,
        "from_offset": intake.range.from_offset,
        "end_offset": intake.range.end_offset,
        "segments": len(intake.segments),
        "bytes": intake.bytes,
        "skipped": list(intake.skipped),
    }


def _shown(row: Mapping[str, object]) -> dict[str, object]:
    skipped = row["skipped"]
    return {
        "topic-partition": row["topic_partition"],
        "records": row["records"],
        "tombstones": row["tombstones"],
        "from offset": row["from_offset"],
        "log end": row["end_offset"],
        "segments": row["segments"],
        "written": size(int(str(row["bytes"]))),
        "skipped": len(skipped) if isinstance(skipped, list) else 0,
    }
