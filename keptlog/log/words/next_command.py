"""The command that a person is told to run next, as a shell takes it."""

from __future__ import annotations


def next_command(command: str, name: str, options: str = "") -> str:
    """``keptlog`` with its words, options and the name it is about; no name is none.

    Kafka lets a topic be called ``-users``, and so does keptlog: options end before such a name.
    """
    if name.startswith("-"):
        return " ".join(word for word in ("keptlog", command, options, "--", name) if word)
    return " ".join(word for word in ("keptlog", command, name, options) if word)


def last_argument(name: str) -> str:
    """A name at the end of a command."""
    return f"-- {name}" if name.startswith("-") else name
