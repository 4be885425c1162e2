"""``keptlog clean``, ``expire`` and ``purge``: the passes that the Dagster jobs make too."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import logs_argument, topic_names_argument
from keptlog.cli.asking import confirm, dry_run_option, is_asked, yes_option
from keptlog.cli.opening import home_with, home_with_logs, refuse_unknown_logs
from keptlog.cli.output import (
    EXIT_FAILED,
    clock_ms,
    exit_if_failed,
    json_option,
    no_topics,
    print_json,
    print_table,
    progress_to_stderr,
    quiet_option,
    require_topics_here,
    run_id_option,
)
from keptlog.cli.own_process import command_spark, spark_ahead
from keptlog.cli.purged import deletion_numbers, print_deletion, purge_lines, purge_numbers, purge_rest, tell_previews
from keptlog.home import new_id, open_home
from keptlog.log.broker import CLEANER_DISABLED
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.log.result import RewriteResult
from keptlog.log.steps import CleanStep, Compact, Expire
from keptlog.log.words.counted import counted
from keptlog.log.words.harmless import harmless
from keptlog.log.words.units import size
from keptlog.passes.names import refuse_unknown

if TYPE_CHECKING:
    from keptlog.log.told.early_end import EarlyEnd
    from keptlog.passes.clean import Pass
    from keptlog.passes.purge import PurgeResult


@click.command(short_help="Clean logs that are due, or the named ones, on Spark.")
@logs_argument
@run_id_option
@json_option
@quiet_option
def clean(names: Sequence[str], run_id: str | None, *, as_json: bool, quiet: bool) -> None:
    """Clean logs on Spark; keptlog plan says what would be done.

    Without a name: all logs that are due, by lag, dirty ratio or tombstone expiry. With names: whatever is cleanable in
    those, due or not, and also if its last clean failed a moment ago. The minimum lag and the active segment are always
    left alone. A log that fails stops no other: it is named, marked uncleanable, and left alone for a while.

    In a log larger than keptlog.cleaner.commit.max.bytes, whose records have versions, cleans take turns with the
    expiry of tombstones. If it is the turn of the expiry, the table says tombstone_expiry. Clean once more then.
    """
    refuse_unknown_logs(names)
    with spark_ahead(names):
        home, progress = open_home(), progress_to_stderr(quiet=quiet)
        require_topics_here()
        cleaner = home.cleaner(command_spark)
        planned = cleaner.begin(names, run_id or new_id(), now_ms=clock_ms(), requested=bool(names))
        refuse_unknown(planned.failed)
        steps, others = planned.plan.steps, planned.plan.left_alone
        to_clean = f"to be cleaned: {len(steps)} of {counted(len(steps) + len(others), 'log')}"
        progress(to_clean if home.broker.log_cleaner_enable else CLEANER_DISABLED)
        staged = cleaner.stage(planned, progress=progress)
    done = cleaner.commit(staged)
    _report(done, as_json=as_json, told=done.plan.left_alone if names else {})


@click.command(short_help="Remove tombstones past their delete horizon.")
@logs_argument
@run_id_option
@json_option
@quiet_option
def expire(names: Sequence[str], run_id: str | None, *, as_json: bool, quiet: bool) -> None:
    """Remove tombstones whose delete horizon has passed from logs that have nothing else to clean.

    Where records have versions, a clean of a log larger than keptlog.cleaner.commit.max.bytes leaves them. There the
    two take turns. If it is the turn of the clean, nothing is removed before it.
    """
    cleaner, progress = home_with_logs(names).cleaner(command_spark), progress_to_stderr(quiet=quiet)
    require_topics_here()
    planned = cleaner.begin(names, run_id or new_id(), now_ms=clock_ms())
    refuse_unknown(planned.failed)
    done = cleaner.commit(cleaner.stage(planned, [Expire], progress))
    _report(done, as_json=as_json, told=_waiting_for_a_clean(planned.plan.steps))


@click.command(short_help="Really delete replaced files, and what crashes left.")
@topic_names_argument
@click.option(
    "--orphan-grace-ms",
    type=click.IntRange(0),
    default=ORPHAN_GRACE_MS,
    show_default=True,
    help="Delete unreferenced files older than this. Less is safe only while no append or clean runs.",
)
@dry_run_option
@yes_option
@json_option
def purge(names: Sequence[str], orphan_grace_ms: int, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete replaced files from the storage, once file.delete.delay.ms has passed, and what crashes left behind.

    Below the table it names what may still hold values although it is not live any more, and until when. Each file that
    could not be deleted is there too, with the reason, and the receipts of what is gone. Exit code 1 if a receipt could
    not be sealed: the next purge seals it. A topic is left as it is, and named, if the storage knows more of it than
    this home does, or if a live file is missing. Deletions of topics that were begun are finished.

    On a terminal it says what it would delete, and asks.
    """
    purger, now_ms = home_with(*names).purger, clock_ms()
    require_topics_here()
    if dry_run or is_asked(yes=yes):
        previews = purger.preview(names, now_ms=now_ms, orphan_grace_ms=orphan_grace_ms)
        tell_previews(previews, is_answer=dry_run, as_json=as_json)
        if dry_run:
            exit_if_failed(previews.failed)
            return
        if previews.may_delete_more:
            confirm("delete for good what a purge finds, also where that can't be told now?")
        elif previews.deletes_anything:
            dropped = ", tags and branches" if previews.drops_refs else ""
            confirm(f"delete these files{dropped} for good?")
    result = purger.purge(names, now_ms=now_ms, orphan_grace_ms=orphan_grace_ms)
    deleted = {topic: purge_numbers(receipt) for topic, receipt in result.receipts.items()}
    if as_json:
        deletions = {topic: deletion_numbers(deletion) for topic, deletion in result.deletions.items()}
        told = {topic: deleted[topic] | purge_rest(each) for topic, each in result.receipts.items()}
        topics = {topic: each | {"is_idle": topic in result.idle} for topic, each in told.items()}
        print_json({"topics": topics, "deletions": deletions}, result.unsealed | result.failed)
    else:
        _print_purged(result, deleted)
    exit_if_failed(result.failed)
    if result.unsealed:  # its lines say why, and so does a warning
        sys.exit(EXIT_FAILED)


