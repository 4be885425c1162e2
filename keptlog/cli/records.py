"""``keptlog read``: records out as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from keptlog.cli.arguments import not_empty, topic_or_log_argument
from keptlog.cli.opening import home_with
from keptlog.cli.output import answer_is_no_document, clock_ms, require_stdout
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig
from keptlog.log.record import Record
from keptlog.passes.names import topic_and_partition
from keptlog.sources.json_lines import to_json


@click.command(short_help="Print records as JSON lines, or the state: --latest.")
@topic_or_log_argument
@click.option("--partition", type=click.IntRange(0), help="Only this partition; all of them otherwise.")
@click.option("--from-offset", type=click.IntRange(0), help="Begin at this offset.")
@click.option("--latest", is_flag=True, help="Only the latest record of each key; deleted keys are left out.")
@click.option(
    "--as-reader",
    metavar="NAME",
    callback=not_empty,
    help="Go on where this registered reader is, and move it at the end.",
)
@click.option("--start-over", is_flag=True, help="With --as-reader: from the beginning, into an empty state.")
@click.option("--json", "as_json", is_flag=True, help="Accepted as everywhere; the output is JSON lines already.")
def read(topic: str, as_reader: str | None, *, start_over: bool, as_json: bool, **where: Any) -> None:
    """Print the records of a topic, or of one of its logs, as JSON lines.

    They come by partition and offset, all from one snapshot.

    With --as-reader (see keptlog reader add) they are those behind the reader's positions, tombstones too. The
    positions move once all of them were printed. A reader that missed deletions gets an error, and no records; one
    that has never read begins all the same.
    """
    del as_json
    require_stdout()
    store = unopened_store()
    topic, partition = topic_and_partition(store, topic)
    if partition is not None:
        if where["partition"] not in {None, partition}:
            raise InvalidConfig(f"{topic}-{partition} is one partition, and --partition another: leave one of them out")
        where["partition"] = partition
    if as_reader:
        if where["latest"] or where["from_offset"] is not None:
            raise InvalidConfig(
                "--as-reader goes on where the reader is, tombstones included: leave out --latest and --from-offset"
            )
        _read_on(topic, as_reader, where["partition"], start_over=start_over)
        return
    if start_over:
        raise InvalidConfig("--start-over has no meaning without --as-reader NAME")
    from_offset = where["from_offset"] or 0
    _print(store.read(topic, **where | {"from_offset": from_offset}))


def _read_on(topic: str, name: str, partition: int | None, *, start_over: bool) -> None:
    readers = home_with(topic).readers
    if start_over:
        if partition is not None:
            raise InvalidConfig("--start-over begins anew in all partitions: leave out --partition")
        readers.require(topic, name)
        readers.add(topic, name, now_ms=clock_ms(), start_over=True)
    # What was not taken is printed again.
    _print(readers.read(topic, name, partition, taken=sys.stdout.flush))


def _print(records: Iterable[tuple[int, Record]]) -> None:
    """By partition; not flushed one by one, as click does, which takes more than all the rest."""
    for number, record in records:
        answer_is_no_document()
        sys.stdout.write(f"{to_json(number, record)}\n")
