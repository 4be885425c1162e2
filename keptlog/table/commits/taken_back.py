"""Small files that keptlog writes beside a topic's commits, taken back if the topic was deleted meanwhile.

    topic      there      deleted: its folder is listed, and emptied      gone
    purge      looks                                                      writes a journal, finds no topic
    reader     looks, reads                                               writes how far he has come

Who has listed a folder and emptied it never comes again. So who wrote into it after that takes back what he wrote.
While the deletion is under way, it does that: it lists the folder again until nothing new is there. If another program
has renamed the topic, or dropped its table and left the files, the topic may come back, and what was written stays. So
do the drafts of receipts, for they tell what is gone.

Staged files of a commit have another rule (``staged``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from keptlog.storage.leftover import discard
from keptlog.table.commits.elsewhere import is_wholly_gone
from keptlog.table.commits.loading import load_same_topic
from keptlog.table.io.files import TableFiles
from keptlog.table.removal.topic_storage import drafts_among
from keptlog.table.waiting.reaching import reaching


class _Noting(TableFiles):
    """Files that know which small ones were written through them."""

    written: list[str]

    def write_bytes(self, path: str, content: bytes) -> None:
        self.written.append(path)
        super().write_bytes(path, content)

    def discard_written(self, location: str) -> None:
        """Delete them, but for drafts of receipts."""
        drafts = drafts_among(location, self.written)
        discard(self, [path for path in self.written if path not in drafts])


def _noting(files: TableFiles) -> _Noting:
    """The same files: of the same kind, which may write in a way of its own."""
    noting: _Noting = object.__new__(type("_NotingOf", (_Noting, type(files)), {}))
    noting.__dict__.update(files.__dict__, written=[])
    return noting


@contextlib.contextmanager
def taken_back_if_gone(catalog: Catalog, files: TableFiles, seen: Table) -> Iterator[TableFiles]:
    """The same files; what was written through them is deleted if an error comes because the topic is gone for good.

    ``seen`` is the topic's table as it was before. The names of these files are to be of this writer alone.
    """
    noting = _noting(files)
    try:
        yield noting
    except Exception:
        if noting.written and is_wholly_gone(catalog, files, seen):
            noting.discard_written(seen.location())
        raise


def write_unless_gone(catalog: Catalog, files: TableFiles, seen: Table, write: Callable[[TableFiles], object]) -> None:
    """Let small files be written of a topic that was seen before; where nobody knows whether it is gone, they stay.

    Raises:
        UnknownTopic, StalePlan: it was deleted for good by then, and there may be another one of its name. Nothing of
            them is left.
    """
    noting = _noting(files)
    write(noting)
    if noting.written and is_wholly_gone(catalog, files, seen):
        noting.discard_written(seen.location())
        topic = seen.name()[-1]
        with reaching(f"topic {topic} can't be loaded"):
            load_same_topic(catalog, topic, str(seen.metadata.table_uuid))
