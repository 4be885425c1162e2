"""What is said of a name that no topic has: the topic that may have been meant, or where all of them are listed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence

from keptlog.errors import UnknownTopic
from keptlog.log.given.given import any_text
from keptlog.log.given.plain_number import plain_number

_ALIKE = 3
"""So many topics are looked at for a log that may have been meant."""
_COMPARED = 5_000
"""With more names, looking for one that is alike would take longer than the list."""


def unknown_topic(name: str, known: Collection[str], *, besides: str = "") -> UnknownTopic:
    """The error for ``name`` where a whole topic is meant; ``besides`` ends the message.

    Raises:
        InvalidConfig: the name is no text.
    """
    name = any_text(name, "a topic's name")
    topic, hyphen, number = name.rpartition("-")
    if hyphen and number.isdecimal() and topic in known:
        hint = f"a whole topic is meant here, and it looks like a log of {topic}"
    else:
        hint = _hint(_near(name, known))
    return UnknownTopic(f"there is no topic {name!r}: {hint}{besides}")


def unknown_log(name: str, known: Collection[str], partitions: Callable[[str], int]) -> UnknownTopic:
    """The error for ``name`` where a topic or a topic-partition is meant; ``partitions`` says how many a topic has."""
    topic, _, number = name.rpartition("-")
    if number.isdecimal() and topic in known:
        last = partitions(topic) - 1
        there = f"those of {topic} are {topic}-0 to {topic}-{last}" if last else f"{topic} has only {topic}-0"
        return UnknownTopic(f"there is no topic-partition {name!r}: {there}")
    partition = plain_number(number)
    logs = [
        f"{each}-{number}" for each in _near(topic, known) if partition is not None and partition < partitions(each)
    ]
    return UnknownTopic(f"there is no topic or topic-partition {name!r}: {_hint(logs or _near(name, known))}")


def _hint(meant: Sequence[str]) -> str:
    return f"did you mean {meant[0]}?" if meant else "see keptlog topic list"


def _near(name: str, known: Collection[str]) -> Sequence[str]:
    """The topics whose names are most like this one, the likest first."""
    return difflib.get_close_matches(name, known, n=_ALIKE) if len(known) <= _COMPARED else []
