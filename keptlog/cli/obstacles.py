"""What a clean of a log would fail of, as ``keptlog explain`` tells it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from keptlog.cli.output import EXIT_FAILED
from keptlog.errors import KeptlogError
from keptlog.log.assessment import Assessment
from keptlog.passes.stored_files import no_room, wrong_in_storage
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.table.unopened import UnopenedStore


def obstacles_of(store: UnopenedStore, assessment: Assessment) -> tuple[tuple[str, ...], list[str]]:
    """What a clean would fail of, and why that could not be looked at."""
    room = no_room(assessment.log, assessment.sections)
    full = (room,) if room else ()
    try:
        with reaching(f"files of {assessment.log.topic_partition} can't be listed"):
            return (*map(str, wrong_in_storage(store, assessment.log)), *full), []
    except KeptlogError as error:
        return full, [str(error)]


def exit_if_obstructed(obstacles: Sequence[str], *, as_json: bool = False) -> None:
    """Say what a clean would fail of, a line each, with exit code 1; in JSON it stands already."""
    for obstacle in () if as_json else obstacles:
        click.echo(f"keptlog: {obstacle}", err=True)
    if obstacles:
        sys.exit(EXIT_FAILED)
