"""``keptlog topic register``: after the catalog was lost or put back, back to all that the storage has of topics.

What would be named, and what that changes, is told before anything is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from keptlog.cli.arguments import complete_file, not_empty, some_topics_argument
from keptlog.cli.asking import consent_option, dry_run_option, require_consent
from keptlog.cli.output import exit_if_failed, json_option, print_json
from keptlog.errors import InvalidConfig
from keptlog.home import open_home
from keptlog.log.topic_partition import valid_topic_name
from keptlog.log.words.iso_time import iso_time
from keptlog.settings import home_path
from keptlog.table.catalogs.configuration import catalog_settings
from keptlog.table.catalogs.home_folder import topics_with_files
from keptlog.table.namespaces import CONFIGURED

if TYPE_CHECKING:
    from keptlog.table.registrar import CatalogEntry, Proposals


@click.command(short_help="Take in what the storage has of topics, and the catalog has not.")
@some_topics_argument
@click.option(
    "--metadata",
    metavar="FILE",
    callback=not_empty,
    help="Of one TOPIC: the metadata file that is to count.",
    shell_complete=complete_file,
)
@click.option("--new-catalog", is_flag=True, help="Begin a new one first: it is lost, and no backup is left.")
@dry_run_option
@consent_option
@json_option
def register(  # noqa: PLR0913
    topics: Sequence[str], metadata: str | None, *, new_catalog: bool, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Let the catalog name the newest state of each TOPIC that the storage has, and of the receipts.

    For a catalog that was lost or put back from a backup, where the files were not: what was acknowledged since is
    there again. Metadata files in a topic's folder tell which state is the newest. Where two homes went on, each its
    own way, or files are gone, nothing is changed, and that is said.

    Only do it if no other home goes on with these files.
    """
    # The help of all commands opens no catalog.
    from keptlog.table.registrar import Registrar  # noqa: PLC0415

    names = list(dict.fromkeys(map(valid_topic_name, topics)))
    if not names:
        raise InvalidConfig("name the topics that the catalog is to take in")
    if metadata and len(names) > 1:
        raise InvalidConfig("--metadata is of one topic: name that alone")
    if new_catalog:
        _begin_anew(names, dry_run=dry_run, yes=yes)
    store = open_home().store
    store.require_writable()
    registrar = Registrar(store)
    found = registrar.propose_all(names, metadata)
    _print(found, as_json=as_json)
    to_do = [] if dry_run else found.proposals
    if to_do and not yes:
        require_consent("let the catalog name this, as no other home goes on with these files?")
    not_done = registrar.register_all(to_do)
    failed = {**found.failed, **not_done}
    if as_json:
        print_json(
            {
                "topics": {name: each and _row(each) for name, each in found.topics.items()},
                "receipts": found.receipts and _row(found.receipts),
                "is_registered": not dry_run,
            },
            failed,
        )
    elif len(not_done) < len(to_do):
        click.echo("the catalog names it; keptlog doctor looks at what is there, keptlog verify reads it")
    exit_if_failed(failed)


def _begin_anew(names: Sequence[str], *, dry_run: bool, yes: bool) -> None:
    """A catalog that is lost is there again, without topics."""
    from keptlog.table.catalogs.embedded_catalog import begin_anew  # noqa: PLC0415  # as above
    from keptlog.table.registrar import Registrar  # noqa: PLC0415  # as above

    if dry_run:
        raise InvalidConfig("--new-catalog makes a catalog: leave out --dry-run")
    home, is_configured = home_path(), catalog_settings() is not None
    begin = Registrar(open_home().store).begin_anew if is_configured else partial(begin_anew, home)
    if not yes:
        where = CONFIGURED if is_configured else home
        require_consent(f"begin a new catalog in {where}, as the one before is lost and no backup of it is left?")
    begin()
    others = [] if is_configured else sorted(set(topics_with_files(home)) - set(names))
    if others:
        click.echo(f"not in the new catalog, until they are registered too: {', '.join(others)}", err=True)


def _print(found: Proposals, *, as_json: bool) -> None:
    for name, proposal in found.topics.items():
        if proposal is None:
            click.echo(f"{name}: the catalog names the newest state already", err=as_json)
    for line in (line for each in found.proposals for line in _lines(each)):
        click.echo(line, err=as_json)


def _lines(proposal: CatalogEntry) -> list[str]:
    newest, made = _name(proposal.state.path), iso_time(proposal.state.metadata.last_updated_ms)
    before = f"names {_name(proposal.before)}" if proposal.before else "has none"
    if proposal.before and _name(proposal.before) == newest:
        before, newest = f"names {proposal.before}", proposal.state.path  # from where one stands
    lines = [f"{proposal.what}: the catalog {before}, and would name {newest} of {made}"]
    for name, (was, is_) in proposal.ends.items():
        end = f"  {name}: would end with {is_}" if proposal.is_receipts else f"  {name}: would end at offset {is_}"
        if was is None or was < is_:
            lines.append(f"{end}, not {was}" if was is not None else end)
        elif is_ < was:
            lines.append(f"{end}, not {was}: what lies between is LOST")
    return lines


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _row(proposal: CatalogEntry) -> dict[str, object]:
    return {
        "before": proposal.before,
        "metadata": proposal.state.path,
        "updated_ms": proposal.state.metadata.last_updated_ms,
        "ends": [{"name": name, "before": was, "after": is_} for name, (was, is_) in proposal.ends.items()],
    }
