"""``keptlog truncate``: what goes from the end of a log that is ingested, to be read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import log_words_argument
from keptlog.cli.asking import confirm, dry_run_option, is_asked, yes_option
from keptlog.cli.opening import home_with
from keptlog.cli.output import json_option, print_json, run_id_option
from keptlog.cli.retention import log_named
from keptlog.home import new_id
from keptlog.log.words.counted import counted

if TYPE_CHECKING:
    from keptlog.table.changes.truncate import TruncationResult


@click.command(short_help="Remove the end of an ingested log, to read it again.")
@log_words_argument
@click.argument("offset", type=click.IntRange(0))
@run_id_option
@dry_run_option
@yes_option
@json_option
def truncate(  # noqa: PLR0913
    place: Sequence[str], offset: int, run_id: str | None, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Remove the records of one ingested log from OFFSET on, so that the next ingest reads them again.

    The log then ends behind the last record that is left. It is for a log that ends beyond its source: the source was
    cut off, or a damaged file was taken for records at offsets that never were. On a terminal it says what it would
    remove, and asks.

    \b
    keptlog truncate users-0 120

    A log that is cleaned beyond OFFSET can't be truncated, nor one of a topic in which keys were erased.

    With --run-id it can be repeated: what was read again meanwhile does not go a second time.
    """
    name = log_named(place)
    store = home_with(name.topic).store
    from keptlog.table.changes.truncate import Truncation  # noqa: PLC0415  # the help of all commands opens no catalog

    store.require_writable()
    truncation = Truncation(name, offset, run_id or new_id(), new_id, is_new_run=run_id is None)
    if dry_run or is_asked(yes=yes):
        preview = truncation.preview(store.committer, store.files)
        if dry_run:
            _tell(preview, truncation.run_id, is_dry_run=True, as_json=as_json)
            return
        if preview.is_repeated:
            _tell(preview, truncation.run_id, as_json=as_json)
            return
        click.echo(_told(preview, "would end"), err=True)
        confirm("remove these records, to be read again?")
    _tell(truncation.commit(store.committer, store.files), truncation.run_id, as_json=as_json)


def _tell(result: TruncationResult, run_id: str, *, is_dry_run: bool = False, as_json: bool) -> None:
    is_done = result.is_repeated or not is_dry_run
    if not as_json:
        before = f"run {run_id} has truncated it before: " if result.is_repeated else ""
        click.echo(before + _told(result, "ends" if is_done else "would end"))
        return
    row = asdict(result) | {"topic_partition": str(result.topic_partition)}
    print_json(row | ({"is_dry_run": True} if is_dry_run else {"run_id": run_id}))


def _told(result: TruncationResult, verb: str) -> str:
    before, end = result.log_end_offset_before, result.log_end_offset
    if before == end:
        return f"{result.topic_partition} ends at offset {end}: there is nothing to remove"
    went = f"{counted(result.records, 'record')} {'would go' if verb == 'would end' else 'went'}"
    return f"{result.topic_partition} {verb} at offset {end} instead of {before}; {went}"
