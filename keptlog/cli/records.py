"""``keptlog append`` and ``keptlog read``: records in and out as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import BinaryIO

import click

from keptlog.cli.output import clock_ms, json_option, print_json, progress_to_stderr, quiet_option, size
from keptlog.errors import InvalidRecord
from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.sources.json_lines import read_records, to_json

_PROGRESS_EVERY = 100_000


@click.command()
@click.argument("topic")
@click.option("--file", "file", type=click.File("rb"), required=True, help="JSON lines to append; - is standard input.")
@json_option
@quiet_option
def append(topic: str, file: BinaryIO, *, as_json: bool, quiet: bool) -> None:
    """Append the records of a file to TOPIC, all or none.

    One JSON object a line; timestamp (ms) and partition may be left out, null as value is a tombstone:

    \b
    {"key": "user-7", "value": "{\\"name\\": \\"Ada\\"}", "timestamp": 1700000000000}
    {"key": "user-7", "value": null}

    Bytes that are not text go into key_base64 and value_base64; headers are [{"key", "value"}].
    """
    now_ms = clock_ms()
    records = _counted(read_records(file, now_ms=now_ms), progress_to_stderr(quiet=quiet))
    try:
        result = open_home().store.append(topic, records, new_id(), now_ms)
    except InvalidRecord as error:
        raise InvalidRecord(f"{file.name}: {error}") from None
    if as_json:
        print_json({"topic": topic, "records": result.records, "bytes": result.bytes} | asdict(result))
        return
    click.echo(f"appended {result.records} records ({size(result.bytes)}) to {topic}")
    for each in result.partitions:
        click.echo(f"  {topic}-{each.partition}: offsets {each.base_offset}..{each.last_offset}")


@click.command(short_help="Print records as JSON lines; --latest for the state they tell.")
@click.argument("topic")
@click.option("--partition", type=click.IntRange(0), help="Only this partition; all of them otherwise.")
@click.option("--from-offset", type=click.IntRange(0), default=0, help="Begin at this offset.")
@click.option("--latest", is_flag=True, help="Only the latest record of each key; deleted keys are left out.")
@click.option("--json", "as_json", is_flag=True, help="Accepted as everywhere; the output is JSON lines already.")
def read(topic: str, partition: int | None, from_offset: int, *, latest: bool, as_json: bool) -> None:
    """Print the records of TOPIC as JSON lines, by partition and offset, all from one snapshot."""
    del as_json
    for number, record in open_home().store.read(topic, partition=partition, from_offset=from_offset, latest=latest):
        click.echo(to_json(number, record))


def _counted(records: Iterable[NewRecord], progress: Callable[[str], None]) -> Iterator[NewRecord]:
    for count, record in enumerate(records, start=1):
        if count % _PROGRESS_EVERY == 0:
            progress(f"read {count} records")
        yield record
