"""Topics that were seen in this home, that the catalog does not name any more, and whose files are still there.

That a topic is not listed does not say that keptlog has deleted it, which takes its files too:

    not listed, being deleted           a deletion that goes on           gone
    not listed, nothing in its folder   it was deleted                    gone
    not listed, another topic's table   another program has renamed it    gone under this name
    not listed, its files are there     **dropped** by another program, or the catalog was put back to an earlier time

What was known of a dropped topic still holds: nobody has mended its files, and the records of an erasure are stored. So
it counts as a topic that can't be read. Only topics that were seen in this home are asked for: another catalog may have
its own below the same warehouse. Nothing is asked while all of them are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.notify.checks import broken_checks, topic_checked
from keptlog.notify.memory import NotifyMemory
from keptlog.passes.observable import Observable
from keptlog.settings import home_folder
from keptlog.table.catalogs.embedded import warehouse_of
from keptlog.table.metadata.references import below, comparable
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.topic_storage import left_behind
from keptlog.table.waiting.reaching import reaching

_METADATA = "/metadata/"


def folder_of(location: str) -> str:
    """The folder of a table whose metadata lies there; empty if the location does not tell."""
    return location.rpartition(_METADATA)[0]


def dropped_topics(
    home: Path, store: Observable, listed: Mapping[str, str], is_meant: Callable[[str], bool] = lambda _topic: True
) -> dict[str, KeptlogError]:
    """Why these topics can't be read; ``listed`` has where the metadata of each topic lies that the catalog names."""
    folders = {topic: found for topic, found in _remembered(home).items() if topic not in listed and is_meant(topic)}
    if not folders:
        return {}
    try:
        asked = sorted(folders.keys() - {*store.being_deleted()})
    except StorageUnavailable as error:
        return dict.fromkeys(sorted(folders), error)
    tables = [comparable(location) for location in listed.values()]
    found = {topic: _why(store, topic, folders[topic], tables) for topic in asked}
    return {topic: why for topic, why in found.items() if why}


def _remembered(home: Path) -> dict[str, Collection[str]]:
    """Topics that were seen, or that verify has found broken, and where their files may lie."""
    folders = NotifyMemory(home).seen_folders()
    try:
        checked = {topic_checked(name) for name in broken_checks(home)}
    except KeptlogError:  # which is told by who looks for broken checks
        checked = set()
    usual = f"{warehouse_of(home_folder(home))}/{NAMESPACE}"
    return {topic: {f"{usual}/{topic}", *filter(None, [folders.get(topic)])} for topic in {*folders, *checked}}


def _why(store: Observable, topic: str, folders: Collection[str], tables: Collection[str]) -> KeptlogError | None:
    """Why a topic that is not listed can't be read; null if it is gone."""
    for folder in sorted(folders):
        if any(map(below(folder), tables)):
            continue
        try:
            with reaching(f"whether files of topic {topic}, which the catalog does not name, are left is not known"):
                paths = [each.path for each in store.files.list(folder)]
        except StorageUnavailable as error:
            return error
        if left_behind(folder, paths):
            return UnknownTopic(
                f"{topic}: the catalog does not name it any more, and its files are in {folder}. Another program "
                "dropped its table, or the catalog was put back from a backup. Nothing was deleted, and no purge comes "
                "there. keptlog doctor says how it is put back"
            )
    return None
