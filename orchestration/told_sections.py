"""Which dirty sections Dagster was told of, and as what: a tick tells of those that have changed since.

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


@dataclass
class ToldSections(ToldLast):
    """Of one mount."""

    is_none: bool = True
    """Whether nothing was told yet that this process knows of."""
    _versions: dict[TopicPartition, _Version] = field(default_factory=dict)

    @classmethod
    def of(cls, tick: Tick) -> ToldSections:
        """Those of the mount whose sensor ticks."""
        return tick.log_store.remembered(cls, lambda _: cls(), tick.mount.name_prefix)

    def changed_in(self, seen: Overview) -> list[Assessment]:
        """Logs whose dirty section is not the one that was told last."""
        return [each for each in seen.assessments if self._versions.get(each.log.topic_partition) != _version(each)]

    def remember(self, sections: Iterable[Assessment]) -> None:
        """Take these dirty sections for told."""
        told = {each.log.topic_partition: _version(each) for each in sections}
        self._versions.update(told)
        self.is_none &= not told

    def forget(self, logs: Iterable[TopicPartition] | None) -> None:
        """Take the dirty sections of these logs for told to nobody; all of them if null."""
        if logs is None:
            self._versions.clear()
            self.is_none = True
        for log in logs or ():
            self._versions.pop(log, None)

    def forget_all_but(self, topics: Collection[str]) -> None:
        """Take the dirty sections of other topics than these for told to nobody."""
        self._versions = {log: told for log, told in self._versions.items() if log.topic in topics}


def _version(each: Assessment) -> _Version:
    return each.log.topic_id, each.dirty_version
