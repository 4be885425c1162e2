"""What journals name outside of a topic's folder, told by itself: a purge deletes none of that.

    journal   names files below the folder that are there      a journal, which a purge finishes
              names files elsewhere that are there              each of those: somebody must delete it by hand
              names nothing that is there                       a journal, which a purge finishes

What a snapshot shows is not among them: the journal's commit never landed, and the file is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.log.holder import Held, HolderKind
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import Manifests, all_references, below, comparable_forms
from keptlog.table.removal.journal import DeletedFile, Journal, journal_folder, read_journal

if TYPE_CHECKING:
    from pyiceberg.table import Table


def journals_told(
    table: Table, held: Collection[Held], listed: Collection[str], files: TableFiles, manifests: Manifests
) -> Iterator[Held]:
    """The same holders, with what must be deleted by hand in place of journals that no purge can settle.

    ``listed`` is what lies below the table's location, in comparable form.
    """
    folder = journal_folder(table.location())
    for each in held:
        if each.kind is not HolderKind.JOURNAL or not each.path or not each.path.startswith(folder):
            yield each
            continue
        try:
            journal = read_journal(files, each.path)
            left = _left_elsewhere(table, journal, files, manifests)
        except (FileNotFoundError, LogCorrupt):
            yield each
            continue
        if not left or any(form in listed for form in comparable_forms(journal.paths).values()):
            yield each
        for file in left:
            size_bytes = file.bytes or None
            yield Held(HolderKind.ELSEWHERE, each.since_ms, 1, size_bytes, partition=file.partition, path=file.path)


def _left_elsewhere(table: Table, journal: Journal, files: TableFiles, manifests: Manifests) -> list[DeletedFile]:
    is_below, forms = below(table.location()), comparable_forms(journal.paths)
    outside = {each.path: each for each in journal.segments + journal.metadata if not is_below(forms[each.path])}
    if not outside:
        return []
    from keptlog.table.removal.removal import Removal  # noqa: PLC0415  # who only looks hardly ever needs it

    there = Removal(files, table.location()).elsewhere({path: each.bytes for path, each in outside.items()})
    needed = all_references(table, manifests).keys() if there else set()
    return [outside[path] for path in there if forms[path] not in needed]
