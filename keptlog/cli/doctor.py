"""``keptlog doctor``: what is wrong with a home, why, and what to do next.

It is asked when nothing else works. So little is imported before it is known that it can be: a configuration of
PyIceberg's that can't be read is a problem, and no command that can't be started.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from keptlog.cli.output import EXIT_FAILED, clock_ms, json_option, print_json, progress_to_stderr, quiet_option
from keptlog.errors import InvalidConfig
from keptlog.log.told.problem import CheckUp, Diagnosis, Problem, diagnosis_of
from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.harmless import harmless
from keptlog.progress import Progress
from keptlog.settings import home_path

_MOST_ALIKE = 5
"""Sensors that stand still make all logs of a home late, for one cause."""
_NAMED = 3


@click.command(short_help="Say what is wrong with the home, why, and what to do.")
@click.option(
    "--catalog", "is_catalog", is_flag=True, help="Probe the catalog alone, the configured one or the home's."
)
@click.option("--no-probes", is_flag=True, help="Do not probe a configured catalog: nothing is written to it.")
@quiet_option
@json_option
def doctor(*, is_catalog: bool, no_probes: bool, quiet: bool, as_json: bool) -> None:
    """Look at the whole home: settings, disk, catalog, topics, their files, clocks, Spark and sensors.

    Each problem has its cause and the next step: a command, or what only a person can do. Exit code 1 if there is one,
    or if something could not be looked at. No topic is touched. keptlog verify reads every record besides.

    A configured catalog is probed: does it keep what keptlog rests on? Tables are made in namespaces
    keptlog_doctor_..., ten writers commit at once, answers are lost on purpose, and everything is taken away again. It
    takes some seconds, over a network half a minute.
    """
    if is_catalog and no_probes:
        raise InvalidConfig("--catalog asks only what --no-probes leaves out: choose one")
    home, now_ms = home_path(os.environ), clock_ms()
    progress = progress_to_stderr(quiet=quiet or as_json)
    if is_catalog:
        _probe(home, now_ms, progress, as_json=as_json)
        return
    check_ups = _check_ups(home, now_ms, progress, is_probed=not no_probes)
    if as_json:
        print_json(_as_json(home, check_ups))
    else:
        _tell(home, check_ups)
    if diagnosis_of(check_ups) is not Diagnosis.FINE:
        sys.exit(EXIT_FAILED)


def _probe(home: Path, now_ms: int, progress: Progress, *, as_json: bool) -> None:
    from keptlog.cli.catalog_doctor import certificate_json, tell_certificate  # noqa: PLC0415  # see above
    from keptlog.cli.patient import catalog_doctor  # noqa: PLC0415
    from keptlog.table.doctor.catalog_probe import Answer  # noqa: PLC0415

    found = catalog_doctor(home, progress).examine(now_ms)
    if as_json:
        print_json(certificate_json(found))
    else:
        tell_certificate(found)
    if found.answer is not Answer.KEPT:
        sys.exit(EXIT_FAILED)


def _check_ups(home: Path, now_ms: int, progress: Progress, *, is_probed: bool) -> list[CheckUp]:
    try:
        from keptlog.cli.patient import patient  # noqa: PLC0415  # see above
        from keptlog.passes.doctor.home_doctor import examine  # noqa: PLC0415
    except InvalidConfig as error:
        cause, todo = "it says something that can't be read", "correct it there, or take it out"
        told = Problem("PyIceberg's configuration", str(error), cause, todo)
        rest = "the configuration can't be read that says where the catalog is"
        return [
            CheckUp("settings", "every file and variable of settings can be read", (told,)),
            CheckUp("home", "all else", not_looked_at=(rest,)),
        ]
    return examine(patient(home, now_ms, progress, is_probed=is_probed))


def _as_json(home: Path, check_ups: Sequence[CheckUp]) -> dict[str, object]:
    checks = [
        {
            "name": each.name,
            "asks": each.asks,
            "diagnosis": each.diagnosis,
            "problems": [_row(found) for found in each.problems],
            "hints": [_row(hint) for hint in each.hints],
            "not_looked_at": list(each.not_looked_at),
        }
        for each in check_ups
    ]
    return {"home": str(home), "diagnosis": diagnosis_of(check_ups), "checks": checks}


def _row(found: Problem) -> dict[str, object]:
    return {name: value for name, value in asdict(found).items() if name != "is_hint"} | {"files": list(found.files)}


def _tell(home: Path, check_ups: Sequence[CheckUp]) -> None:
    problems = [found for each in check_ups for found in each.problems]
    for alike in (group for each in check_ups for group in _alike(each.problems)):
        for found in alike[:_MOST_ALIKE]:
            _tell_problem(found)
        if rest := alike[_MOST_ALIKE:]:
            names = list(dict.fromkeys(found.subject for found in rest))
            told = f"{counted(len(rest), 'more problem')} with the same cause and next step"
            click.echo(f"{told}: {harmless(some_of(names, _NAMED))} (--json tells each)\n")
    for why in dict.fromkeys(why for each in check_ups for why in each.not_looked_at):
        names = [each.name for each in check_ups if why in each.not_looked_at]
        click.echo(f"not looked at: {', '.join(names)}: {harmless(why)}")
    for each in check_ups:
        for hint in each.hints:
            click.echo(harmless(f"hint: {hint.what}: {hint.todo}"))
    fine = [each.name for each in check_ups if each.diagnosis is Diagnosis.FINE]
    if fine:
        click.echo(f"fine: {', '.join(fine)}")
    click.echo(f"{home}: {counted(len(problems), 'problem')}")


def _alike(problems: Sequence[Problem]) -> Iterable[Sequence[Problem]]:
    """Those of one check that have the same cause and next step, but for what they are about, together."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for each in problems:
        about = (text.replace(each.subject, "") for text in (each.cause, each.todo, each.command or ""))
        groups.setdefault(tuple(about), []).append(each)
    return groups.values()


def _tell_problem(found: Problem) -> None:
    click.echo(harmless(found.what if found.subject in found.what else f"{found.subject}: {found.what}"))
    click.echo(f"  cause: {harmless(found.cause)}")
    click.echo(f"  next:  {harmless(found.todo)}")
    if found.command:
        click.echo(f"  run:   {harmless(found.command)}")
    click.echo()
