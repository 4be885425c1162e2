"""An option that is given empty, as by a script's variable that is not set, is refused and no option left out."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from keptlog.cli import cli
from tests.cli.conftest import Run

EMPTY_MEANS_SOMETHING = {"erase --reason", "append --unavailable-value-placeholder"}
"""The one is only told, and none is none. The other is a value."""


def _commands(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        if isinstance(command, click.Group):
            yield from _commands(command, (*before, name))
        else:
            yield (*before, name), command


def _options() -> Iterator[tuple[tuple[str, ...], click.Command, str]]:
    """Each option that takes a text."""
    for words, command in _commands(cli):
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag:
                continue
            is_exempt = f"{' '.join(words)} {option.opts[0]}" in EMPTY_MEANS_SOMETHING
            if not is_exempt and not isinstance(option.type, click.Path):
                yield words, command, option.opts[0]


@pytest.mark.parametrize(("words", "command", "option"), list(_options()), ids=str)
def test_an_empty_one_is_refused(keptlog: Run, words: tuple[str, ...], command: click.Command, option: str) -> None:
    needed = ["x"] * sum(each.required for each in command.params if isinstance(each, click.Argument))
    refused = keptlog(*words, f"{option}=", *needed)

    assert (refused.code, refused.out) == (2, ""), refused
    assert option in refused.err, refused.err
