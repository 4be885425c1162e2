"""The line that a command begins with where a time stands for now, told apart from what it has to say."""

from __future__ import annotations


def apart(err: str) -> tuple[str, str]:
    """That line, empty if there is none, and the rest of stderr."""
    first, _, rest = err.partition("\n")
    return (first, rest) if first.startswith("keptlog: as of ") else ("", err)
