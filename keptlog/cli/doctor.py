"""``keptlog doctor``: is what keptlog rests on as it must be."""

from __future__ import annotations

import os
import sys
import time

import click

from keptlog.cli.output import (
    EXIT_FAILED,
    clock_ms,
    json_option,
    print_json,
    print_table,
    progress_to_stderr,
    quiet_option,
)
from keptlog.errors import InvalidConfig
from keptlog.home import new_id
from keptlog.passes.catalog_doctor import CatalogDoctor, Certificate
from keptlog.settings import home_path
from keptlog.table.catalog import open_catalog
from keptlog.table.catalog_probe import Answer

_ANSWERS = {Answer.KEPT: "kept", Answer.BROKEN: "BROKEN", Answer.NOT_LOOKED_AT: "not looked at"}


@click.command(short_help="Try whether the catalog keeps what keptlog rests on.")
@click.option("--catalog", "is_catalog", is_flag=True, help="Look at the configured catalog, or the home's.")
@quiet_option
@json_option
def doctor(*, is_catalog: bool, quiet: bool, as_json: bool) -> None:
    """Try whether the catalog keeps what keptlog rests on; exit 1 if it does not, or if that can't be looked at.

    It makes tables of its own, in namespaces keptlog_doctor_..., lets ten writers commit at once, loses answers on
    purpose, and takes everything away again. No topic is touched. It takes some seconds, over a network a minute.
    """
    if not is_catalog:
        raise InvalidConfig("say what to look at: keptlog doctor --catalog")
    home = home_path(os.environ)
    progress = progress_to_stderr(quiet=quiet or as_json)
    found = CatalogDoctor(lambda: open_catalog(home), new_id, time.sleep, progress).examine(clock_ms())
    if as_json:
        print_json(_as_json(found))
    else:
        _tell(found)
    if found.answer is not Answer.KEPT:
        sys.exit(EXIT_FAILED)


def _as_json(found: Certificate) -> dict[str, object]:
    probes = [
        {
            "name": each.probe.name,
            "promise": each.probe.promise,
            "answer": each.answer,
            "seen": each.seen,
            "follows": each.probe.follows if each.answer is Answer.BROKEN else None,
        }
        for each in found.results
    ]
    rest = {"hints": list(found.hints), "swept": list(found.swept), "left": list(found.left)}
    return {"catalog": found.catalog, "answer": found.answer, "verdict": found.verdict, "probes": probes, **rest}


def _tell(found: Certificate) -> None:
    rows = [{"probe": each.probe.name, "result": _ANSWERS[each.answer], "seen": each.seen} for each in found.results]
    print_table(rows, empty="")
    for each in found.results:
        if each.answer is Answer.BROKEN:
            click.echo(f"{each.probe.name}: it should be that {each.probe.promise}; {each.probe.follows}")
    for hint in found.hints:
        click.echo(f"hint: {hint}")
    for name in found.swept:
        click.echo(f"taken away: namespace {name}, which a doctor that was killed had left")
    for line in found.left:
        click.echo(f"left: {line}")
    click.echo(f"{found.catalog}: {found.verdict}")
