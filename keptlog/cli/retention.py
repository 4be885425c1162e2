"""``keptlog retain`` and ``delete-records``: what goes from the head of a log, whatever its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import log_words_argument, logs_argument
from keptlog.cli.asking import confirm, dry_run_option, is_asked, yes_option
from keptlog.cli.opening import home_with, home_with_logs
from keptlog.cli.output import (
    as_columns,
    clock_ms,
    exit_if_failed,
    json_option,
    print_json,
    print_table,
    require_topics_here,
    run_id_option,
)
from keptlog.errors import InvalidConfig
from keptlog.home import new_id
from keptlog.log.given.plain_number import plain_number
from keptlog.log.segment import total_bytes
from keptlog.log.steps import Retain
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.log.words.harmless import harmless
from keptlog.log.words.units import size
from keptlog.passes.names import named_logs, refuse_unknown

if TYPE_CHECKING:
    from keptlog.passes.retain import RetentionResult
    from keptlog.table.store import LogStore


@click.command(short_help="Remove old segments, by retention.ms and .bytes.")
@logs_argument
@run_id_option
@json_option
def retain(names: Sequence[str], run_id: str | None, *, as_json: bool) -> None:
    """Remove old segments from these logs; from all without a name.

    Where cleanup.policy has delete, retention.ms and retention.bytes say what is old. In all logs, what lies wholly
    below the log start goes too. Whole segments go, from the oldest on, and the log start offset moves. Their files are
    deleted by a later purge.
    """
    home = home_with_logs(names)
    require_topics_here()
    named = named_logs(home.store, names)
    refuse_unknown(named.unreadable)
    result = home.retainer.retain(named, run_id or new_id(), now_ms=clock_ms())
    if as_json:
        print_json(
            {
                "run_id": result.run_id,
                "committed": [_row(step) for step in result.committed],
                "left_alone": result.plan.left_alone,
            },
            result.failed,
        )
    else:
        _print(result, show_left_alone=bool(names))
    exit_if_failed(result.failed)


@click.command("delete-records", short_help="Delete the records of one log before an offset.")
@log_words_argument
@click.argument("offset", type=click.IntRange(-1))
@run_id_option
@dry_run_option
@yes_option
@json_option
def delete_records(  # noqa: PLR0913
    place: Sequence[str], offset: int, run_id: str | None, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Delete the records of one log before OFFSET, or all of them if it is -1, whatever the cleanup.policy.

    Nobody reads them from now on. Segments that lie wholly before OFFSET go at once. The segment that holds OFFSET goes
    later, as a whole: until then it holds them, and the answer says so. On a terminal it says what it would delete, and
    asks. What is appended while it asks stays.

    \b
    keptlog delete-records users-0 42
    keptlog delete-records users 0 -- -1

    With --run-id it can be repeated: "all of them" then means those of the first time.
    """
    log = log_named(place)
    store = home_with(log.topic).store
    topic_id: str | None = None
    if dry_run or is_asked(yes=yes):
        # -1 is Kafka's "all there are". Whoever is asked agrees to what he is shown, and not to what comes after that.
        topic_id, offset, preview = _preview(store, log, offset, run_id)
        if dry_run:
            _tell_preview(preview, as_json=as_json)
            return
        click.echo(_previewed(preview), err=True)
        confirm("delete these records for good?")
    deleted = store.delete_records(log, offset, run_id, topic_id)
    if as_json:
        row = {
            "topic_partition": str(deleted.topic_partition),
            "log_start_offset": deleted.log_start_offset,
            "segments": deleted.segments,
            "bytes": deleted.bytes,
            "held_files": [asdict(file) for file in deleted.held],
        }
        print_json(row | {"run_id": deleted.run_id, "is_repeated": deleted.is_repeated})
        return
    went = f"{counted(deleted.segments, 'segment')} ({size(deleted.bytes)}) went"
    if deleted.is_repeated:
        before = f"before offset {deleted.log_start_offset} of {deleted.topic_partition}"
        click.echo(f"run {deleted.run_id} has deleted {before} already; then {went}")
    else:
        click.echo(f"{deleted.topic_partition} begins at offset {deleted.log_start_offset} now; {went}")
    from keptlog.table.removal.held import held_lines  # noqa: PLC0415  # it is there: the deletion was made with it

    for line in held_lines(deleted.held):
        click.echo(line)


def log_named(place: Sequence[str]) -> TopicPartition:
    """The log that one or two words mean.

    A bare topic is none, also if it has a single log: who forgets the partition would give the offset in its place.

    Raises:
        InvalidConfig: they mean no log.
    """
    unlike = f"{' '.join(place)!r} is no log: write users-0 or users 0, and then the offset"
    if len(place) == 1:
        try:
            return TopicPartition.parse(place[0])
        except InvalidConfig:
            raise InvalidConfig(unlike) from None
    topic, partition, *more = place
    number = plain_number(partition)
    if more or number is None:
        raise InvalidConfig(unlike)
    return TopicPartition(topic, number)


def _preview(
    store: LogStore, name: TopicPartition, offset: int, run_id: str | None
) -> tuple[str, int, Mapping[str, object]]:
    """Of which topic, by its id, before which offset, and what would go; it is refused where the deletion would be."""
    from keptlog.table.changes.retain import DeleteRecords, what_goes  # noqa: PLC0415  # only who asks for a preview needs them
    from keptlog.table.commits.topics import require_partition  # noqa: PLC0415

    store.require_writable()
    topic = store.describe_topic(name.topic)
    require_partition(topic, name.partition)
    log = store.logs(name.topic)[name.partition]
    is_done = run_id is not None and DeleteRecords(name, offset, run_id, is_new_run=False).has_landed(store.committer)
    start, gone = (log.log_start_offset, ()) if is_done else what_goes(log, offset)
    preview: dict[str, object] = {
        "topic_partition": str(name),
        "log_start_offset": start,
        "segments": len(gone),
        "bytes": total_bytes(gone),
        "log_start_offset_before": log.log_start_offset,
    }
    return topic.id, start, preview


def _tell_preview(preview: Mapping[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json({"is_dry_run": True} | dict(preview))
    else:
        click.echo(_previewed(preview))


def _previewed(preview: Mapping[str, object]) -> str:
    before, start = preview["log_start_offset_before"], preview["log_start_offset"]
    if before == start:
        return f"{preview['topic_partition']} begins at offset {start} already: nothing would be deleted"
    gone = f"{counted(int(str(preview['segments'])), 'segment')} ({size(int(str(preview['bytes'])))}) would go"
    return f"{preview['topic_partition']} would begin at offset {start} instead of {before}; {gone}"


def _print(result: RetentionResult, *, show_left_alone: bool) -> None:
    rows = [_row(step) for step in result.committed]
    empty = "nothing was removed" if result.failed else "nothing is old"
    print_table([as_columns(row | {"bytes": size(int(str(row["bytes"])))}) for row in rows], empty=empty)
    for name, reason in result.plan.left_alone.items() if show_left_alone else ():
        click.echo(harmless(f"{name}: left alone, {reason}"))


def _row(step: Retain) -> dict[str, object]:
    return {
        "topic_partition": str(step.topic_partition),
        "segments": len(step.segments),
        "records": sum(segment.record_count for segment in step.segments),
        "bytes": total_bytes(step.segments),
        "log_start_offset_before": step.log_start_offset,
        "log_start_offset": step.new_log_start_offset,
    }
