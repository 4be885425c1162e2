"""Texts as Markdown that shows them as they are.

Dagster takes descriptions and tables for Markdown. A text of ours that names ``<catalog>``, or quotes a name with
backticks, would lose just that, and a command would be wrong when it is read.
"""

import re

_MARKS = re.compile(r"[\\`*<\[~|]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown may take for its own; an underscore inside of a word is none."""


def as_markdown(text: str) -> str:
    """The text on one line, with a backslash before each character that Markdown would take for its own."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
