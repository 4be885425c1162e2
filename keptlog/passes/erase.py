"""Erasure: what is asked for, brought on, and told, topic by topic (``keptlog.log.erasure`` says what that is).

    proposed --> asked for: one commit a topic --> brought on by cleans and purges --> looked at, again and again --> verified
      |                                                                                 |
      data; changes nothing                                              ``advance`` commits what is new

Topics are asked one by one. One that is broken is named, the others get theirs, and the same request again does what is
left. ``advance`` never cleans or purges anything itself: it sees how far those have come, and for ingested topics
whether a deletion has arrived from the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from keptlog.errors import InvalidConfig, KeptlogError, LogCorrupt, UnknownTopic, first_line
from keptlog.log.erasure import Erasure, ErasureState
from keptlog.log.erasure_deadline import PURGE_INTERVAL_MS
from keptlog.log.run_id import valid_run_id
from keptlog.passes.erasure_request import (
    DropRecords,
    ErasureList,
    ErasureProposal,
    ErasureRequest,
    ErasureResult,
    ErasureRow,
    Seal,
    SearchFiles,
    TopicProposal,
)
from keptlog.progress import Progress, silent
from keptlog.storage.key_hash import KeyHasher
from keptlog.table.reach import one_line
from keptlog.table.store import LogStore


@dataclass(frozen=True)
class Eraser:
    """Erases keys from the topics of one store.

    ``load_hasher`` is called when keys are to be hashed or looked for, not before: it may make the home's secret.
    """

    store: LogStore
    load_hasher: Callable[[], KeyHasher]
    new_id: Callable[[], str]
    search: SearchFiles | None = None
    """Null: live segments are looked through in this process, and nothing can be verified."""
    drop: DropRecords | None = None
    """Null: nothing can be dropped ``--here``."""
    seal: Seal | None = None
    purge_interval_ms: int = PURGE_INTERVAL_MS

    def hash_of(self, key: bytes) -> str:
        """The keyed hash of a key, as hex: what may stand in a run's configuration in place of the key."""
        raise NotImplementedError

    def propose(self, request: ErasureRequest, *, now_ms: int) -> ErasureProposal:
        """What a request would do; changes nothing.

        Raises:
            InvalidConfig: it has no keys, a deadline that has passed, or a reason with a key in it.
            UnknownTopic: there is no such topic.
        """
        raise NotImplementedError

    def request(self, proposal: ErasureProposal, *, now_ms: int, progress: Progress = silent) -> ErasureResult:
        """Ask for it: in each topic one commit, with its tombstones if it takes any. Again with the same id is harmless.

        Raises:
            InvalidConfig: the home is a copy, or was moved.
        """
        raise NotImplementedError

    def advance(self, topics: Iterable[str] = (), *, now_ms: int) -> ErasureList:
        """Look how far the open erasures of these topics are, all if none is named, and remember it.

        A topic without open erasures costs a look at its properties.
        """
        raise NotImplementedError

    def list(self, topics: Iterable[str] = (), *, now_ms: int) -> ErasureList:
        """All erasures of these topics that are remembered, the open ones as far as they are now."""
        raise NotImplementedError

    def verify(
        self, ids: Iterable[str] = (), topics: Iterable[str] = (), *, now_ms: int, progress: Progress = silent
    ) -> ErasureList:
        """Look through every file of the topics whose erasures are ``deleted``, and end those of which nothing is left.

        Raises:
            InvalidConfig: no such request; there is nothing to look through files with.
        """
        raise NotImplementedError
