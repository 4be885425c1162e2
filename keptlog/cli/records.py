"""``keptlog read``: records out as JSON lines."""

from __future__ import annotations

import click

from keptlog.home import open_home
from keptlog.sources.json_lines import to_json


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
