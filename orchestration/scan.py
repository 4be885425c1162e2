"""What the sensors know of all logs, at the price of one catalog query a tick.

A log's judgement changes by a commit, which moves its topic's metadata location, or by the clock, which then says so in
advance (``Assessment.due_ms``). So a scan asks the catalog for all metadata locations, reads only topics whose location
is new, and judges again only what the clock has reached. The three sensors live in one process and share one scanner.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from assets.numbers import dirty_version
from keptlog.errors import LogCorrupt, UnknownTopic
from keptlog.log.metrics import LastPass
from keptlog.log.selection import Assessment, Trigger, assess, in_order_of_urgency
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore
from resources.log_store import LogStoreResource


@dataclass(frozen=True)
class Scan:
    """All logs as they stand at one time."""

    now_ms: int
    assessments: tuple[Assessment, ...]
    locations: Mapping[str, str]
    """Topic to metadata location."""
    unreadable: Mapping[str, str]
    """Topic to the reason why its logs can't be read."""
    last_passes: Mapping[TopicPartition, LastPass]
    """What the last clean of each log cost."""

    def due(self, trigger: Trigger) -> list[Assessment]:
        """The logs that this trigger makes due, most urgent first."""
        return [each for each in in_order_of_urgency(self.assessments) if each.trigger is trigger]

    @property
    def digest(self) -> str:
        """A few characters that change whenever a topic does."""
        text = "\n".join(f"{topic} {location}" for topic, location in sorted(self.locations.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Scanner:
    """Remembers the topics of one store. Safe to use from several threads."""

    store: LogStore
    _judged: dict[str, list[Assessment]] = field(default_factory=dict)
    _last_passes: dict[str, dict[TopicPartition, LastPass]] = field(default_factory=dict)
    _unreadable: dict[str, str] = field(default_factory=dict)
    _locations: dict[str, str] = field(default_factory=dict)
    _reported: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def scan(self, now_ms: int) -> Scan:
        """Bring what is known up to date.

        Raises:
            StorageUnavailable: the catalog or the storage can't be reached.
        """
        with self._lock:
            locations = dict(self.store.metadata_locations())
            for topic in self._locations.keys() - locations.keys():
                self._forget(topic)
            for topic, location in locations.items():
                if self._locations.get(topic) != location:
                    self._read(topic, now_ms)
                    self._locations[topic] = location
                else:
                    self._judged[topic] = [_up_to_date(each, now_ms) for each in self._judged[topic]]
            assessments = tuple(each for topic in sorted(self._judged) for each in self._judged[topic])
            last_passes = {name: last for of_topic in self._last_passes.values() for name, last in of_topic.items()}
            return Scan(now_ms, assessments, locations, dict(self._unreadable), last_passes)

    def changed_dirty_sections(self, scan: Scan) -> list[Assessment]:
        """Logs whose dirty section is not the one that ``mark_reported`` last heard of."""
        reported = self._reported
        return [each for each in scan.assessments if reported.get(str(each.log.topic_partition)) != dirty_version(each)]

    def mark_reported(self, assessments: list[Assessment]) -> None:
        """Remember these dirty sections as told."""
        self._reported.update((str(each.log.topic_partition), dirty_version(each)) for each in assessments)

    @property
    def has_reported(self) -> bool:
        return bool(self._reported)

    def _read(self, topic: str, now_ms: int) -> None:
        self._forget(topic)
        try:
            self._judged[topic] = [assess(log, now_ms) for log in self.store.logs(topic)]
            self._last_passes[topic] = self.store.last_passes(topic)
        except (LogCorrupt, UnknownTopic) as error:
            self._judged[topic] = []
            self._unreadable[topic] = str(error)

    def _forget(self, topic: str) -> None:
        self._locations.pop(topic, None)
        self._judged.pop(topic, None)
        self._last_passes.pop(topic, None)
        self._unreadable.pop(topic, None)


_scanners: dict[Path, Scanner] = {}


def scanner_of(log_store: LogStoreResource) -> Scanner:
    """The scanner of a home, one in a process."""
    store = log_store.store
    scanner = _scanners.get(log_store.path)
    if scanner is None or scanner.store is not store:
        scanner = _scanners[log_store.path] = Scanner(store)
    return scanner


def _up_to_date(assessment: Assessment, now_ms: int) -> Assessment:
    is_reached = assessment.due_ms is not None and assessment.due_ms <= now_ms
    return assess(assessment.log, now_ms) if is_reached or now_ms < assessment.now_ms else assessment