_GO_FIRST = ("unkeyed", "segments kept", "rewritten", "stamped", "expired", "records in", "written")
"""Columns, where a terminal has no room: why a log was cleaned, and how many records are left, stays."""


def _print_purged(result: PurgeResult, deleted: Mapping[str, Mapping[str, int]]) -> None:
    print_table(
        [
            {
                "topic": topic,
                "snapshots expired": numbers["expired_snapshots"],
                "files deleted": numbers["deleted_files"] + numbers["deleted_metadata_files"],
                "orphans deleted": numbers["deleted_orphans"],
                "freed": size(numbers["deleted_bytes"]),
            }
            for topic, numbers in deleted.items()
            if topic not in result.idle
        ],
        empty=_why_none(result),
    )
    if result.idle:
        count = counted(len(result.idle), "topic")
        click.echo(f"{count} left alone: nothing was committed or became due since the last purge; name one to look")
    for topic, receipt in result.receipts.items():
        for line in purge_lines(receipt):
            click.echo(harmless(f"{topic}: {line}"))
    for deletion in result.deletions.values():
        print_deletion(deletion)


def _why_none(result: PurgeResult) -> str:
    if result.idle:
        return "nothing to purge"
    return "nothing was purged" if result.failed else no_topics({})


def _shown(outcome: RewriteResult) -> dict[str, object]:
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


def _row(outcome: RewriteResult, early: EarlyEnd | None) -> dict[str, object]:
    return {
        "topic_partition": str(outcome.step.topic_partition),
        "trigger": outcome.step.trigger.value,
        "records_in": outcome.counts.total,
        "records_left": outcome.counts.retained,
        "counts": asdict(outcome.counts),
        "malformed": outcome.malformed,
        "segments_kept": outcome.segments_kept,
        "segments_rewritten": len(outcome.removed),
        "bytes_written": outcome.bytes_written,
        "end_offset": outcome.step.end_offset,
        "planned_end_offset": early.planned_end_offset if early else outcome.step.end_offset,
        "ends_early": early is not None,
    }


def _waiting_for_a_clean(steps: Iterable[CleanStep]) -> dict[str, str]:
    """The logs whose tombstones are past their horizon, and are not expired because a clean goes first."""
    why = "a clean is due, and goes before the expiry of its tombstones (keptlog clean {})"
    cleans = (step for step in steps if isinstance(step, Compact))
    due = (step for step in cleans if any(each.has_expired_tombstone(step.now_ms) for each in step.segments))
    return {str(step.topic_partition): why.format(step.topic_partition) for step in due}


def _report(result: Pass, *, as_json: bool, told: Mapping[str, str]) -> None:
    """``told`` are the logs whose reason to be left alone is told to people too."""
    early = result.early_ends
    if as_json:
        committed = [_row(each, early.get(each.step.topic_partition)) for each in result.committed]
        left_alone = {**result.plan.left_alone, **told}
        print_json({"run_id": result.run_id, "committed": committed, "left_alone": left_alone}, result.failed)
    else:
        is_begun = any(error.live_legs for error in result.failed.values())
        not_done = "no clean came to its end" if is_begun else "nothing was cleaned"
        empty = not_done if result.failed else "nothing to do"
        print_table([_shown(each) for each in result.committed], empty=empty, expendable=_GO_FIRST)
        for topic_partition, end in early.items():
            click.echo(harmless(f"{topic_partition}: {end}"))
        for name, reason in told.items():
            click.echo(harmless(f"{name}: left alone, {reason}"))
    exit_if_failed(result.failed)
