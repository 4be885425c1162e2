"""Groups of commands that help: called bare they show what they have, and a name that they lack brings the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import click


class HelpfulGroup(click.Group):
    """A group of commands. What it is called without is no mistake: it prints its help, and ends with 0."""

    elsewhere: Mapping[str, str] = {}
    """What people look for here, and where it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
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
