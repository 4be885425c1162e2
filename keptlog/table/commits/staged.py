"""Staged files of a change that did not land: deleted at once where that is sure, left to a purge where it is not.

    refused, a topic that is gone, a full disk    nobody refers to them, and nobody ever will: deleted
    ``CommitStateUnknown``                        the commit may have landed, or may land yet: they stay
    a topic that can't be read any more           nobody can look whether a refusal was true: they stay
    killed                                        they stay

That holds for whoever has written the files and told nobody. What others know too, as the outcomes of a clean that
Dagster hands from op to op, they may be about to commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from keptlog.errors import CommitStateUnknown, KeptlogError, LogCorrupt, UnsupportedFormat
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard


@contextlib.contextmanager
def discarded_if_refused(files: Files, paths: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Delete these files if the commit inside surely did not land."""
    try:
        yield
    except (CommitStateUnknown, LogCorrupt, UnsupportedFormat):
        raise
    except KeptlogError:
        discard(files, paths())
        raise
