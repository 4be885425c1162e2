"""``keptlog erase`` and ``keptlog erasure``: ask that keys be erased from topics by a time, and see how far that is."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence

import click

from keptlog.cli.arguments import complete_file, not_empty, some_topics_argument, topics_argument
from keptlog.cli.asking import consent_option, dry_run_option, require_consent
from keptlog.cli.erase_keys import FORMATS, given_keys
from keptlog.cli.erase_proposal import proposal_lines, proposal_row
from keptlog.cli.erasure_table import print_erasures
from keptlog.cli.groups import HelpfulGroup
from keptlog.cli.opening import home_with
from keptlog.cli.output import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    clock_ms,
    exit_if_copied,
    exit_if_failed,
    json_option,
    print_json,
    progress_to_stderr,
    quiet_option,
    require_topics_here,
    run_id_option,
    tell_read_only,
)
from keptlog.cli.receipt_text import some_lines
from keptlog.cli.unopened import unopened_store
from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.home import new_id, open_home
from keptlog.log.erasures.erasure import Erasure, ErasureWay
from keptlog.log.erasures.receipt_id import receipt_id
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time, time_from
from keptlog.passes.erasures.erasure_request import (
    NOTHING_ASKED,
    ErasureList,
    ErasureProposal,
    ErasureRequest,
    ErasureResult,
    ErasureRow,
    refuse_unknown_ids,
)


@click.command(short_help="Ask that all records of some keys be gone by a time.")
@some_topics_argument
@click.option("--key", "texts", multiple=True, metavar="TEXT", help="A key. May be repeated.")
@click.option("--key-hex", "hexes", multiple=True, metavar="HEX", help="A key as hex. May be repeated.")
@click.option("--key-base64", "base64s", multiple=True, metavar="BASE64", help="A key as base64. May be repeated.")
@click.option(
    "--key-hash", "hashes", multiple=True, metavar="HASH", help="A key, as --hash prints it. May be repeated."
)
@click.option(
    "--keys",
    "path",
    metavar="FILE",
    help="A file of keys, one a line; - is standard input.",
    shell_complete=complete_file,
)
@click.option("--keys-format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Of --keys.")
@click.option(
    "--by",
    metavar="TIME",
    callback=not_empty,
    help="The deadline: 2026-12-01T00:00Z, or 30d. By default what a topic promises.",
)
@click.option("--reason", default="", metavar="TEXT", help="Stored with the request, and shown; no key in it.")
@click.option("--here", "is_here", is_flag=True, help="Ingested topics: drop the records here at once.")
@consent_option
@dry_run_option
@click.option("--hash", "only_hash", is_flag=True, help="Only print the keyed hashes of the keys; no TOPIC.")
@run_id_option
@json_option
@quiet_option
def erase(  # noqa: PLR0913
    topics: Sequence[str],
    texts: Sequence[str],
    hexes: Sequence[str],
    base64s: Sequence[str],
    hashes: Sequence[str],
    *,
    path: str | None,
    form: str,
    by: str | None,
    reason: str,
    is_here: bool,
    yes: bool,
    dry_run: bool,
    only_hash: bool,
    run_id: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Ask that no record of the keys, as the TOPICs stand now, is anywhere in them from the deadline on.

    \b
    keptlog erase users orders --key user-7 --by 30d --reason "request 4711"
    keptlog erase users --keys leavers.txt --yes

    Keys are not stored: a topic remembers their keyed hashes, made with the secret in the home (erasure.secret, or
    KEPTLOG_ERASURE_SECRET). What is on a command line may be seen by others: --keys - reads from standard input.

    With --run-id a request can be repeated. `keptlog erasure list` tells how far it is, `erasure verify` proves it.
    """
    now_ms = clock_ms()
    options = (("text", texts), ("hex", hexes), ("base64", base64s), ("hash", hashes))
    keys = given_keys(options, path, form)
    if only_hash:
        require_topics_here()
    home = home_with(*topics, besides=NOTHING_ASKED)
    if only_hash:
        _print_hashes([home.eraser.hash_of(key) for key in keys.keys], topics, as_json=as_json)
        return
    request = ErasureRequest(
        id=run_id or new_id(),
        topics=topics,
        keys=keys.keys,
        key_hashes=keys.key_hashes,
        deadline_ms=time_from(by, now_ms) if by else None,
        reason=reason,
        is_here=is_here,
    )
    proposal = home.eraser.propose(request, now_ms=now_ms, is_new=run_id is None)
    if dry_run or not as_json:
        _print_proposal(proposal, as_json=as_json)
    if dry_run:
        exit_if_failed(proposal.failed, _code_of(proposal.failed, proposal.topics))
        return
    if not yes:
        _confirm(proposal, is_stdin_taken=path == "-")
    result = home.eraser.request(proposal, now_ms=now_ms, progress=progress_to_stderr(quiet=quiet))
    _print_result(result, as_json=as_json)
    exit_if_failed(result.failed, _code_of(result.failed, result.erasures))


