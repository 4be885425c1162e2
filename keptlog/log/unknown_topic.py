"""What is said of a name that no topic has: the topic that may have been meant, or where all of them are listed."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from keptlog.errors import UnknownTopic

_COMPARED = 5_000
"""With more names, looking for one that is alike would take longer than the list."""


def unknown_topic(name: str, known: Collection[str], *, what: str = "topic", besides: str = "") -> UnknownTopic:
    """The error for ``name``; ``what`` it was to be the name of, and ``besides`` ends the message."""
    topic, hyphen, number = name.rpartition("-")
    is_log = bool(hyphen) and number.isdecimal()
    if is_log and topic in known:
        # Whoever takes logs has looked already whether there is this one.
        hint = f"a whole topic is meant here, and it looks like a log of {topic}"
    elif is_log and what != "topic" and (near := _near(topic, known)):
        hint = f"did you mean {near}-{number}?"
    elif near := _near(name, known):
        hint = f"did you mean {near}?"
    else:
        hint = "see keptlog topic list"
    return UnknownTopic(f"there is no {what} {name!r}: {hint}{besides}")


def _near(name: str, known: Collection[str]) -> str | None:
    near = difflib.get_close_matches(name, known, n=1) if len(known) <= _COMPARED else []
    return near[0] if near else None
