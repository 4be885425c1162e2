"""What the sensors know of all logs, at the price of one catalog query a tick.

A log's judgement changes by a commit, which moves its topic's metadata location, or by the clock, which then says so in
advance (``Assessment.due_ms``). So a scan asks the catalog for all metadata locations, reads only topics whose location
is new, and judges again only what the clock has reached. The three sensors live in one process and share one scanner.

After a restart, or when very many topics have changed at once, there may be more to read than a tick has time for:
Dagster kills a tick after a minute. So a scan reads for ``READING_MS`` and leaves the rest to the next one; until then
a topic that was not read is judged as it was last seen, or not at all. What a restarted process finds on the disk
(``keptlog.table.cache``) it need not read.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from keptlog.dagster.assets.numbers import dirty_version
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import LogCorrupt, UnknownTopic
from keptlog.home import monotonic_ms
from keptlog.log.assessment import Assessment, Trigger, assess, in_order_of_urgency
from keptlog.log.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.store import LogStore

READING_MS = 15_000
"""Per scan: far from Dagster's limit of a minute, also if three sensors wait for each other."""


@dataclass(frozen=True)
class Scan:
    """All logs as they stand at one time."""

    now_ms: int
    assessments: tuple[Assessment, ...]
    locations: Mapping[str, str]
    """Topic to metadata location, as it was read."""
    behind: int
    """How many topics have changed, or come, and are still to be read."""
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
    """Remembers the topics of one store. Safe to use from several threads. ``monotonic_ms`` tells how long it reads."""

    store: LogStore
    monotonic_ms: Callable[[], int] = monotonic_ms
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
        # Who waited for another sensor's scan has spent its time, and takes what that one has read.
        until_ms = self.monotonic_ms() + READING_MS
        with self._lock:
            locations = self.store.metadata_locations()
            for topic in self._locations.keys() - locations.keys():
                self._forget(topic)
            for topic, judged in self._judged.items():
                self._judged[topic] = [_up_to_date(each, now_ms) for each in judged]
            changed = [topic for topic, location in locations.items() if self._locations.get(topic) != location]
            read = 0
            while read < len(changed) and self.monotonic_ms() < until_ms:
                self._read(changed[read], locations[changed[read]], now_ms)
                read += 1
            assessments = tuple(each for topic in sorted(self._judged) for each in self._judged[topic])
            last_passes = {name: last for of_topic in self._last_passes.values() for name, last in of_topic.items()}
            return Scan(
                now_ms,
                assessments,
                dict(self._locations),
                len(changed) - read,
                dict(self._unreadable),
                last_passes,
            )

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

    def _read(self, topic: str, location: str, now_ms: int) -> None:
        try:
            observed = self.store.observe(topic, location)
        except (LogCorrupt, UnknownTopic) as error:
            self._forget(topic)
            self._judged[topic], self._locations[topic] = [], location
            self._unreadable[topic] = str(error)
            return
        self._forget(topic)
        self._judged[topic] = [assess(log, now_ms) for log in observed.logs]
        self._last_passes[topic] = dict(observed.last_passes)
        self._locations[topic] = observed.location

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
