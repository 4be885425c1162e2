"""``keptlog restore``: a topic's records into a file, or into a topic of a Kafka broker."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from keptlog.cli.arguments import broker_address, complete_file, complete_topic, not_empty, topic_or_log_argument
from keptlog.cli.opening import home_with
from keptlog.cli.output import clock_ms, json_option, print_json, progress_to_stderr, quiet_option, require_stdout
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig
from keptlog.home import client_settings, new_id
from keptlog.log.words.counted import counted
from keptlog.log.words.units import size
from keptlog.passes.names import topic_and_partition
from keptlog.sinks.new_file import new_file

if TYPE_CHECKING:
    from keptlog.passes.restore import RestoredLog, RestoreResult

_STDOUT = "-"
_ONLY_KAFKA = {
    "bootstrap": "--bootstrap",
    "target": "--topic",
    "append_to_existing": "--append-to-existing",
    "skip_lost": "--skip-lost",
}
_ONLY_FILES = {"latest": "--latest", "overwrite": "--overwrite", "file": "FILE"}


@dataclass(frozen=True, slots=True)
class _Options:
    """Everything after TOPIC."""

    to: Literal["kafka", "jsonl", "parquet"]
    file: str | None
    bootstrap: str | None
    target: str | None
    append_to_existing: bool
    skip_lost: bool
    latest: bool
    overwrite: bool
    as_json: bool
    quiet: bool


@click.command(short_help="Write records to a file, or to a topic of a broker.")
@topic_or_log_argument
@click.argument("file", required=False, shell_complete=complete_file)
@click.option("--to", type=click.Choice(["kafka", "jsonl", "parquet"]), required=True, help="Where the records go.")
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    callback=broker_address,
    help="kafka: the broker; default is that of kafka.properties.",
)
@click.option(
    "--topic",
    "target",
    metavar="TOPIC",
    callback=not_empty,
    help="kafka: the topic there, created if there is none; default is the same name.",
    shell_complete=complete_topic,
)
@click.option("--append-to-existing", is_flag=True, help="kafka: add to a topic that has other records.")
@click.option("--skip-lost", is_flag=True, help="kafka: go on though records or tombstones went since the last time.")
@click.option("--latest", is_flag=True, help="Files: only the latest record of each key; deleted keys are left out.")
@click.option("--overwrite", is_flag=True, help="Files: replace FILE if it exists.")
@json_option
@quiet_option
def restore(topic: str, **given: object) -> None:
    """Write the records of a topic to FILE or to a topic of a Kafka broker, with tombstones and headers, in order.

    A single log (users-0) can be written to a FILE too.

    \b
    keptlog restore users --to jsonl users.jsonl        - is standard output; keptlog append takes it back
    keptlog restore users --to parquet users.parquet
    keptlog restore users --to kafka --bootstrap localhost:9092 --topic users-restored

    A broker gets every record exactly once, in the partition of the same number: run it again after a failure, or for
    what came since, and it goes on where it was. Settings such as sasl.password come from kafka.properties in the home
    or KEPTLOG_KAFKA_SASL_PASSWORD.
    """
    options = _Options(**given)  # type: ignore[arg-type]  # click has checked them
    if options.to == "kafka":
        _refuse(options, _ONLY_FILES)
        _to_kafka(topic, options)
    else:
        _refuse(options, _ONLY_KAFKA)
        _to_file(topic, options)


def _refuse(options: _Options, names: dict[str, str]) -> None:
    """What the user gave and would be ignored."""
    for name, shown in names.items():
        if getattr(options, name):
            raise InvalidConfig(f"{shown} has no meaning with --to {options.to}: leave it out")


def _to_kafka(topic: str, options: _Options) -> None:
    from keptlog.passes.restore import Restore  # noqa: PLC0415  # files need no Kafka client

    home = home_with(topic)
    settings = client_settings(home.path).at(options.bootstrap)
    run = Restore(home.store, settings, clock_ms, progress_to_stderr(quiet=options.quiet), new_id)
    done = run.to_broker(
        topic, options.target or topic, append_to_existing=options.append_to_existing, skip_lost=options.skip_lost
    )
    if done.zero_timestamps:
        click.echo(f"keptlog: timestamp 0 was sent as 1 in {counted(done.zero_timestamps, 'record')}", err=True)
    if options.as_json:
        logs = [_log_row(done.topic, log) for log in done.logs]
        print_json(asdict(done) | {"logs": logs, "records": done.records, "bootstrap": settings.bootstrap})
    else:
        _print(done, settings.bootstrap or "")


def _log_row(topic: str, log: RestoredLog) -> dict[str, object]:
    row = asdict(log)
    return {"topic_partition": f"{topic}-{row.pop('partition')}"} | row


def _print(done: RestoreResult, bootstrap: str) -> None:
    if not done.records:
        click.echo(f"{done.target} at {bootstrap} has all of {done.topic} already")
        return
    click.echo(f"restored {counted(done.records, 'record')} of {done.topic} to {done.target} at {bootstrap}")
    for log in done.logs:
        if log.records:
            click.echo(
                f"  {done.topic}-{log.partition}: {log.records} of offsets {log.from_offset}..{log.end_offset - 1}"
            )


def _to_file(topic: str, options: _Options) -> None:
    from keptlog.passes.restore_to_file import restore_to_json_lines, restore_to_parquet  # noqa: PLC0415

    if options.file is None:
        raise InvalidConfig(f"--to {options.to} needs a FILE: keptlog restore {topic} --to {options.to} FILE")
    if options.file == _STDOUT:
        require_stdout()
    progress, store = progress_to_stderr(quiet=options.quiet), unopened_store()
    reader = store.reader(*topic_and_partition(store, topic))
    if options.file == _STDOUT:
        if options.to == "parquet" or options.as_json:
            raise InvalidConfig("only JSON lines, and nothing beside them, go to standard output: give a FILE")
        restore_to_json_lines(reader, sys.stdout.buffer, progress, latest=options.latest)
        return
    path = Path(options.file)
    with new_file(path, new_id(), overwrite=options.overwrite) as sink:
        write = restore_to_parquet if options.to == "parquet" else restore_to_json_lines
        count = write(reader, sink, progress, latest=options.latest)
    size_bytes = path.stat().st_size
    if options.as_json:
        print_json({"topic": topic, "file": str(path), "records": count, "bytes": size_bytes})
    else:
        click.echo(f"restored {counted(count, 'record')} of {topic} to {path} ({size(size_bytes)})")
