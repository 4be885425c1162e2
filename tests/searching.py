"""One look through a topic for keys: what a verification of erasures (``erase_verify``) does in rounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.engine.search_tasks import KeySearch
from keptlog.log.search import FileFindings, SearchedFile
from keptlog.progress import Progress, silent
from keptlog.table.removal.search import bounds_of, searched_files
from keptlog.table.waiting.reaching import reaching

if TYPE_CHECKING:
    from keptlog.engine.engine import Engine
    from keptlog.storage.key_hash import KeyHasher
    from keptlog.table.store import LogStore


@dataclass(frozen=True, slots=True)
class Searcher:
    """Looks topics of one store through with one engine, for keys that are given by their hashes."""

    store: LogStore
    engine: Engine
    hasher: KeyHasher

    def search(
        self,
        topic: str,
        key_hashes: Iterable[bytes],
        run_id: str,
        *,
        others: Iterable[SearchedFile] = (),
        progress: Progress = silent,
    ) -> list[FileFindings]:
        """What each file of a topic has of these keys; ``others`` are files that no listing shows: object versions.

        Raises:
            UnknownTopic: no such topic.
            LogCorrupt: what the table refers to can't be read.
            StorageUnavailable: the storage can't be listed, or Spark fails.
        """
        with reaching(f"files of topic {topic} can't be listed"):
            files = [*searched_files(lambda: self.store.load_table(topic), self.store.files), *others]
        search = KeySearch(files, frozenset(key_hashes), self.hasher, bounds_of)
        return self.engine.search(search, run_id, progress)
