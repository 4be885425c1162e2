"""Which format a topic is stored in: ``MAJOR.MINOR``, in the property ``keptlog.format-version`` of its table.

    1.0   also where there is no such property: topics from before it    read and written
    1.7   a newer minor version    read and written; what is not known is read over, and stays where it is
    2.0   a newer major version    refused, whatever was to be done with the topic: nothing of it is as it is here

What a minor version may change, and what needs a major one, stands in docs/format.md. The version is that of a topic,
not of a home: topics of several versions lie beside each other, and one that is refused stops no other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from keptlog.errors import LogCorrupt, UnsupportedFormat

FORMAT_VERSION = "keptlog.format-version"
"""Name of the property."""
SET_IT_BACK = "set it back to the value in the table's metadata file before that change (metadata/*.metadata.json)"
"""What to do about a property that somebody else has spoilt: nothing was committed since, so that file has it."""
_FORM = re.compile(r"([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True, order=True)
class FormatVersion:
    """The version of a topic's stored format."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def is_newer(self) -> bool:
        """Whether it may hold what this keptlog does not know."""
        return self > CURRENT


FIRST = FormatVersion(1, 0)
CURRENT = FormatVersion(1, 4)
"""What new topics get, and older ones with their next snapshot."""


def format_of(topic: str, properties: Mapping[str, str]) -> FormatVersion:
    """A topic's format, from the properties of its table; asked before anything else is read of them.

    Raises:
        UnsupportedFormat: it is of a newer major version.
        LogCorrupt: what is stored is no version.
    """
    text = properties.get(FORMAT_VERSION)
    if text is None:
        return FIRST
    form = _FORM.fullmatch(text)
    if form is None:
        raise LogCorrupt(
            f"topic {topic}: property {FORMAT_VERSION}={text!r} is no version such as {CURRENT}; {SET_IT_BACK}"
        ).of_property()
    found = FormatVersion(int(form[1]), int(form[2]))
    if found.major > CURRENT.major:
        raise UnsupportedFormat(
            f"topic {topic} was written by a newer keptlog (format {found}; this one reads {CURRENT.major}.x): "
            "upgrade keptlog"
        )
    return found


def raised_format(topic: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The property to set with a commit that makes a snapshot; nothing where the version is this one or newer.

    Raises:
        UnsupportedFormat, LogCorrupt: as ``format_of`` does.
    """
    return {FORMAT_VERSION: str(CURRENT)} if format_of(topic, properties) < CURRENT else {}
