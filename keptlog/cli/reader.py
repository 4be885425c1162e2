"""``keptlog reader``: readers for whom tombstones wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import not_empty, topic_argument, topics_argument
from keptlog.cli.groups import HelpfulGroup
from keptlog.cli.opening import home_with
from keptlog.cli.output import clock_ms, exit_if_failed, json_option, print_json, print_table, require_topics_here
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig
from keptlog.log.given.plain_number import plain_number
from keptlog.log.words.iso_time import iso_time, next_time, span_from
from keptlog.log.words.units import UNLIMITED_MS, duration

if TYPE_CHECKING:
    from keptlog.passes.readers import ReaderStanding


@click.group(cls=HelpfulGroup, short_help="Register readers that tombstones wait for.")
def reader() -> None:
    """Register readers that tombstones wait for.

    A reader keeps a state of its own, and reads on from time to time (keptlog read --as-reader, or by its own means and
    `commit`). A tombstone past its delete horizon stays until every reader has met it, but for --hold-max at most.
    Then it goes, and a reader that missed it is told so when it comes back.
    """


@reader.command(short_help="Register NAME as a reader of TOPIC.")
@topic_argument
@click.argument("name")
@click.option(
    "--hold-max",
    "span",
    metavar="TIME",
    callback=not_empty,
    help="How long a tombstone waits past its delete horizon: 12h, 30d. By default 7d.",
)
@click.option("--hold-max-ms", type=int, help="The same in milliseconds.")
@click.option("--start-over", is_flag=True, help="Forget how far it has come, and what it missed: its state is empty.")
@json_option
def add(  # noqa: PLR0913
    topic: str, name: str, *, span: str | None, hold_max_ms: int | None, start_over: bool, as_json: bool
) -> None:
    """Register NAME as a reader of TOPIC; if it is one, it keeps its positions unless --start-over is given."""
    if span is not None:
        if hold_max_ms is not None:
            raise InvalidConfig("--hold-max and --hold-max-ms are one: give one of them")
        hold_max_ms = span_from(span)
    found = home_with(topic).readers.add(topic, name, hold_max_ms, now_ms=clock_ms(), start_over=start_over)
    if as_json:
        print_json({"topic": topic, "reader": name, "hold_max_ms": found.hold_max_ms})
    else:
        is_limited = found.hold_max_ms < UNLIMITED_MS
        limit = f"up to {duration(found.hold_max_ms)} past their horizon" if is_limited else "without a limit"
        click.echo(f"reader {name} of {topic}: tombstones wait for it {limit}")


@reader.command(short_help="Say how far NAME has read TOPIC.")
@topic_argument
@click.argument("name")
@click.argument("positions", metavar="PARTITION=OFFSET...", nargs=-1, required=True)
@json_option
def commit(topic: str, name: str, positions: Sequence[str], *, as_json: bool) -> None:
    """Say how far NAME has read: in each PARTITION of TOPIC, OFFSET is the next one that it reads."""
    committed = dict(map(_position, positions))
    if len(committed) < len(positions):
        raise InvalidConfig("a partition is given twice: give one offset for each")
    home_with(topic).readers.commit(topic, name, committed)
    if as_json:
        named = {f"{topic}-{partition}": offset for partition, offset in committed.items()}
        print_json({"topic": topic, "reader": name, "positions": named})
    else:
        told = ", ".join(f"{topic}-{partition} at {offset}" for partition, offset in committed.items())
        click.echo(f"reader {name}: {told}")


@reader.command("list", short_help="List readers: position, lag, and what waits for them.")
@topics_argument
@json_option
def list_readers(topics: Sequence[str], *, as_json: bool) -> None:
    """List the readers of TOPIC, or of all: position, lag, and which tombstones wait for them, until when."""
    # It comes with the rules by which logs are judged, which those who register need not wait for.
    from keptlog.passes.readers import reader_standings  # noqa: PLC0415

    require_topics_here()
    found = reader_standings(unopened_store(), topics, now_ms=clock_ms())
    if as_json:
        print_json({"readers": [_json_row(each) for each in found]}, found.failed)
    else:
        empty = "not all topics can be read" if found.failed else "no readers yet: keptlog reader add TOPIC NAME"
        print_table([_row(each) for each in found], empty=empty)
    exit_if_failed(found.failed)


@reader.command()
@topic_argument
@click.argument("name")
@json_option
def remove(topic: str, name: str, *, as_json: bool) -> None:
    """Remove reader NAME of TOPIC: nothing waits for it any more."""
    home_with(topic).readers.remove(topic, name)
    if as_json:
        print_json({"topic": topic, "reader": name})
    else:
        click.echo(f"removed reader {name} of {topic}")


def _position(text: str) -> tuple[int, int]:
    partition, offset = map(plain_number, text.partition("=")[::2])
    if partition is None or offset is None:
        raise InvalidConfig(f"{text!r} is not PARTITION=OFFSET, for example 0=500")
    return partition, offset


def _json_row(each: ReaderStanding) -> dict[str, object]:
    rest = {name: value for name, value in asdict(each).items() if name not in {"topic", "partition"}}
    return {"topic_partition": f"{each.topic}-{each.partition}"} | rest


def _row(each: ReaderStanding) -> dict[str, object]:
    since_ms, until_ms = each.holds_since_ms, each.holds_until_ms
    return {
        "topic-partition": f"{each.topic}-{each.partition}",
        "reader": each.reader,
        "position": each.position,
        "lag": each.lag,
        "hold max": duration(each.hold_max_ms),
        "holds since": iso_time(since_ms) if since_ms is not None else None,
        "at most until": next_time(until_ms).removeprefix("at ") if until_ms is not None else None,
        "missed": each.problem or each.missed,
    }
