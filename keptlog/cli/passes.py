"""``keptlog clean``, ``expire`` and ``purge``: the passes that the Dagster jobs make too."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cleaner import CleanResult
from keptlog.cli.output import clock_ms, json_option, print_json, print_table, progress_to_stderr, quiet_option, size
from keptlog.home import Home, new_id, open_home
from keptlog.log.result import Rewritten
from keptlog.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXIT_FAILED = 1


@click.command(short_help="Clean the logs that are due, or the named ones, on Spark.")
@click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1)
@json_option
@quiet_option
def clean(names: Sequence[str], *, as_json: bool, quiet: bool) -> None:
    """Clean logs on Spark.

    Without a name: all logs that are due, by lag, dirty ratio or tombstone expiry. With names: whatever is cleanable in
    those, due or not. The minimum lag and the active segment are always left alone.
    """
    home, now_ms, progress = open_home(), clock_ms(), progress_to_stderr(quiet=quiet)
    cleaner = home.cleaner(_session)
    plan = cleaner.plan(names, now_ms=now_ms, requested=bool(names))
    progress(f"{len(plan.steps)} of {len(plan.steps) + len(plan.left_alone)} logs to clean")
    _report(cleaner.clean(plan, new_id(), progress), as_json=as_json, show_left_alone=bool(names))


@click.command(short_help="Remove tombstones past their delete horizon.")
@click.argument("names", metavar="[TOPIC | TOPIC-PARTITION]...", nargs=-1)
@json_option
@quiet_option
def expire(names: Sequence[str], *, as_json: bool, quiet: bool) -> None:
    """Remove tombstones whose delete horizon has passed from logs that have nothing else to clean."""
    home, now_ms, progress = open_home(), clock_ms(), progress_to_stderr(quiet=quiet)
    cleaner = home.cleaner(_session)
    result = cleaner.expire(cleaner.plan(names, now_ms=now_ms), new_id(), progress)
    _report(result, as_json=as_json, show_left_alone=False)


@click.command(short_help="Really delete replaced files and what crashes left behind.")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@click.option(
    "--orphan-grace-ms",
    type=click.IntRange(0),
    default=24 * 3_600_000,
    show_default=True,
    help="Delete unreferenced files older than this. Less is safe only while no append or clean runs.",
)
@json_option
def purge(topics: Sequence[str], orphan_grace_ms: int, *, as_json: bool) -> None:
    """Delete replaced files from the storage, once file.delete.delay.ms has passed, and what crashes left behind."""
    home, now_ms = open_home(), clock_ms()
    receipts = {name: _purge_topic(home, name, now_ms, orphan_grace_ms) for name in topics or home.store.topics()}
    if as_json:
        print_json(receipts)
        return
    rows = [
        {
            "topic": name,
            "snapshots expired": receipt["expired_snapshots"],
            "files deleted": receipt["deleted_files"],
            "orphans deleted": receipt["deleted_orphans"],
            "freed": size(receipt["deleted_bytes"]),
        }
        for name, receipt in receipts.items()
    ]
    print_table(rows, empty="no topics yet")


def _purge_topic(home: Home, topic: str, now_ms: int, orphan_grace_ms: int) -> dict[str, int]:
    receipt = home.store.purge(topic, now_ms, orphan_grace_ms)
    return {
        "expired_snapshots": len(receipt.expired_snapshots),
        "deleted_files": len(receipt.deleted_files),
        "deleted_orphans": len(receipt.deleted_orphans),
        "deleted_bytes": receipt.deleted_bytes,
    }


def _session() -> SparkSession:
    return start_session(os.environ.get("KEPTLOG_SPARK_MASTER"))


def _row(outcome: Rewritten) -> dict[str, object]:
    counts = outcome.counts
    return {
        "topic-partition": str(outcome.step.topic_partition),
        "why": outcome.step.trigger.value,
        "records in": counts.total,
        "superseded": counts.superseded,
        "stamped": counts.stamped,
        "expired": counts.expired,
        "unkeyed": counts.unkeyed,
        "records left": counts.retained,
        "segments kept": outcome.segments_kept,
        "rewritten": len(outcome.removed),
        "written": size(outcome.bytes_written),
    }


def _report(result: CleanResult, *, as_json: bool, show_left_alone: bool) -> None:
    if as_json:
        print_json(
            {
                "run_id": result.run_id,
                "committed": [_row(each) | {"counts": asdict(each.counts)} for each in result.committed],
                "failed": {name: str(error) for name, error in result.failed.items()},
                "left_alone": result.plan.left_alone,
            }
        )
    else:
        print_table([_row(each) for each in result.committed], empty="nothing to do")
        for name, reason in result.plan.left_alone.items() if show_left_alone else ():
            click.echo(f"{name}: left alone, {reason}")
        for name, error in result.failed.items():
            click.echo(f"keptlog: {name}: {error}", err=True)
    if result.failed:
        sys.exit(_EXIT_FAILED)
