"""Which dirty sections Dagster was told of, and as what: a tick tells of those that have changed since.

Dagster alone knows for sure, and a process may live for two ticks only: the daemon begins a new one each minute where
nobody has started a code server. So each new process asks Dagster, some logs a tick, and goes on where the last one
has left off. Of what it was not asked about yet, nothing is told.

A tick tells a few. First come those whose mark has come or gone, then those that nobody was told of or was told of
longest ago: twenty busy logs keep no other one from being told.

One home may be mounted twice, each time with assets of its own. So it is remembered mount by mount.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from keptlog.dagster.assets.last_results import TOPIC_ID
from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.numbers import DIRTY_VERSION, UNCLEANABLE
from keptlog.dagster.orchestration.stored_ticks import ToldLast, behind
from keptlog.log.assessment import Assessment
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.observer import Overview

ASKED_PER_TICK = 400
"""Logs; of each an event is read from Dagster's database, in a ms or less. Topics are asked about as a whole."""
_TOPIC_TAKES = 4
"""What a topic takes beside its events, as that many logs: two queries."""
_READ_AT_ONCE = 500
"""Events: a database takes so many ids in one query."""
_Version = tuple[str | None, str]
"""The id of the topic, and what its section is like: one of a later topic of the same name may be just like it."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What was told of one log."""

    version: _Version
    is_marked: bool
    turn: tuple[bool, int]
    """In the order of tellings: what this process has told comes after all that it has asked about."""


@dataclass
class ToldSections(ToldLast):
    """Of one mount."""

    is_none: bool = True
    """Whether nothing was told yet that this process knows of."""
    _told: dict[TopicPartition, _Told] = field(default_factory=dict)
    _turn: int = 0
    _known: set[str] = field(default_factory=set)
    """The topics of which it is known what was told."""
    _unasked: set[str] = field(default_factory=set)
    """Those of them of which this process has not asked Dagster."""

    @classmethod
    def of(cls, tick: Tick) -> ToldSections:
        """Those of the mount whose sensor ticks."""
        return tick.log_store.remembered(cls, lambda _: cls(), tick.mount.name_prefix)

    def ask(self, tick: Tick, seen: Overview, shown: Collection[str], turn: str) -> str:
        """Ask Dagster what it was told of some topics, from behind ``turn`` on; gives the last of them.

        It shows nothing of those that are not ``shown``.
        """
        self._known |= seen.locations.keys() - shown
        asked, unknown = 0, self._unknown(seen)
        for topic in behind(turn, unknown):
            if asked >= ASKED_PER_TICK:
                break
            asked, turn = asked + _TOPIC_TAKES + len(unknown[topic]), topic
            self._told.update(_told_of(tick, topic, unknown[topic]))
            self._known.add(topic)
        self.is_none &= not self._told
        return turn

    def knows_all(self, seen: Overview) -> bool:
        """Whether it is known of all topics what was told; those that can't be read keep nobody waiting."""
        return not seen.behind and not self._unknown(seen)

    def _unknown(self, seen: Overview) -> dict[str, list[Assessment]]:
        """By topic the logs of which it is not known what was told."""
        logs: dict[str, list[Assessment]] = defaultdict(list)
        if not seen.locations.keys() <= self._known:
            for each in seen.assessments:
                if each.log.topic_partition.topic not in self._known:
                    logs[each.log.topic_partition.topic].append(each)
        return logs

    def changed_in(self, seen: Overview) -> list[Assessment]:
        """Logs whose dirty section is not the one that was told last, in the order in which they are to be told."""
        changed = [each for each in seen.assessments if self._version_told(each) != _version(each)]
        known = [each for each in changed if each.log.topic_partition.topic in self._known]
        return sorted(known, key=self._waits)

    def _version_told(self, each: Assessment) -> _Version | None:
        told = self._told.get(each.log.topic_partition)
        return told.version if told else None

    def _waits(self, each: Assessment) -> tuple[bool, tuple[bool, int]]:
        told = self._told.get(each.log.topic_partition)
        if told is None:
            return True, (False, 0)
        return told.is_marked == _is_marked(each), told.turn

    def remember(self, sections: Iterable[Assessment]) -> None:
        """Take these dirty sections for told."""
        self._turn += 1
        turn = True, self._turn
        told = {each.log.topic_partition: _Told(_version(each), _is_marked(each), turn) for each in sections}
        self._told.update(told)
        self._known |= {log.topic for log in told}
        self.is_none &= not told

    def take_for_told(self, sections: Sequence[Assessment]) -> None:
        """Take these dirty sections for told without asking Dagster: it may have lost them since."""
        self.remember(sections)
        self._unasked |= {each.log.topic_partition.topic for each in sections}

    def is_unasked(self, topic: str) -> bool:
        """Whether Dagster was not asked what it was told of a topic: that was concluded."""
        return topic in self._unasked

    def forget(self, logs: Iterable[TopicPartition] | None) -> None:
        """Take the dirty sections of these logs for told to nobody; all of them if null."""
        if logs is None:
            self._told.clear()
            self._known.clear()
            self.is_none = True
        for log in logs or ():
            self._told.pop(log, None)

    def forget_all_but(self, topics: Collection[str]) -> None:
        """Take the dirty sections of other topics than these for told to nobody."""
        self._told = {log: told for log, told in self._told.items() if log.topic in topics}
        self._known.intersection_update(topics)

    def forget_lost(self, topic: str, left: Collection[str]) -> None:
        """Take the dirty sections of a topic for told to nobody that are not ``left``: the topic-partitions told of."""
        self.forget([log for log in self._told if log.topic == topic and str(log) not in left])


def _told_of(tick: Tick, topic: str, logs: Sequence[Assessment]) -> Iterator[tuple[TopicPartition, _Told]]:
    """What Dagster was told last of each of these logs of a topic; nothing of one of which it was told nothing."""
    key, instance = tick.keys.dirty(topic), tick.context.instance
    last = instance.event_log_storage.get_latest_storage_id_by_partition(key, dg.DagsterEventType.ASSET_MATERIALIZATION)
    names = {last[name]: each.log.topic_partition for each in logs if (name := str(each.log.topic_partition)) in last}
    ids = list(names)
    for start in range(0, len(ids), _READ_AT_ONCE):
        filters = dg.AssetRecordsFilter(asset_key=key, storage_ids=ids[start : start + _READ_AT_ONCE])
        for record in instance.fetch_materializations(filters, limit=_READ_AT_ONCE).records:
            told = record.asset_materialization.metadata if record.asset_materialization else {}
            turn = False, record.storage_id
            yield names[record.storage_id], _Told(_version_in(told), UNCLEANABLE in told, turn)


def _version_in(told: Mapping[str, dg.MetadataValue[Any]]) -> _Version:
    """As what a section was told. An ingest does not say it, nor does an older keptlog: no section is like theirs."""
    topic_id, version = (told[name].value if name in told else None for name in (TOPIC_ID, DIRTY_VERSION))
    return None if topic_id is None else str(topic_id), str(version or "")


def _version(each: Assessment) -> _Version:
    return each.log.topic_id, each.dirty_version


def _is_marked(each: Assessment) -> bool:
    return each.log.uncleanable is not None