@click.group(cls=HelpfulGroup, short_help="See how far erasures are, and prove that all is gone.")
def erasure() -> None:
    """See how far erasures are, and prove that nothing is left."""


@erasure.command("list", short_help="List erasures: how far each is, and what keeps it.")
@topics_argument
@click.option("--open", "only_open", is_flag=True, help="Only those that have not ended.")
@click.option("--overdue", "only_overdue", is_flag=True, help="Only those that are open behind their deadline.")
@json_option
def list_erasures(topics: Sequence[str], *, only_open: bool, only_overdue: bool, as_json: bool) -> None:
    """List the erasures of all topics, or of these: how far each is, by when it is to be done, and what keeps it.

    What was found out is remembered. Exit code 1 if one is overdue, if one is open whose topic's table another program
    has dropped, or if the home is a copy: it does not know what came since.
    """
    now_ms = clock_ms()
    require_topics_here()
    found = _known(topics, now_ms)
    rows, empty = found.rows, "no erasures"
    if only_open:
        rows, empty = tuple(row for row in rows if row.erasure.is_open), "no erasure is open"
    if only_overdue:
        rows, empty = tuple(found.overdue(now_ms)), "no erasure is overdue"
    _print_list(ErasureList(rows, found.failed), now_ms, as_json=as_json, empty=empty)


@erasure.command(short_help="Show one erasure: its states, bounds and key hashes.")
@click.argument("erasure_id", metavar="ID")
@json_option
def show(erasure_id: str, *, as_json: bool) -> None:
    """Show one erasure in all its topics: each state with its time, its bounds and the hashes of its keys."""
    now_ms = clock_ms()
    require_topics_here()
    found = _known((), now_ms, [erasure_id])
    try:
        refuse_unknown_ids([erasure_id], found)
    except InvalidConfig as error:
        exit_if_copied(unopened_store().copied, error, as_json=as_json)
        raise
    if as_json:
        print_json({"erasures": [_row(row, now_ms) | _details(row) for row in found.rows]}, found.failed)
    else:
        for row in found.rows:
            for line in _shown_lines(row, now_ms):
                click.echo(line)
    _end(found, now_ms)


