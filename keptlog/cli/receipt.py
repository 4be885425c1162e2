"""``keptlog receipt``: what was deleted for good, signed and in one chain, for whoever has to prove it.

``verify FILE…`` needs nothing but the files and a public key: it opens no home and no catalog, and imports nothing that
could (``tests/cli/test_receipt.py``). All else asks the home.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import complete_topic, not_empty
from keptlog.cli.groups import HelpfulGroup
from keptlog.cli.output import (
    EXIT_FAILED,
    answer_is_no_document,
    exit_if_copied,
    exit_if_failed,
    json_option,
    print_json,
    print_table,
    require_topics_here,
    tell_read_only,
)
from keptlog.cli.receipt_text import bytes_of, files_of, lines_of, tells_files
from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.units import size
from keptlog.receipts.chain import ChainVerification, Finding, Flaw, verify_chain
from keptlog.receipts.folder import taken_for_receipts
from keptlog.receipts.key_files import PUBLIC_FILE, public_key_files, public_keys, trusted_keys
from keptlog.settings import home_path

if TYPE_CHECKING:
    from keptlog.passes.receipts import Receipts
    from keptlog.receipts.receipt import Receipt
    from keptlog.receipts.signing import PublicKey
    from keptlog.table.chain.sealed_receipts import SealedReceipts

_existing = click.Path(exists=True, path_type=Path)


@click.group(cls=HelpfulGroup, short_help="List, show, verify, export receipts of what was deleted.")
def receipt() -> None:
    """Receipts say what was deleted for good, when and why. They are signed, and each names the one before it."""


@receipt.command(name="list", short_help="List all receipts, or those of a topic.")
@click.option(
    "--topic",
    metavar="TOPIC",
    callback=not_empty,
    help="Only those of this topic, also if it is deleted by now.",
    shell_complete=complete_topic,
)
@click.option(
    "--request",
    metavar="ID",
    callback=not_empty,
    help="Only those of this erasure: they prove it, or tell that it ended with its topic.",
)
@json_option
def list_receipts(*, topic: str | None, request: str | None, as_json: bool) -> None:
    """List all receipts, oldest first."""
    rows: list[dict[str, object]] = []
    shown: list[dict[str, object]] = []
    problem: LogCorrupt | None = None
    try:
        for each in _receipts().list(topic, request=request):
            rows.append(_row(each))
            shown.append(rows[-1] | _told_amounts(each))
    except LogCorrupt as error:
        problem = error
    if as_json:
        print_json({"receipts": rows}, {"receipts": problem} if problem else None)
    elif rows or not problem:
        named = ", ".join(f"of {each}" for each in (topic, request and f"request {request}") if each)
        empty = f"no receipts {named}" if named else "no receipts yet"
        requests = ("request",) if any(row["request"] for row in rows) else ()
        columns = ("number", "done", "kind", "topic", *requests, "files", "size", "id")
        told = [{name: row[name] for name in columns} for row in shown]
        print_table(told, empty=empty, expendable=("id", "files", "size", "request"))
    if problem:
        raise problem
    _end()


@receipt.command(short_help="Show one receipt, by its number or id, or an erasure's.")
@click.argument("name", metavar="ID")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Show one receipt, by its number or its id; --json prints its file.

    The id of an erasure shows its receipt, also if its topic has forgotten it. If it is a number, or there are several,
    `receipt list --request ID` has them.
    """
    receipts = _receipts()
    try:
        for found in receipts.shown(name):
            if as_json:
                answer_is_no_document()
                click.echo(found.to_bytes().decode("ascii"), nl=False)
            else:
                click.echo("\n".join(lines_of(found, is_checked=receipts.is_checked(found))))
    except InvalidConfig as error:
        exit_if_copied(_copied(), error, as_json=as_json)
        raise


