"""Staged files of a change that did not land: deleted at once where that is sure, left to a purge where it is not.

    refused, a topic that is gone, a full disk    nobody refers to them, and nobody ever will: deleted
    ``CommitStateUnknown``                        the commit may have landed, or may land yet: they stay
    a topic that can't be read any more           nobody can look whether a refusal was true: they stay
    killed                                        they stay
    landed by another attempt                     those that the table refers to stay, the others are deleted

That holds for whoever has written the files and told nobody. What others know too, as the outcomes of a clean that
Dagster hands from op to op, they may be about to commit.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator

from pyiceberg.catalog import Catalog

from keptlog.errors import CommitStateUnknown, KeptlogError, LogCorrupt, UnsupportedFormat
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.metadata.references import all_references, below, comparable_forms
from keptlog.table.waiting.reach import OUT_OF_REACH
from keptlog.table.waiting.reaching import one_line

_logger = logging.getLogger(__name__)

_UNREADABLE: tuple[type[Exception], ...] = (KeptlogError, *OUT_OF_REACH)


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


def discard_unreferenced(catalog: Catalog, files: Files, topic: str, paths: Iterable[str]) -> set[str]:
    """Delete these files of a change that has landed, but for those that the topic refers to; gives what went.

    What went was of an attempt that lost its race, or another process with the same run id was faster.
    """
    try:
        table = load_topic_table(catalog, topic)
        referenced, is_inside = all_references(table).keys(), below(table.location())
    except _UNREADABLE as error:
        _logger.info("what may be left of topic %s beside what has landed stays: %s", topic, one_line(error))
        return set()
    forms = comparable_forms(paths)
    # One that lies elsewhere is of another topic that had the name.
    gone = {path for path, form in forms.items() if form not in referenced and is_inside(form)}
    discard(files, gone)
    return gone
