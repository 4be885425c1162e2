"""What ``keptlog doctor`` says of files and folders of a home that this user may not write to.

Where users share a home, each makes folders: one with a umask of 022, or root, makes some in which nobody else may
write. Whoever only reads meets none of it, and some are met late: a purge alone writes to ``metadata/gc``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from keptlog.log.told.problem import Problem
from keptlog.log.words.counted import counted, some_of

_NAMED = 3
_CAUSE = "another user made it, such as root, or one with a umask (022) that lets nobody else write"


@dataclass(frozen=True, slots=True)
class ShutFolders:
    """Folders to which this user may not write, of one thing."""

    subject: str
    top: str
    """The folder, or file, that all of them are or lie in."""
    folders: Sequence[str]
    follows: str
    """What does not go therefore; ends a sentence."""


def shut_folders_problem(shut: ShutFolders, home: str) -> Problem:
    """What is told of them, and who can give this user the right."""
    what = f"{some_of(shut.folders, _NAMED)} can't be written to, {shut.follows}"
    return Problem(shut.subject, what, _CAUSE, _todo(shut.top, home), files=tuple(shut.folders))


def all_topics_shut_problem(topics: Sequence[ShutFolders], home: str) -> Problem | None:
    """One problem for all topics, where all lie in one folder; else null."""
    parents = {each.top.rpartition("/")[0] for each in topics}
    if len(parents) > 1:
        return None
    first = topics[0]
    what = f"{counted(len(topics), 'topic')} can't be written to, {first.folders[0]} first, {first.follows}"
    files = tuple(folder for each in topics for folder in each.folders)
    return Problem("all topics", what, _CAUSE, _todo(parents.pop(), home), files=files)


def _todo(top: str, home: str) -> str:
    place, owned = shlex.quote(top), f"chown -R --reference={shlex.quote(home)}"
    return (
        f"its owner or root gives it to the user of the home: {owned} {place}; or, where a group shares the "
        f"home, to the group: chmod -R g+rwX {place}, and all write with umask 002"
    )
