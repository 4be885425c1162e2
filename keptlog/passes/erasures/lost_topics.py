"""Open requests of topics whose table is no topic any more: another program has dropped or renamed it, and left files.

Their register lies in the folder, and no topic names it. So no look brings them on, and a request that was asked of
other topics too would be verified there alone, with the records still in that folder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, LogCorrupt, UnknownTopic
from keptlog.log.erasures.erasure import Erasure, further
from keptlog.log.words.counted import some_of
from keptlog.table.doctor.needed_there import NOT_LISTED, with_topics
from keptlog.table.doctor.unowned import UnownedFolder, unowned_folders
from keptlog.table.removal.erasure_register import read_register_file
from keptlog.table.removal.journal import erasures_folder
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore

_NAMED = 3


def requests_of_lost_topics(store: LogStore | UnopenedStore, ids: Collection[str]) -> dict[str, KeptlogError]:
    """Folder to what is to be done about it: those in which one of these requests is open, or any if none is named."""
    try:
        return dict(_found(store, ids))
    except KeptlogError as error:
        return {NOT_LISTED: error}


def _found(store: LogStore | UnopenedStore, ids: Collection[str]) -> Iterator[tuple[str, KeptlogError]]:
    looked = [(folder, _still_open(store, folder, ids)) for folder in unowned_folders(store)]
    told = {folder.path: found for folder, found in looked if found}
    # What topics need there costs a look at each of them.
    for folder in with_topics(store, [folder for folder, found in looked if found]):
        found = told[folder.path]
        if isinstance(found, LogCorrupt):
            yield folder.path, found.reworded(f"{found}; where there is none, {folder.todo}")
        elif isinstance(found, KeptlogError):
            yield folder.path, found
        else:
            what = f"{folder}, and no verification looks there for the keys of {some_of(found, _NAMED)}"
            yield folder.path, UnknownTopic(f"{what}; {folder.todo}")


def _still_open(
    store: LogStore | UnopenedStore, folder: UnownedFolder, ids: Collection[str]
) -> list[str] | KeptlogError:
    """Those of these requests that are open in it, or of all if none is named; or why nobody can tell."""
    try:
        with reaching(f"the erasures in {folder.path} can't be read"):
            still_open = [each.id for each in _erasures_in(store, folder) if each.is_open]
    except KeptlogError as error:
        return error
    return [each for each in still_open if not ids or each in ids]


def _erasures_in(store: LogStore | UnopenedStore, folder: UnownedFolder) -> Collection[Erasure]:
    """As the register has them that is furthest: older ones lie beside it, and a copy of the files has other times."""
    registers = sorted(store.files.list(erasures_folder(folder.path)), key=lambda file: (file.modified_ms, file.path))
    found: dict[str, Erasure] = {}
    for file in registers:
        with suppress(FileNotFoundError):  # whoever wrote a newer one has deleted it since it was listed
            for each in read_register_file(store.files, file.path):
                found[each.id] = further(each, found.get(each.id, each))
    return found.values()