@receipt.command(short_help="Check receipts: is one missing, or not as it was signed?")
@click.argument("files", metavar="[FILE | FOLDER]...", nargs=-1, type=_existing)
@click.option(
    "--public-key",
    "keys",
    metavar="FILE",
    multiple=True,
    type=_existing,
    help="Trust only the keys that are named like this. Without it, the home's own receipts*.pub.",
)
@click.option("--part", is_flag=True, help="The files are only a part of a chain: ask for none that is missing.")
@json_option
def verify(files: Sequence[Path], *, keys: Sequence[Path], part: bool, as_json: bool) -> None:
    """Check that no receipt is missing, and that all are as they were signed.

    With FILEs, or FOLDERs as `receipt export` writes them, nothing else is read but the public keys: no home, no
    catalog. Without them, the receipts of the home are checked, and compared with what the catalog says.

    Only head.json tells whether receipts are missing at the end. Without it the exit code is 1. --part is for single
    receipts. Where FILEs and FOLDERs have no receipt, nothing is proved, and the exit code is 1 too.

    A home may have none yet: that is no fault. Receipts of it that wait to be sealed are named too; the chain is whole
    without them. A copy of a home does not know what was sealed since: its exit code is 1.

    \b
    Exit code 0: all is well. 1: something is wrong, and named. 2: no public key, or a file that is not there.
    """
    waiting: Sequence[str] = ()
    failed: Mapping[str, KeptlogError] = {}
    if files:
        trusted = public_keys(keys) if keys else trusted_keys(home_path())
        found = _of_some(verify_chain(_contents(files), _some_key(trusted), is_part=part))
    elif part:
        raise InvalidConfig("--part is about files: name them, or leave it out")
    else:
        found = _without_end(_receipts().verify(keys), _copied())
        waiting, failed = _waiting()
    if as_json:
        print_json(asdict(found) | {"is_sound": found.is_sound, "waiting": list(waiting)}, failed)
    else:
        click.echo(_told(found, is_part=part))
        for each in found.findings:
            # A name in a folder that somebody has sent may have lines in it, and what they say is not ours.
            click.echo(f"  {each.flaw}: {' '.join(each.text.split())}")
        if waiting:
            click.echo(
                f"not sealed yet, so none of these: {counted(len(waiting), 'receipt')}; the next purge seals them:"
            )
        for path in waiting:
            click.echo(f"  {path}")
    exit_if_failed(failed)
    if not found.is_sound:
        sys.exit(EXIT_FAILED)


