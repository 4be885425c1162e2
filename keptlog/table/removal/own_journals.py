"""The journals in a topic's folder, for who carries them out in the topic's name: not each of them is the topic's own.

    of a purge, of this topic        carried out
    of a purge, of another topic     killed as that was deleted. What is gone of it is told, unless receipts of that
                                     topic's deletion are there: they have told it
    of a deletion, of this topic     in a purge: the topic lives, so its deletion was **taken back**, as by a catalog
                                     that was put back. It names all files of a live topic; nobody carries it out
    of a deletion, of another topic  in a purge: what is gone of it is told, and nothing else

In a deletion those of deletions are carried out whole.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.references import comparable, comparable_forms
from keptlog.table.removal.ended_erasures import Sealed, told_before
from keptlog.table.removal.journal import (
    DELETION,
    Journal,
    journal_folder,
    read_journals,
    taken_back_folder,
    unreadable_folder,
    write_journal,
)
from keptlog.table.removal.removal import Removal
from keptlog.table.removal.topic_storage import drafts_among

_logger = logging.getLogger(__name__)


def nothing_sealed(_table_id: str) -> Iterable[Mapping[str, Any]]:
    """Without a chain."""
    return ()


def read_own_journals(
    files: TableFiles, location: str, paths: Iterable[str], topic_id: str, sealed: Sealed
) -> tuple[dict[str, Journal], dict[str, str]]:
    """As ``read_journals``; what receipts of another topic's deletion tell already is in none of them.

    Raises:
        StorageUnavailable: the chain of receipts can't be read, and there is a journal of another topic.
    """
    paths = list(paths)
    journals, unreadable = read_journals(files, location, paths)

    @cache
    def is_told(table_id: str) -> bool:
        return told_before(files, drafts_among(location, paths), table_id, sealed(table_id)).is_any

    of_purges = {path: each.table_uuid for path, each in journals.items() if each.kind != DELETION}
    told = [path for path, whose in of_purges.items() if whose not in {None, topic_id} and is_told(str(whose))]
    there = set(comparable_forms(paths).values()) if told else set()
    return journals | {path: _only(journals[path], lambda form: form in there) for path in told}, unreadable


def for_purge(
    journals: Mapping[str, Journal], topic_id: str, there: Collection[str]
) -> tuple[dict[str, Journal], list[str]]:
    """What of journals a purge carries out, and the paths of those of deletions of its own topic that were taken back.

    ``there`` is in comparable form what lies in the folder: nothing of that goes by the journal of a deletion. One that
    does not say whose it is may be the topic's own.
    """
    of_deletions = {path: each for path, each in journals.items() if each.kind == DELETION}
    taken_back = [path for path, each in of_deletions.items() if each.table_uuid in {None, topic_id}]
    for path in taken_back:
        _logger.warning("%s is the journal of a deletion that was taken back; it is set aside", path)
    told = {path: _only(each, lambda form: form not in there) for path, each in of_deletions.items()}
    return {path: each for path, each in {**journals, **told}.items() if path not in taken_back}, taken_back


def set_taken_back_aside(
    removal: Removal, stored: dict[str, StoredFile], path: str, journal: Journal, new_id: str
) -> None:
    """Move the journal of a deletion that was taken back; it names files, and has no key and no value in it.

    It took over what purges had left outside of the folder. What is there of that, a journal of its own names.
    """
    sizes = {file.path: file.bytes for file in journal.segments + journal.metadata}
    forms, named = comparable_forms(sizes), removal.named()
    left = removal.elsewhere({each: sizes[each] for each in sizes if forms[each] not in named})
    if left:
        files = tuple(file for file in journal.segments + journal.metadata if file.path in left)
        kept = f"{journal_folder(removal.location)}{new_id}.json"
        removal.journals[kept] = Journal((), files, (), table_uuid=journal.table_uuid)
        write_journal(removal.files, kept, removal.journals[kept])
    set_aside(removal, stored, path, taken_back_folder(removal.location))


def set_aside(removal: Removal, stored: dict[str, StoredFile], path: str, folder: str = "") -> None:
    """Move a journal that nobody is to carry out to where no purge looks, for whoever wants to know what it was.

    ``stored`` is a listing by comparable path, and follows. Without a folder it is one that can't be read: nobody knows
    what is in it.
    """
    aside = (folder or unreadable_folder(removal.location)) + path.rpartition("/")[2]
    moved = replace(stored[comparable(path)], path=aside)
    with contextlib.suppress(FileNotFoundError):  # another purge has set it aside
        if comparable(aside) not in stored:
            removal.files.write_bytes(aside, removal.files.read_bytes(path))
            stored[comparable(aside)] = moved
    if removal.delete_or_tell(path):
        del stored[comparable(path)]


def _only(journal: Journal, is_meant: Callable[[str], bool]) -> Journal:
    """With those of its files whose comparable form is meant."""
    forms = comparable_forms(journal.paths)
    return journal.only(lambda file: is_meant(forms[file.path]))
