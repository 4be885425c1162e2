"""When a command asks before it does what can't be undone.

On a terminal it asks. A script has no terminal behind its standard input; it is not asked, and goes on, because
whoever wrote it meant it. ``--yes`` asks nowhere.
"""

from __future__ import annotations

import sys

import click

yes_option = click.option("--yes", is_flag=True, help="Do not ask. Without a terminal nobody is asked anyhow.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


def is_asked(*, yes: bool) -> bool:
    """Whether somebody is there to be asked, and wants to be."""
    return not yes and sys.stdin.isatty()


def confirm(question: str) -> None:
    """Ask on stderr; anything but yes ends the command, and nothing was changed."""
    if not click.confirm(question, err=True):
        raise click.Abort