@receipt.command(short_help="Copy all receipts into a folder, to be verified elsewhere.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@json_option
def export(folder: Path, *, as_json: bool) -> None:
    """Copy all receipts and their head into FOLDER, for an auditor; what an earlier export left there stays.

    A folder with JSON that is no receipt is refused: `receipt verify` would call that damaged.

    The public key is not among them: hand it over by another way, or it would prove nothing.
    """
    count = _receipts().export(folder)
    if as_json:
        print_json({"folder": str(folder), "receipts": count})
    else:
        _tell_export(folder, count)
    _end()


def _tell_export(folder: Path, count: int) -> None:
    click.echo(f"{counted(count, 'receipt')} in {folder}")
    if count:  # the key is made with the first
        # After a change of keys the first one alone would have receipts, and the head, taken for somebody else's.
        files = public_key_files(home_path())
        keys = [word for path in files or ("FILE",) for word in ("--public-key", str(path))]
        click.echo(f"to check them: {shlex.join(['keptlog', 'receipt', 'verify', str(folder), *keys])}")
        if not files:
            click.echo(f"no public key is seen in {home_path()}: FILE is {PUBLIC_FILE} of the home that signed")


def _receipts() -> Receipts[SealedReceipts]:
    # Who checks files has no home, and needs none.
    from keptlog.cli.unopened import unopened_store  # noqa: PLC0415
    from keptlog.passes.receipts import Receipts  # noqa: PLC0415

    require_topics_here()
    return Receipts(unopened_store().receipts, lambda: trusted_keys(home_path()))


def _copied() -> str | None:
    """That the home is a copy: it has what was sealed until it was made."""
    from keptlog.cli.unopened import unopened_store  # noqa: PLC0415  # as above

    return unopened_store().copied


def _end() -> None:
    """A copy fails: what it gives looks like all receipts, and whoever checks that elsewhere finds none missing."""
    copied = _copied()
    tell_read_only(copied, {})
    if copied:
        sys.exit(EXIT_FAILED)


def _without_end(found: ChainVerification, copied: str | None) -> ChainVerification:
    """The same of a copy, whose original may have sealed more: nothing was put back where that is found."""
    if copied is None:
        return found
    unseen = Finding(Flaw.NO_END, f"{copied}. What was sealed there since is not looked at")
    known = (each for each in found.findings if each.flaw is not Flaw.PUT_BACK)
    return replace(found, findings=(*known, unseen))


def _waiting() -> tuple[list[str], Mapping[str, KeptlogError]]:
    """The receipts that the home's topics have and that are not sealed; and the topics that can't tell."""
    from keptlog.cli.unopened import unopened_store  # noqa: PLC0415  # as above
    from keptlog.table.removal.drafts import waiting_drafts  # noqa: PLC0415
    from keptlog.table.waiting.reaching import parted, reaching  # noqa: PLC0415
    from keptlog.table.waiting.side_by_side import each_apart  # noqa: PLC0415

    store = unopened_store()
    tables = store.embedded_tables()

    topics = () if tables else store.topics()
    locations, failed = parted(each_apart(lambda topic: store.load_table(topic).location(), topics))
    folders = [*(tables.folders() if tables else ()), *locations.values()]
    with reaching("receipts that are not sealed yet can't be listed"):
        drafts = waiting_drafts(store.files, folders)
        sealed = _receipts().sealed_among(drafts)
    return [path for path in drafts if path not in sealed], failed


def _of_some(found: ChainVerification) -> ChainVerification:
    """What was found in files that somebody has named: that none of them is a receipt is a finding too."""
    if found.receipts or any(each.flaw is not Flaw.NO_END for each in found.findings):
        return found
    none = Finding(Flaw.MISSING, "no receipt is in what was named, so nothing is proved")
    return replace(found, findings=(none, *found.findings))


def _some_key(keys: Sequence[PublicKey]) -> Sequence[PublicKey]:
    if not keys:
        raise InvalidConfig(
            f"no public key to trust: name it with --public-key; it is the file {PUBLIC_FILE} of the home that signed"
        )
    return keys


def _contents(files: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for path in files:
        for each in taken_for_receipts(path) if path.is_dir() else [path]:
            yield str(each), each.read_bytes()


def _told(found: ChainVerification, *, is_part: bool) -> str:
    if not found.receipts:
        if found.is_sound:
            return "no receipts yet"
        if all(each.flaw in {Flaw.PUT_BACK, Flaw.NO_END} for each in found.findings):
            return "no receipts that the catalog knows:"
        return "no receipt is as it was signed by a key that is trusted"
    which = f", {found.first} to {found.last}" if found.receipts > 1 else f", number {found.first}"
    what = f"{counted(found.receipts, 'receipt')}{which}, signed by key {', '.join(found.key_ids)}"
    if not found.is_sound:
        return f"{what}; {counted(len(found.findings), 'finding')}:"
    return f"{what}: unchanged" + ("" if is_part else ", and none is missing")


def _row(each: Receipt) -> dict[str, object]:
    gone = files_of(each)
    return {
        "number": each.sequence,
        "id": each.id,
        "kind": each.kind,
        "topic": ", ".join(each.topics) or None,
        "request": each.request,
        "done_ms": each.at_ms,
        "files": len(gone),
        "bytes": bytes_of(gone),
        "key_id": each.key_id,
    }


def _told_amounts(each: Receipt) -> dict[str, object]:
    """As a table shows them. An erasure deletes no files: 0 would read as if none had been looked through."""
    gone = files_of(each) if tells_files(each.content) else None
    amounts = {"files": None, "size": None} if gone is None else {"files": len(gone), "size": size(bytes_of(gone))}
    return {"done": iso_time(each.at_ms), **amounts}
