"""Where a text about logs ends: a topic may have thousands of them, and nobody reads so many lines. JSON has all."""

from __future__ import annotations

import click

from keptlog.log.words.counted import counted

MOST_SHOWN = 200
"""Rows or lines about logs, where none of them was named."""


def tell_more(which: str, shown: int, all_of_them: int, noun: str, *, how: str) -> None:
    """Say that these are not all, and how to see others; nothing if they are."""
    if shown < all_of_them:
        click.echo(f"these are the {which} {shown} of {counted(all_of_them, noun)}; {how}, --json has all")