@erasure.command(short_help="Look through every file for the keys, on Spark.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@json_option
@quiet_option
def verify(ids: Sequence[str], *, as_json: bool, quiet: bool) -> None:
    """Look through every file for the keys of these erasures, or of all that are deleted, on Spark.

    An erasure of which nothing is found is verified, and has ended. One that is not so far yet is named, and left as it
    is. Exit code 1 if a record was found, a file could not be looked through, something else keeps an erasure from
    going on, or one is overdue.
    """
    now_ms = clock_ms()
    require_topics_here()
    found = open_home().eraser.verify(ids, now_ms=now_ms, progress=progress_to_stderr(quiet=quiet))
    rows = tuple(row for row in found.rows if not ids or row.id in ids)
    _print_list(ErasureList(rows, found.failed), now_ms, as_json=as_json)
    # One of no key is not open, and no proof either for who asks for it by its name.
    if any(row.blocked and (row.erasure.is_open or row.id in ids) for row in rows):
        sys.exit(EXIT_FAILED)


def _known(topics: Sequence[str], now_ms: int, ids: Sequence[str] = ()) -> ErasureList:
    """As an eraser lists them."""
    from keptlog.passes.erasures.ended_erasures import only_ended  # noqa: PLC0415  # who asks for one needs none of it

    return only_ended(unopened_store(), topics, ids) or open_home().eraser.list(topics, ids=ids, now_ms=now_ms)


def _code_of(failed: Mapping[str, KeptlogError], asked: Collection[str]) -> int:
    """What a request that failed ends with: one that no topic accepts, as it is given, is bad input."""
    is_input = not asked and all(isinstance(each, InvalidConfig) for each in failed.values())
    return EXIT_BAD_INPUT if is_input else EXIT_FAILED


def _confirm(proposal: ErasureProposal, *, is_stdin_taken: bool) -> None:
    if all(each.is_repeated for each in proposal.topics.values()):
        return
    if is_stdin_taken:
        raise InvalidConfig("--keys - takes standard input, so nobody can be asked: give --yes")
    require_consent(f"erase {counted(proposal.key_count, 'key')} for good?")


def _print_hashes(hashes: Sequence[str], topics: Sequence[str], *, as_json: bool) -> None:
    if topics:
        raise InvalidConfig("--hash only prints hashes, which are the same for all topics: leave TOPIC out")
    if not hashes:
        raise InvalidConfig("there is no key to hash: give one")
    if as_json:
        print_json({"key_hashes": list(hashes)})
    else:
        click.echo("\n".join(hashes))


def _print_proposal(proposal: ErasureProposal, *, as_json: bool) -> None:
    if as_json:
        print_json(proposal_row(proposal), proposal.failed)
        return
    for line in proposal_lines(proposal):
        click.echo(line)


def _print_result(result: ErasureResult, *, as_json: bool) -> None:
    if as_json:
        topics = {
            name: {"state": each.state.value, "way": each.way, "deadline_ms": each.deadline_ms}
            | {"tombstones": _appended(each), "is_repeated": name in result.repeated}
            for name, each in result.erasures.items()
        }
        print_json({"id": result.id, "topics": topics}, result.failed)
        return
    for name, each in result.erasures.items():
        again = " before" if name in result.repeated else ""
        # A key may be in any log where records name their partitions: what is appended is not told by the keys.
        count = 0 if again else _appended(each)
        told = f", {counted(count, 'tombstone')} appended" if count else ""
        click.echo(f"{name}: asked for{again}, {each.state}{told}")
    if result.erasures:
        click.echo(f"keptlog erasure show {result.id} tells how far it is")


def _appended(erasure: Erasure) -> int:
    """How many tombstones the request has appended."""
    return erasure.tombstone_count if erasure.way == ErasureWay.TOMBSTONE else 0


def _print_list(found: ErasureList, now_ms: int, *, as_json: bool, empty: str = "no erasures") -> None:
    if as_json:
        print_json({"erasures": [_row(row, now_ms) for row in found.rows]}, found.failed)
    else:
        empty = "not all erasures can be looked at" if found.failed else empty
        print_erasures(found.rows, now_ms, empty=empty)
    _end(found, now_ms)


def _end(found: ErasureList, now_ms: int) -> None:
    """A copy fails: nobody has asked it for what was erased since, and it takes for open what is done."""
    copied = unopened_store().copied
    tell_read_only(copied, found.failed)
    exit_if_failed(found.failed)
    if copied or found.overdue(now_ms):
        sys.exit(EXIT_FAILED)


def _row(row: ErasureRow, now_ms: int) -> dict[str, object]:
    erasure = row.erasure
    return {
        "id": row.id,
        "topic": row.topic,
        "keys": len(erasure.key_hashes),
        "way": erasure.way,
        "state": erasure.state.value,
        "states": {each.state: each.at_ms for each in erasure.reached},
        "next_ms": row.next_ms if erasure.is_open else None,
        "deadline_ms": erasure.deadline_ms,
        "is_overdue": erasure.is_overdue(now_ms),
        "delay_ms": erasure.delay_ms(now_ms),
        "blocked": list(row.blocked),
        "reason": erasure.reason,
    }


def _details(row: ErasureRow) -> dict[str, object]:
    erasure = row.erasure
    return {
        "key_hashes": list(erasure.key_hashes),
        "secret_fingerprint": erasure.fingerprint,
        "bounds": [
            {
                "topic_partition": f"{row.topic}-{each.partition}",
                "end_offset": each.end_offset,
                "key_hash": each.key_hash or None,
            }
            for each in erasure.bounds
        ],
        "receipt": _receipt_of(row),
    }


def _receipt_of(row: ErasureRow) -> str | None:
    """The id of its receipt, which was sealed before it was called verified."""
    if row.erasure.ended_ms is None:
        return None
    return receipt_id(str(unopened_store().load_table(row.topic).metadata.table_uuid), row.erasure)


def _shown_lines(row: ErasureRow, now_ms: int) -> list[str]:
    erasure = row.erasure
    lines = [f"{row.id} in {row.topic}: {counted(len(erasure.key_hashes), 'key')}, by {erasure.way}, {erasure.state}"]
    lines += [f"  {each.state:<13}{iso_time(each.at_ms)}" for each in erasure.reached]
    if upcoming := row.next_told(now_ms):
        kept_by = row.kept_by(now_ms)
        lines.append(f"  next         {upcoming}{f', for {kept_by}' if kept_by else ''}")
    overdue = " OVERDUE" if erasure.is_overdue(now_ms) else ""
    lines.append(f"  deadline     {_time(erasure.deadline_ms) or 'none'}{overdue}")
    if erasure.reason:
        lines.append(f"  reason       {erasure.reason}")
    bounds = [
        f"{row.topic}-{each.partition} below offset {each.end_offset}"
        + (f" for {erasure.fingerprint}:{each.key_hash}" if each.key_hash else "")
        for each in erasure.bounds
    ]
    lines += some_lines(bounds, "  bound        ")
    lines += some_lines([f"{erasure.fingerprint}:{each}" for each in erasure.key_hashes], "  key          ")
    lines += [f"  blocked      {text}" for text in row.blocked]
    if receipt := _receipt_of(row):
        lines.append(f"  receipt      keptlog receipt show {receipt}")
    return lines


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else iso_time(time_ms)
