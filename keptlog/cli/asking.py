"""When a command asks before it does what can't be undone.

    a purge, records below an offset     asked on a terminal; a script is not asked, and goes on
    a topic, a key, an adoption          never without an answer: on a terminal, piped, or --yes

What the first two delete has been replaced, or is named by its offset. The others take away what nobody has replaced,
so a script says that it means it. ``--yes`` asks nowhere.
"""

from __future__ import annotations

import os
import stat
import sys

import click

from keptlog.errors import InvalidConfig

yes_option = click.option("--yes", is_flag=True, help="Do not ask. Without a terminal nobody is asked anyhow.")
consent_option = click.option("--yes", is_flag=True, help="Do not ask. Required where there is no terminal.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


class Declined(Exception):  # somebody has answered, nothing failed
    """Somebody was asked, and did not say yes: not one thing was begun."""

    def __init__(self) -> None:
        super().__init__("nothing was changed: the answer was not yes")


def is_asked(*, yes: bool) -> bool:
    """Whether somebody is there to be asked, and wants to be."""
    return not yes and is_at_terminal()


def is_at_terminal() -> bool:
    """Whether somebody can type; standard input may be closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def is_piped() -> bool:
    """Whether standard input is what another program writes, or a file: no terminal, and nothing as in cron."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def confirm(question: str) -> None:
    """Ask on stderr; anything but yes ends the command, and nothing was changed.

    Raises:
        Declined: the answer is no, or Ctrl-C, or the end of what is typed.
    """
    try:
        is_yes = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)  # the question stands there, and nobody has ended its line
        raise Declined from None
    if not is_yes:
        raise Declined


def require_consent(question: str) -> None:
    """Ask for what is never done without an answer; a piped one counts.

    Raises:
        InvalidConfig: nobody answers.
        Declined: the answer is no.
    """
    if is_at_terminal():
        confirm(question)
        return
    answer = sys.stdin.readline() if sys.stdin else ""
    if not answer:
        raise InvalidConfig(f"{question} Nobody is there to be asked: give --yes")
    click.echo(f"{question} [y/N]: {answer.strip()}", err=True)
    if answer.strip().lower() not in {"y", "yes"}:
        raise Declined
