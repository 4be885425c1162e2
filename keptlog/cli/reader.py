"""``keptlog reader``: readers for whom tombstones wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cli.output import clock_ms, exit_if_failed, json_option, print_json, print_table
from keptlog.errors import InvalidConfig
from keptlog.home import open_home
from keptlog.log.iso_time import iso_time, next_time

if TYPE_CHECKING:
    from keptlog.passes.readers import ReaderStanding


@click.group(short_help="Register readers, for whom tombstones wait.")
def reader() -> None:
    """Register readers, for whom tombstones wait.

    A reader keeps a state of its own, and reads on from time to time (keptlog read --as-reader, or by its own means and
    `commit`). No tombstone goes by its delete horizon before every reader has met it, but at most --hold-max-ms later:
    then it goes, and the reader is told when it comes back.
    """


@reader.command()
@click.argument("topic")
@click.argument("name")
@click.option("--hold-max-ms", type=int, help="How long after its delete horizon a tombstone waits; default: 7 days.")
@click.option("--start-over", is_flag=True, help="Forget how far it has come, and what it missed: its state is empty.")
@json_option
def add(topic: str, name: str, hold_max_ms: int | None, *, start_over: bool, as_json: bool) -> None:
    """Register reader NAME of TOPIC; one that is registered keeps its positions, unless it is to start over."""
    found = open_home().readers.add(topic, name, hold_max_ms, now_ms=clock_ms(), start_over=start_over)
    if as_json:
        print_json({"topic": topic, "reader": name, "hold_max_ms": found.hold_max_ms})
    else:
        click.echo(f"reader {name} of {topic}: tombstones wait for it up to {found.hold_max_ms} ms past their horizon")


@reader.command()
@click.argument("topic")
@click.argument("name")
@click.argument("positions", metavar="PARTITION=OFFSET...", nargs=-1, required=True)
@json_option
def commit(topic: str, name: str, positions: Sequence[str], *, as_json: bool) -> None:
    """Say that NAME has read TOPIC up to OFFSET, which is the next one that it reads, in each PARTITION."""
    committed = dict(map(_position, positions))
    if len(committed) < len(positions):
        raise InvalidConfig("a partition is given twice: give one offset for each")
    open_home().readers.commit(topic, name, committed)
    if as_json:
        print_json({"topic": topic, "reader": name, "positions": committed})
    else:
        told = ", ".join(f"{topic}-{partition} at {offset}" for partition, offset in committed.items())
        click.echo(f"reader {name}: {told}")


@reader.command("list")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@json_option
def list_readers(topics: Sequence[str], *, as_json: bool) -> None:
    """List the readers of TOPIC, or of all: position, lag, and which tombstones wait for them, until when."""
    found = open_home().readers.list(topics, now_ms=clock_ms())
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        empty = "not all topics can be read" if found.failed else "no readers yet: keptlog reader add TOPIC NAME"
        print_table([_row(each) for each in found], empty=empty)
    exit_if_failed(found.failed)


@reader.command()
@click.argument("topic")
@click.argument("name")
@json_option
def remove(topic: str, name: str, *, as_json: bool) -> None:
    """Remove reader NAME of TOPIC: nothing waits for it any more."""
    open_home().readers.remove(topic, name)
    if as_json:
        print_json({"topic": topic, "reader": name})
    else:
        click.echo(f"removed reader {name} of {topic}")


def _position(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition("=")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise InvalidConfig(f"{text!r} is not PARTITION=OFFSET, for example 0=500")
    return int(partition), int(offset)


def _row(each: ReaderStanding) -> dict[str, object]:
    since_ms, until_ms = each.holds_since_ms, each.holds_until_ms
    return {
        "topic-partition": f"{each.topic}-{each.partition}",
        "reader": each.reader,
        "position": each.position,
        "lag": each.lag,
        "hold max ms": each.hold_max_ms,
        "holds since": iso_time(since_ms) if since_ms is not None else None,
        "at most until": next_time(until_ms).removeprefix("at ") if until_ms is not None else None,
        "missed": each.problem or each.missed,
    }
