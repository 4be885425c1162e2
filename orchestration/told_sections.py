"""Which dirty sections Dagster was told of, and as what: a tick tells of those that have changed since.

A tick tells a few. First come those whose mark has come or gone, then those that nobody was told of or was told of
longest ago: twenty busy logs keep no other one from being told.

One home may be mounted twice, each time with assets of its own. So it is remembered mount by mount.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.orchestration.stored_ticks import ToldLast
from keptlog.log.assessment import Assessment
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.observer import Overview

_Version = tuple[str | None, str]
"""The id of the topic, and what its section is like: one of a later topic of the same name may be just like it."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What was told of one log."""

    version: _Version
    is_marked: bool
    turn: int
    """In the order of tellings."""


@dataclass
class ToldSections(ToldLast):
    """Of one mount."""

    is_none: bool = True
    """Whether nothing was told yet that this process knows of."""
    _told: dict[TopicPartition, _Told] = field(default_factory=dict)
    _turn: int = 0

    @classmethod
    def of(cls, tick: Tick) -> ToldSections:
        """Those of the mount whose sensor ticks."""
        return tick.log_store.remembered(cls, lambda _: cls(), tick.mount.name_prefix)

    def changed_in(self, seen: Overview) -> list[Assessment]:
        """Logs whose dirty section is not the one that was told last, in the order in which they are to be told."""
        changed = [each for each in seen.assessments if self._version_told(each) != _version(each)]
        return sorted(changed, key=self._waits)

    def _version_told(self, each: Assessment) -> _Version | None:
        told = self._told.get(each.log.topic_partition)
        return told.version if told else None

    def _waits(self, each: Assessment) -> tuple[bool, int]:
        told = self._told.get(each.log.topic_partition)
        if told is None:
            return True, 0
        return told.is_marked == _is_marked(each), told.turn

    def remember(self, sections: Iterable[Assessment]) -> None:
        """Take these dirty sections for told."""
        self._turn += 1
        told = {each.log.topic_partition: _Told(_version(each), _is_marked(each), self._turn) for each in sections}
        self._told.update(told)
        self.is_none &= not told

    def forget(self, logs: Iterable[TopicPartition] | None) -> None:
        """Take the dirty sections of these logs for told to nobody; all of them if null."""
        if logs is None:
            self._told.clear()
            self.is_none = True
        for log in logs or ():
            self._told.pop(log, None)

    def forget_all_but(self, topics: Collection[str]) -> None:
        """Take the dirty sections of other topics than these for told to nobody."""
        self._told = {log: told for log, told in self._told.items() if log.topic in topics}

    def forget_lost(self, topic: str, left: Collection[str]) -> None:
        """Take the dirty sections of a topic for told to nobody that are not ``left``: the topic-partitions told of."""
        self.forget([log for log in self._told if log.topic == topic and str(log) not in left])


def _version(each: Assessment) -> _Version:
    return each.log.topic_id, each.dirty_version


def _is_marked(each: Assessment) -> bool:
    return each.log.uncleanable is not None
