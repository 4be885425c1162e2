"""``keptlog doctor --catalog``: what was found out about a catalog, for people and for scripts."""

from __future__ import annotations

import click

from keptlog.cli.output import print_table
from keptlog.passes.doctor.catalog_doctor import Certificate
from keptlog.table.doctor.catalog_probe import Answer

_ANSWERS = {Answer.KEPT: "kept", Answer.BROKEN: "BROKEN", Answer.NOT_LOOKED_AT: "not looked at"}


def certificate_json(found: Certificate) -> dict[str, object]:
    """For scripts."""
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


def tell_certificate(found: Certificate) -> None:
    """For people."""
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
