"""A home that ``keptlog doctor`` looks at, and the ways to look: each look is made when it is asked for, and once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.holder import Holdings
from keptlog.log.segment import Log
from keptlog.log.told.conditions import Sighting
from keptlog.passes.holders import look_for_holders
from keptlog.passes.observer import Overview, observe
from keptlog.settings import require_entry
from keptlog.table.catalogs.embedded import DATABASE, damage_in
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.catalogs.home_folder import is_made, require_home
from keptlog.table.catalogs.home_location import Elsewhere, elsewheres
from keptlog.table.catalogs.outlived_copy import outlived, whole_copy
from keptlog.table.doctor.topic_exam import PutBack, TopicExam, examined, put_back
from keptlog.table.store import LogStore
from keptlog.table.waiting.reaching import apart
from keptlog.table.waiting.side_by_side import each_apart

if TYPE_CHECKING:
    from keptlog.passes.doctor.catalog_doctor import Certificate
    from keptlog.passes.doctor.proof_doctor import Proofs

NOT_OPENED = "the home can't be opened"
NO_FILES = "the files of the topics are not where the catalog says"


class NotLookedAt(Exception):
    """What a check needs can't be had; why is told by the check that asks for it, or by this, a line each."""


@dataclass(frozen=True)
class Patient:
    """A home, and the ways to look at it. Each way raises a KeptlogError where it can't."""

    home: Path
    now_ms: int
    settings: Mapping[str, Callable[[], object]]
    """What reads each kind of settings, by the place where they stand."""
    open_store: Callable[[], LogStore]
    sighting: Callable[[Overview], Sighting]
    """What people would be told of."""
    try_spark: Callable[[], object]
    proofs: Proofs
    probe: Callable[[], Certificate] | None = None
    """Probes the catalog; null if that is not wanted."""

    @cached_property
    def unread_settings(self) -> Mapping[str, KeptlogError]:
        """By the place where they stand, why settings can't be read."""
        found: dict[str, KeptlogError] = {}
        for place, read in self.settings.items():
            try:
                read()
            except KeptlogError as error:
                found[place] = error
        return found

    @cached_property
    def why_closed(self) -> KeptlogError | None:
        """Why this user may not enter the home; null if he may."""
        try:
            require_entry(self.home)
        except KeptlogError as error:
            return error
        return None

    @property
    def store(self) -> LogStore:
        """The opened home."""
        if isinstance(self._opened, KeptlogError):
            raise NotLookedAt(NOT_OPENED) from self._opened
        return self._opened

    @cached_property
    def _opened(self) -> LogStore | KeptlogError:
        """It is opened once: another try may be waited for as long as the first."""
        try:
            require_entry(self.home)
            if isinstance(self._is_made, StorageUnavailable):
                return self._is_made
            require_home(self.home)
            return self.open_store()
        except KeptlogError as error:
            return error

    @cached_property
    def topics(self) -> list[str]:
        try:
            return self.store.topics()
        except KeptlogError as error:
            raise NotLookedAt("the catalog can't be asked for its topics") from error

    @cached_property
    def elsewheres(self) -> Sequence[Elsewhere]:
        """Where the home was made, and where its tables are named besides, as far as that does not lead to it."""
        try:
            return elsewheres(self.home) if self._is_made is True else []
        except (sqlite3.Error, StorageUnavailable):  # whoever opens it says why
            return []

    @cached_property
    def _is_made(self) -> bool | StorageUnavailable:
        """Whether there is an embedded catalog; where another process holds it, that is waited for once."""
        try:
            return is_made(self.home / DATABASE)
        except StorageUnavailable as error:
            return error

    @cached_property
    def damage(self) -> str | None:
        """What is wrong inside of the embedded catalog; null if nothing is, or it is another one."""
        return damage_in(self.home / DATABASE) if self.is_embedded else None

    @property
    def is_embedded(self) -> bool:
        """Whether the catalog is the home's own, so that nobody else has it."""
        return isinstance(self.store.committer.catalog, EmbeddedCatalog)

    @property
    def is_copy(self) -> bool:
        """Whether all of the home is a copy, so that its catalog knows only what was there when it was made."""
        return self.is_embedded and whole_copy(self.elsewheres) is not None

    @property
    def has_warehouse(self) -> bool:
        """Whether the folder is there in which all files of the topics lie."""
        return not self._is_made or not self.topics or (self.home / "warehouse").is_dir()

    @cached_property
    def overview(self) -> Overview:
        self.require_files()
        try:
            return observe(self.store, now_ms=self.now_ms)
        except KeptlogError as error:
            raise NotLookedAt("the catalog can't be asked for its topics") from error

    @cached_property
    def exams(self) -> Mapping[str, TopicExam | KeptlogError]:
        """Each topic, or why it can't be looked at."""
        self.require_files()
        found = each_apart(lambda topic: examined(self.store, topic), self.topics)
        # A topic that was deleted just now is simply not there.
        return {topic: seen for topic, seen in found.items() if not isinstance(seen, UnknownTopic)}

    @property
    def seen(self) -> list[TopicExam]:
        """The topics that can be looked at."""
        return [each for each in self.exams.values() if isinstance(each, TopicExam)]

    @property
    def moved(self) -> Sequence[Elsewhere]:
        """Where the files of this home, or of a part, are named and do not lie any more."""
        return [each for each in self.elsewheres if not each.is_copy]

    @property
    def unread(self) -> list[str]:
        """The topics that can't."""
        return [topic for topic, each in self.exams.items() if isinstance(each, KeptlogError)]

    @cached_property
    def histories(self) -> Mapping[str, PutBack | KeptlogError | None]:
        """Of each topic that can't be read, how it was put back, or why nobody can tell; null if it was not."""
        return {topic: self._history(topic) for topic in self.unread if topic not in self.outlived}

    @cached_property
    def outlived(self) -> Sequence[str]:
        """Those of a copy, of which the original has let go what the copy names."""
        errors = {topic: each for topic, each in self.exams.items() if isinstance(each, KeptlogError)}
        try:
            return outlived(self.elsewheres, errors)
        except StorageUnavailable:  # then each is told as what was met
            return []

    @property
    def logs(self) -> list[Log]:
        return [log for each in self.seen for log in each.logs]

    def holdings(self) -> Mapping[str, Holdings | KeptlogError]:
        """Of each topic what holds bytes that are not live, or why that can't be looked at."""
        return each_apart(lambda topic: look_for_holders(self.store, topic, self.now_ms), [e.topic for e in self.seen])

    def require_files(self, part: str = "") -> None:
        """Where none of them is there, or none of a part (``Elsewhere.tables``), that is told once, of the home."""
        if not self.has_warehouse or any(not each.tables or part in each.tables for each in self.moved):
            raise NotLookedAt(NO_FILES)

    def _history(self, topic: str) -> PutBack | KeptlogError | None:
        error = self.exams[topic]
        if isinstance(error, StorageUnavailable):
            return error  # to wait for it once more, topic after topic, tells nothing
        return apart(topic, lambda: put_back(self.store, topic))
