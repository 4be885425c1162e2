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
from pyiceberg.table import Table

from keptlog.errors import CommitStateUnknown, KeptlogError, LogCorrupt, UnsupportedFormat
from keptlog.storage.files import Files
from keptlog.storage.leftover import discard
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.references import all_references, below, comparable_forms
from keptlog.table.metadata.runs import LandedChange, landed_before
from keptlog.table.waiting.reaching import one_line

_logger = logging.getLogger(__name__)


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


def discard_unreferenced(
    catalog: Catalog, files: Files, change: Change, landed: LandedChange | None, paths: Iterable[str]
) -> set[str]:
    """Delete these files of a change that has landed, but for those that the topic refers to; gives those it refers to.

    What goes was of an attempt that lost its race, or another process with the same run id was faster. Nothing goes if
    the table can't be had as the change has left it: a catalog that lags shows it as it was before. ``landed`` is what
    was found of the change, null if it has just landed. Nothing is raised: whoever lands a change takes an error for
    one that has not landed, and deletes all of its files.
    """
    kept: set[str] = set()
    try:
        table = load_topic_table(catalog, change.topic)
        if not _has_landed_in(table, change, landed):
            _logger.info("what may be left of topic %s stays: its table is not told as it is now", change.topic)
            return kept
        referenced, is_inside = all_references(table).keys(), below(table.location())
        forms = comparable_forms(paths)
        kept |= {path for path, form in forms.items() if form in referenced}
        # One that lies elsewhere is of another topic that had the name.
        discard(files, [path for path, form in forms.items() if path not in kept and is_inside(form)])
    except Exception as error:  # noqa: BLE001  # see above
        _logger.info("what may be left of topic %s beside what has landed stays: %s", change.topic, one_line(error))
    return kept


def _has_landed_in(table: Table, change: Change, landed: LandedChange | None) -> bool:
    """Whether a table is the one in which a change has landed, and not older."""
    if change.topic_id not in {None, str(table.metadata.table_uuid)}:
        return False
    if landed:
        return table.last_sequence_number >= landed.sequence_number
    return landed_before(table, change) is not None
