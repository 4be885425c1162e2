"""Groups of commands that help: called bare they show what they have, and a name that they lack brings the nearest."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from typing import NoReturn

import click

from keptlog.errors import InvalidConfig
from keptlog.extras import missing_extra

_AROUND_NAMES = 8
"""Columns before the name of a command in a section of its group's help, and behind it."""


class HelpfulGroup(click.Group):
    """A group of commands. What it is called without is no mistake: it prints its help, and ends with 0."""

    elsewhere: Mapping[str, str] = {}
    """What people look for here, and where it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name in known or ctx.resilient_parsing or name.startswith("-"):
            return super().resolve_command(ctx, args)
        meant = [self.elsewhere[name]] if name in self.elsewhere else difflib.get_close_matches(name, known, n=1)
        hint = f": did you mean {ctx.command_path} {meant[0]}?" if meant else ""
        raise click.UsageError(f"there is no command {name!r}{hint}", ctx)


class LazyGroup(HelpfulGroup):
    """A group whose commands, or some of them, are imported on first use."""

    lazy: Mapping[str, str] = {}
    """Command to the module that has it, and its name there."""
    sections: Mapping[str, Sequence[str]] = {}
    """What the commands are about, where there are too many for one list."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.sections:
            super().format_commands(ctx, formatter)
            return
        widest = max(map(len, self.list_commands(ctx)))
        room = formatter.width - widest - _AROUND_NAMES
        with formatter.section("Commands"):
            for about, names in self.sections.items():
                commands = [(name, self.get_command(ctx, name)) for name in names]
                with formatter.section(about):
                    formatter.write_dl([(f"{n:<{widest}}", c.get_short_help_str(room)) for n, c in commands if c])

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = super().list_commands(ctx)
        return sorted([*own, *self.lazy]) if own else list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except (ModuleNotFoundError, InvalidConfig) as error:
            return _that_refuses(cmd_name, error)
        return command


def _that_refuses(name: str, error: ModuleNotFoundError | InvalidConfig) -> click.Command:
    """Stands in for a command that can't be imported, so that the help shows all the others."""

    def refuse() -> NoReturn:
        raise error

    takes_anything: dict[str, object] = {"ignore_unknown_options": True, "allow_extra_args": True}
    help_line = f"({error if isinstance(error, InvalidConfig) else missing_extra(error) or error})"
    return click.Command(name, takes_anything, refuse, short_help=help_line, add_help_option=False)
