"""Red for what is wrong, where somebody looks at it.

Only a terminal gets it: whatever goes into a file or a pipe has no colours. ``NO_COLOR`` (https://no-color.org) and a
terminal that calls itself dumb switch it off. A colour never says what no word says.
"""

from __future__ import annotations

import os

import click


class Wrong(str):
    """A cell of a table that tells of something wrong."""

    __slots__ = ()


def wrong(text: str) -> str:
    """The text as it is to be printed by ``click.echo``, which takes the colour away where there is no terminal."""
    is_off = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if is_off else click.style(text, fg="red", bold=True)
