"""What ``keptlog doctor`` says of the place of a home: it is not where its catalog says, or another catalog is used."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from keptlog.log.told.problem import Problem
from keptlog.log.words.counted import some_of
from keptlog.table.catalogs.embedded import own_topics_told
from keptlog.table.catalogs.home_location import Elsewhere
from keptlog.table.namespaces import CONFIGURED

_NAMED = 10


def elsewhere_problem(found: Elsewhere) -> Problem:
    """A home, or a part of one, that the catalog names where it does not lie."""
    home = found.home
    if found.is_copy and found.tables:
        cause = "the folder was copied, after topics had been made in it by another path than the first"
        return Problem(str(home), str(found), cause, f"stop all that uses either; {found.way_back}")
    if found.is_copy:
        todo = f"work with the home at {found.made_at}; a backup is only there to be copied back to that path"
        export = f"export KEPTLOG_HOME={shlex.quote(str(found.made_at))}"
        return Problem(str(home), str(found), "the folder was copied", todo, export)
    # A link that leads nowhere is that of an earlier move: it is replaced, which a plain ln refuses.
    words = ["ln", "-sfn" if found.is_place_taken else "-s", str(home), str(found.made_at)]
    link = None if os.path.exists(found.made_at) else shlex.join(words)  # noqa: PTH110  # a Path may raise
    parent = os.path.dirname(found.made_at)  # noqa: PTH120
    if link and not os.path.exists(parent):  # noqa: PTH110  # it was moved together with the folder around it
        link = f"{shlex.join(['mkdir', '-p', parent])} && {link}"
    cause = "the folder was moved, or its disk is mounted elsewhere"
    return Problem(str(home), str(found), cause, found.way_back, link)


def outlived_problem(topics: Sequence[str]) -> Iterator[Problem]:
    """Of topics of a copy: what it names of them is gone. That it is a copy is told of the home."""
    if topics:
        what = f"what the catalog of this copy names of {some_of(topics, _NAMED)} is gone"
        cause = (
            "the original has gone on since: each commit deletes the metadata of the twentieth before it, and a purge "
            "the replaced files; or it has deleted the topic"
        )
        todo = "look with the original, or make a new copy; nothing is to be put back"
        yield Problem("a copy", what, cause, todo)


def own_catalog_problem(home: Path) -> Iterator[Problem]:
    """Of a home in which a configured catalog is used: that nobody looks at the topics of its own."""
    own = own_topics_told(home)
    if own:
        what = f"{own}, and nobody looks at them: {CONFIGURED} takes its place"
        cause = "a catalog was configured (.pyiceberg.yaml, PYICEBERG_*) for a home that had topics"
        todo = (
            "if they are needed, give them a home that runs without that configuration (docs/lake.md); if not, delete "
            "them there with keptlog topic delete"
        )
        yield Problem(str(home), what, cause, todo, is_hint=True)
