"""``keptlog append``: records from files, all files of the call or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from keptlog.cli.arguments import complete_topic, not_empty, topic_argument
from keptlog.cli.asking import is_piped
from keptlog.cli.opening import refuse_unknown_topics
from keptlog.cli.output import clock_ms, json_option, print_json, progress_to_stderr, quiet_option, run_id_option
from keptlog.cli.own_process import if_append_stopped
from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.home import new_id, open_home
from keptlog.interrupted import if_stopped
from keptlog.log.record import NewRecord
from keptlog.log.source import SourceIdentity
from keptlog.log.words.counted import counted
from keptlog.log.words.units import size
from keptlog.sources.files import STDIN, FileSet, Reading, files_below
from keptlog.sources.formats import Format
from keptlog.sources.row_fields import ROW_FIELDS

if TYPE_CHECKING:
    from keptlog.ingest.offset_files import FileIngest, FileIntake
    from keptlog.table.changes.append import AppendResult
    from keptlog.table.store import LogStore

_WITH_OFFSETS_STOPPED = "stopped; append all files again with --skip-existing, which leaves out what is there by then"
_SUMS = ("records", "skipped", "bytes")


class How(TypedDict):
    """The options that say how files are read."""

    form: str | None
    columns: Sequence[str]
    key_fields: str | None
    tables: str | None
    rows_only: bool
    accept_unavailable: bool
    unavailable_value_placeholder: Sequence[str]
    partition: int | None


@click.command(short_help="Append records of files: JSON lines, Parquet, Debezium.")
@topic_argument
@click.option(
    "--file",
    "paths",
    type=click.Path(exists=True, readable=True, allow_dash=True),
    multiple=True,
    help="A file, or a folder of files; - is standard input, and so is what is piped without --file. May be repeated: "
    "all go in together, in this order. Files of a folder go in by name, part-2 before part-10; a shell's * gives "
    "part-10 first.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([each.value for each in Format]),
    help="What the files hold; by default .parquet tells, and all others are JSON lines.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=NAME",
    help=f"Parquet: the column for a field ({', '.join(ROW_FIELDS)}); no NAME for none. May be repeated.",
)
@click.option(
    "--key-field",
    "key_fields",
    metavar="NAME[,NAME]",
    callback=not_empty,
    help="Debezium: the key's columns, if events have none.",
)
@click.option(
    "--table",
    "tables",
    metavar="PATTERN",
    callback=not_empty,
    help="Debezium: take the events of one table (users, eu.users), or of several ('shop.*'), and no others.",
)
@click.option(
    "--rows-only", is_flag=True, help="Debezium: leave out heartbeats, schema changes, transaction marks and messages."
)
@click.option(
    "--accept-unavailable", is_flag=True, help="Debezium: take rows that lack a large value, because it did not change."
)
@click.option(
    "--unavailable-value-placeholder",
    multiple=True,
    metavar="TEXT",
    help="Debezium: what stands for such a value, if the connector was given its own. May be repeated.",
)
@click.option("--partition", type=click.IntRange(0), help="The partition of records that name none.")
@click.option(
    "--source-topic",
    metavar="NAME",
    callback=not_empty,
    help="With offsets: the topic that they are from. TOPIC by default.",
    shell_complete=complete_topic,
)
@click.option("--skip-existing", is_flag=True, help="With offsets: leave out records that are there already.")
@run_id_option
@json_option
@quiet_option
def append(  # noqa: PLR0913
    topic: str,
    paths: Sequence[str],
    *,
    source_topic: str | None,
    skip_existing: bool,
    run_id: str | None,
    as_json: bool,
    quiet: bool,
    **how: Unpack[How],
) -> None:
    """Append the records of files to TOPIC, all of them or none.

    JSON lines have one object a line. timestamp (ms) and partition may be left out. A null value is a tombstone:

    \b
    {"key": "user-7", "value": "{\\"name\\": \\"Ada\\"}", "timestamp": 1700000000000}
    {"key": "user-7", "value": null}

    Bytes that are not text go into key_base64 and value_base64; headers are [{"key", "value"}].

    \b
    keptlog append users --file users.jsonl --file more.jsonl.gz
    produce-changes | keptlog append users
    keptlog append users --file export/ --column key=id --column value=document
    keptlog append users --file changes.jsonl --format debezium
    keptlog append users --file changes.jsonl --format debezium --key-field id

    One topic has the events of one table, because keys of two tables may be equal; --table chooses from several. An
    update of the key's columns is a tombstone for the old key and a record for the new one.

    Records of a Parquet file keep their offsets if the column is named. Then the topic takes no other records:

    \b
    keptlog append users --file archive/ --column offset=kafka_offset --column partition=kafka_partition

    With --run-id an append can be repeated: what has landed under that name is named, and not appended again. The id
    becomes part of file names: write no key into it. An append that keeps offsets is repeated with --skip-existing.
    """
    reading = _reading(how)
    keeps_offsets = bool(reading.columns.get("offset"))
    if not keeps_offsets and (source_topic or skip_existing):
        raise InvalidConfig(
            "--source-topic and --skip-existing are about offsets: name their column (--column offset=NAME)"
        )
    if_append_stopped(None if keeps_offsets else run_id)
    progress = progress_to_stderr(quiet=quiet)
    files = FileSet(files_below(paths or _piped()), reading, lambda each: progress(_progress(each)))
    _refuse_idle(files)
    refuse_unknown_topics(topic)
    try:
        records = _begun(files.records(), is_new=not (keeps_offsets or run_id))
        store = open_home().store
        if keeps_offsets:
            ingest = _file_ingest(store, topic, source_topic, run_id or new_id(), skip_existing=skip_existing)
            _print_intakes(ingest, ingest.ingest(files), as_json=as_json)
        else:
            _print_appended(store.append(topic, records, run_id, reading.now_ms), files.left_out, as_json=as_json)
    except InvalidRecord as error:
        raise error.reworded(f"{files.place}: {error}") from None


def _begun(records: Iterator[NewRecord], *, is_new: bool) -> Iterator[NewRecord]:
    """The same records. Of a new append the first has been read: what is wrong with it is told without the catalog.

    A repeated run asks for none.
    """
    return chain(tuple(islice(records, 1)), records) if is_new else records


def _piped() -> list[str]:
    if not is_piped():
        raise InvalidConfig("nothing to append: name a file with --file, or pipe records into this command")
    return [STDIN]


def _file_ingest(
    store: LogStore, topic: str, source_topic: str | None, run_id: str, *, skip_existing: bool
) -> FileIngest:
    from keptlog.ingest.offset_files import FileIngest  # noqa: PLC0415

    if_stopped(_WITH_OFFSETS_STOPPED)
    return FileIngest(store, topic, SourceIdentity(source_topic or topic), run_id, new_id, skip_existing)


def _reading(how: How) -> Reading:
    return Reading(
        now_ms=clock_ms(),
        format=Format(how["form"]) if how["form"] else None,
        columns=_columns(how["columns"]),
        key_fields=tuple(each.strip() for each in (how["key_fields"] or "").split(",") if each.strip()),
        tables=how["tables"],
        rows_only=how["rows_only"],
        accept_unavailable=how["accept_unavailable"],
        placeholders=tuple(how["unavailable_value_placeholder"]),
        partition=how["partition"],
    )


def _columns(options: Sequence[str]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for option in options:
        field, equals, name = option.partition("=")
        if not equals or field not in ROW_FIELDS:
            raise InvalidConfig(f"--column {option}: write FIELD=NAME, with one of {', '.join(ROW_FIELDS)} as FIELD")
        if columns.setdefault(field, name) != name:
            raise InvalidConfig(f"--column {option}: {field} is {columns[field]!r} already; name one column")
    return columns


def _refuse_idle(files: FileSet) -> None:
    """Options that would do nothing are a mistake."""
    if files.reading.columns and not any(files.is_parquet(path) for path in files.paths):
        raise InvalidConfig("--column is about Parquet files, and there is none: say --format parquet if there is")
    reading = files.reading
    given = {
        "--key-field": reading.key_fields,
        "--table": reading.tables,
        "--rows-only": reading.rows_only,
        "--accept-unavailable": reading.accept_unavailable,
        "--unavailable-value-placeholder": reading.placeholders,
    }
    idle = [option for option, value in given.items() if value]
    if idle and reading.format is not Format.DEBEZIUM:
        raise InvalidConfig(f"{idle[0]} is about Debezium's events: say --format debezium too")


def _progress(files: FileSet) -> str:
    share = files.share_read
    return f"read {counted(files.count, 'record')}" + ("" if share is None else f", {share:.0%} of the bytes")


def _print_appended(result: AppendResult, left_out: Mapping[str, int], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "topic_partition": f"{result.topic}-{each.partition}",
                "position": None,
                "base_offset": each.base_offset,
                "last_offset": each.last_offset,
                "records": each.records,
                "skipped": 0,
                "bytes": each.bytes,
            }
            for each in result.partitions
        ]
        _print_json(result.topic, result.run_id, rows, {"is_repeated": result.is_repeated, "left_out": dict(left_out)})
        return
    appended = f"appended {counted(result.records, 'record')} ({size(result.bytes)}) to {result.topic}"
    click.echo(f"run {result.run_id} has {appended} before; nothing was added now" if result.is_repeated else appended)
    for each in result.partitions:
        click.echo(f"  {result.topic}-{each.partition}: offsets {each.base_offset}..{each.last_offset}")
    for what, count in sorted(left_out.items()):
        click.echo(f"  left out: {what}, {count} x")


def _print_intakes(ingest: FileIngest, intakes: Sequence[FileIntake], *, as_json: bool) -> None:
    topic = ingest.topic
    if as_json:
        rows = [
            {
                "topic_partition": f"{topic}-{each.partition}",
                "position": each.position,
                "base_offset": each.first_offset,
                "last_offset": each.last_offset,
                "records": each.records,
                "skipped": each.skipped,
                "bytes": each.bytes,
            }
            for each in intakes
        ]
        _print_json(topic, ingest.run_id, rows, {"is_repeated": False, "left_out": {}})
        return
    records, skipped, size_bytes = (sum(getattr(each, name) for each in intakes) for name in _SUMS)
    there = f"; {skipped} were there already" if skipped else ""
    click.echo(f"appended {counted(records, 'record')} ({size(size_bytes)}) to {topic} at their own offsets{there}")
    for each in intakes:
        if each.records:
            behind = "" if each.position is None else f", behind {each.position}"
            click.echo(f"  {topic}-{each.partition}: offsets {each.first_offset}..{each.last_offset}{behind}")


def _print_json(topic: str, run_id: str, rows: Sequence[Mapping[str, Any]], more: Mapping[str, object]) -> None:
    sums = {name: sum(row[name] for row in rows) for name in _SUMS}
    print_json({"topic": topic, "run_id": run_id, **sums, "partitions": rows, **more})
