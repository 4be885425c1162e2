"""How far the topics here are behind their brokers, at the price of one catalog query and a few requests a cluster.

    here    [ 0 ............... 120 )
    there        [ 40 ................... 200 )        80 behind

What a topic remembers of its source changes only with its metadata location, so a scan reads the table of a topic only
after a commit: those that have changed side by side, for at most ``READING_MS``. What there was no time for is told as
not read, so a topic whose storage does not answer costs no other one its time.

Then all clusters are asked at once, each for all of its topics, and none is waited for longer than ``WAIT_SECONDS`` for
an answer. A cluster that does not answer is told with its reason, and the others are judged; so is a topic about which
nothing can be said, and a partition that has no leader.

What only an ingest can know that has read something, it has noted beside the log (``keptlog.log.stopped_ingest``).

What scans have seen of a topic is kept with its id: a later topic of the same name begins anew.
Which of it is news, and whether it is worth an ingest, others say: ``keptlog.ingest.lag_news``, ``LagThreshold``.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable, UnknownTopic
from keptlog.ingest.log_lag import LogLag
from keptlog.log.given.past import is_past, was_within
from keptlog.log.source import IngestPlan, SourceLog, SourceTopic, StoredSource, plan_ingest
from keptlog.log.stopped_ingest import StoppedIngest, still_stopped
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.named import named, unnamed
from keptlog.table.metadata.lineage import require_own
from keptlog.table.metadata.partitions import PARTITIONS
from keptlog.table.metadata.state import SOURCE, read_source, read_stopped_ingest
from keptlog.table.waiting.reaching import why_unseen
from keptlog.table.waiting.side_by_side import Patience, side_by_side

if TYPE_CHECKING:
    from keptlog.kafka_client.settings import ClientSettings
    from keptlog.sources.kafka_broker.topics import BrokerTopics
    from keptlog.table.store import LogStore

RECENT_MS = 300_000
"""So long what a scan has found is taken by those who don't ask brokers themselves."""
WAIT_SECONDS = 5
"""Whoever scans does so again soon, and a sensor's tick has a minute for everything."""
READING_MS = 15_000
"""So long a scan begins to read topics; a sensor's tick has a minute for everything."""
_CLUSTERS_AT_ONCE = 16
_NO_SOURCE = StoredSource(None, ())


@dataclass(frozen=True)
class TopicLag:
    """A topic here and its source, as they stand at one time."""

    topic: str
    location: str
    """Of its metadata."""
    positions: tuple[int | None, ...]
    plan: IngestPlan
    logs: Mapping[int, SourceLog]
    """By partition, what is there."""
    waiting_since_ms: int
    """Since when it is seen to be behind at these positions."""
    seen_ms: Mapping[int, int] = field(default_factory=dict)
    """By partition, when it was last seen to lack nothing at its position."""
    failed: Mapping[int, str] = field(default_factory=dict)
    """By partition, why it can't be looked at there."""
    noted: Mapping[int, str] = field(default_factory=dict)
    """By partition, why the last ingest stopped at what there is to be read."""

    @cached_property
    def lag(self) -> int:
        """Offsets that are yet to be read, where anything may be read; some may hold no record."""
        return sum(self._lags.values())

    @cached_property
    def _lags(self) -> Mapping[int, int]:
        return self.plan.lags

    def position(self, name: TopicPartition) -> int | None:
        """The next offset to be read; null if none ever was."""
        return self.positions[name.partition] if name.partition < len(self.positions) else None

    @property
    def behind(self) -> list[TopicPartition]:
        """What there is something to be read of."""
        return [TopicPartition(self.topic, each.partition) for each in self.plan.ranges]

    @cached_property
    def stopped(self) -> Mapping[TopicPartition, str]:
        """What must not be gone on with, and why."""
        reasons = {**self.noted, **self.plan.stopped}
        return {TopicPartition(self.topic, number): reason for number, reason in reasons.items()}

    @property
    def unseen(self) -> dict[TopicPartition, str]:
        """Of what nothing is known now, and why."""
        return {TopicPartition(self.topic, number): reason for number, reason in self.failed.items()}

    def lag_of(self, name: TopicPartition) -> LogLag:
        """Where a topic-partition stands."""
        stopped, number = self.stopped.get(name), name.partition
        lag = self._lags.get(number, 0 if stopped is None else None)
        return LogLag(stopped, self.position(name), self.logs.get(number), lag)

    @property
    def names(self) -> list[TopicPartition]:
        """All topic-partitions, here or there, of which something is known."""
        numbers = [number for number in range(self.plan.partitions) if number not in self.failed]
        return [TopicPartition(self.topic, number) for number in numbers]


@dataclass(frozen=True)
class LagThreshold:
    """When an ingest is worth it: enough offsets behind, or by fewer for long enough."""

    min_lag: int
    """Offsets of one topic."""
    max_wait_ms: int

    def due_ms(self, topic: TopicLag) -> int:
        """When a topic is due; 0 for at once."""
        return 0 if topic.lag >= self.min_lag else topic.waiting_since_ms + self.max_wait_ms


@dataclass(frozen=True)
class LagScan:
    """All topics that have a broker, as they stand at one time."""

    now_ms: int
    topics: tuple[TopicLag, ...]
    unanswered: tuple[str, ...]
    """What is not known, and why: a line for each cluster, topic and topic-partition without an answer."""
    silent: Mapping[str, KeptlogError] = field(default_factory=dict)
    """By address, why a cluster did not answer."""
    answered: frozenset[str] = frozenset()
    """The addresses of the clusters that did."""
    missing: Mapping[str, KeptlogError] = field(default_factory=dict)
    """By topic, why nothing is known of its source: it is not there, or can't be looked at now."""
    unread: Mapping[str, KeptlogError] = field(default_factory=dict)
    """By topic, why its source could not be read: it may have a broker, which was not asked."""

    @property
    def is_whole(self) -> bool:
        """Whether each topic's source could be read."""
        return not self.unread

    @property
    def asked(self) -> list[str]:
        """Topics of which something is known. That one can't be looked at, for whatever reason, says nothing of it."""
        gone = (topic for topic, why in self.missing.items() if isinstance(why, UnknownTopic))
        return [*(each.topic for each in self.topics), *gone]

    @property
    def stopped(self) -> dict[TopicPartition, str]:
        """What must not be gone on with, and why, of all topics."""
        return {name: reason for each in self.topics for name, reason in each.stopped.items()}

    @property
    def waiting(self) -> dict[TopicPartition, SourceLog]:
        """The logs there that have offsets which wait for an open transaction to end."""
        logs = {TopicPartition(each.topic, log.partition): log for each in self.topics for log in each.logs.values()}
        return {name: log for name, log in logs.items() if log.waiting}

    @property
    def unlooked(self) -> list[TopicPartition]:
        """Those of whose logs there nothing is known, in topics that have answered."""
        return [TopicPartition(one.topic, number) for one in self.topics for number in one.failed.keys() - one.logs]

    @property
    def unseen(self) -> dict[TopicPartition, str]:
        """Of what nothing is known in topics that have answered, and why."""
        return {name: reason for each in self.topics for name, reason in each.unseen.items()}


@dataclass
class _Seen:
    """What scans have seen of one topic."""

    waiting: tuple[tuple[int | None, ...], int] | None = None
    """At which positions it is behind, and since when."""
    current: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By partition, at which position it was last seen to lack nothing, and when."""


@dataclass(frozen=True)
class _Known:
    """What is known of a topic as it was at one metadata location."""

    id: str | None
    """Null if nothing may be written to it, it is no topic, or it could not be read: no lag is told of it."""
    location: str
    stored: StoredSource
    seen: _Seen
    why_unread: KeptlogError | None = None
    """Why its source could not be read; null if it was."""
    why_unwritable: KeptlogError | None = None
    """Why nothing may be written to it; null if it may."""
    stops: Mapping[int, StoppedIngest] = field(default_factory=dict)
    """By partition, what ingests have noted, be it still so or not."""
    damaged_stops: Mapping[int, str] = field(default_factory=dict)
    """By partition, why it can't be told whether they did."""


@dataclass(frozen=True)
class Sources:
    """Where the records of all topics come from, as it was read at one time; some may not have been read."""

    known: Mapping[str, _Known]

    @property
    def may_have_brokers(self) -> bool:
        """Whether a topic remembers a broker, or one can't be read that may."""
        return bool(_with_broker(self.known) or _unread(self.known))


@dataclass
class LagScanner:
    """Remembers the sources of one store's topics. Safe to use from several threads.

    ``monotonic_ms`` tells how long it reads; without one it reads as long as it takes.
    """

    store: LogStore
    monotonic_ms: Callable[[], int] = lambda: 0
    _known: dict[str, _Known] = field(default_factory=dict)
    _failed: list[str] = field(default_factory=list)
    """The topics that could not be read, in the order in which they were tried last."""
    _last: LagScan | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sources(self) -> Sources:
        """Read those of topics that have changed, or could not be read.

        Raises:
            StorageUnavailable: the catalog or the storage can't be reached.
        """
        patience = Patience(self.monotonic_ms, self.monotonic_ms() + READING_MS)
        with self._lock:
            locations = self.store.metadata_locations()
            known = {topic: self._known[topic] for topic in locations if self._is_known(topic, locations[topic])}
            changed = locations.keys() - known.keys()
            # What can't be read now is looked at again, at the same location too: after all others, longest ago first.
            again = [topic for topic in self._failed if topic in changed]
            in_turn = [*sorted(changed.difference(again)), *again]
            read = side_by_side(lambda topic: self._read(topic, locations[topic]), in_turn, patience=patience)
            known |= read
            self._failed = [*(topic for topic in again if topic not in read), *_unread(read)]
            for topic in locations.keys() - known.keys():
                late = StorageUnavailable(f"topic {topic} was not read: others took {READING_MS // 1000} s")
                known[topic] = _Known(None, locations[topic], _NO_SOURCE, _Seen(), why_unread=late)
            # Of one that can't be read now what was seen is kept: its position may be the same when it can.
            kept = {topic: each if each.id else self._known.get(topic) for topic, each in known.items()}
            self._known = {topic: each for topic, each in kept.items() if each}
        return Sources(known)

    def scan(self, settings: ClientSettings, now_ms: int, sources: Sources | None = None) -> LagScan:
        """Ask all brokers; those of ``sources``, if they were read just now.

        Raises:
            StorageUnavailable: the catalog or the storage can't be reached.
        """
        all_known = (sources or self.sources()).known
        with_broker = _with_broker(all_known)
        clusters: dict[str | None, set[str]] = defaultdict(set)
        for known in with_broker.values():
            if known.stored.source:
                clusters[known.stored.source.bootstrap].add(known.stored.source.topic)
        found = _ask(settings, clusters)
        silent = {where or "": answer for where, answer in found.items() if isinstance(answer, KeptlogError)}
        answered = frozenset(where for where, answer in found.items() if where and where not in silent)
        topics: list[TopicLag] = []
        missing: dict[str, KeptlogError] = {}
        unwritable: dict[str, str] = {}
        for topic, known in sorted(with_broker.items(), key=itemgetter(0)):
            source = known.stored.source
            answer = found[source.bootstrap] if source else None
            if known.why_unwritable:
                unwritable[topic] = f"its lag is not looked at: {unnamed(topic, known.why_unwritable)}"
                continue
            if source is None or answer is None or isinstance(answer, KeptlogError):
                continue
            if source.topic in answer.missing:
                missing[topic] = answer.missing[source.topic]
                continue
            try:
                lag = self._lag_of(topic, known, answer.topics[source.topic], now_ms)
            except Exception as error:  # noqa: BLE001  # as in ``_read``
                missing[topic] = why_unseen(topic, error)
                continue
            failed = answer.failed.get(source.topic, {})
            unknown = {number: why for number, why in known.damaged_stops.items() if number not in lag.plan.stopped}
            topics.append(replace(lag, failed=unknown | {number: str(error) for number, error in failed.items()}))
        unseen: dict[str, object] = {str(name): why for lag in topics for name, why in lag.unseen.items()}
        others = (named(name, why) for name, why in (missing | unwritable | unseen).items())
        unanswered = (*map(str, silent.values()), *others)
        self._last = LagScan(now_ms, tuple(topics), unanswered, silent, answered, missing, _unread(all_known))
        return self._last

    def recent(self, now_ms: int) -> LagScan | None:
        """What the last scan found, for whoever does not ask brokers himself; null if that was too long ago."""
        last = self._last
        return last if last and was_within(RECENT_MS, last.now_ms, now_ms) else None

    def _is_known(self, topic: str, location: str) -> bool:
        return topic in self._known and self._known[topic].location == location

    def _read(self, topic: str, location: str) -> _Known:
        stored = _NO_SOURCE
        try:
            table = self.store.load_table(topic)
            if not table.properties.keys() & {PARTITIONS, SOURCE}:  # it is no topic
                return _Known(None, location, stored, _Seen())
            stored = read_source(topic, table.properties)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
            return _Known(None, location, stored, _Seen(), why_unread=why_unseen(topic, error))
        try:
            require_own(table)
        except KeptlogError as error:
            return _Known(None, location, stored, _Seen(), why_unwritable=error)
        topic_id, before = str(table.metadata.table_uuid), self._known.get(topic)
        seen = before.seen if before and before.id == topic_id else _Seen()
        stops, damaged = _noted_stops(topic, len(stored.positions), table.properties)
        return _Known(topic_id, location, stored, seen, stops=stops, damaged_stops=damaged)

    def _lag_of(self, topic: str, known: _Known, there: SourceTopic, now_ms: int) -> TopicLag:
        stored, seen = known.stored, known.seen
        plan = plan_ingest(topic, stored, there)
        behind = {each.partition for each in plan.ranges} | plan.stopped.keys()
        current = {log.partition for log in there.logs} - behind
        with self._lock:
            positions, since_ms = seen.waiting or (None, now_ms)
            if positions != stored.positions or not plan.ranges or not is_past(since_ms, now_ms):
                since_ms = now_ms
            seen.waiting = stored.positions, since_ms
            seen_ms: dict[int, int] = {}
            for partition, position in enumerate(stored.positions):
                if position is not None and partition in current:
                    seen.current[partition] = position, now_ms
                at_position, at_ms = seen.current.get(partition, (None, 0))
                if at_position is not None and at_position == position and is_past(at_ms, now_ms):
                    seen_ms[partition] = at_ms
        logs = {log.partition: log for log in there.logs}
        noted = still_stopped(known.stops, plan, stored)
        return TopicLag(topic, known.location, stored.positions, plan, logs, since_ms, seen_ms, noted=noted)


def _noted_stops(
    topic: str, partitions: int, properties: Mapping[str, str]
) -> tuple[dict[int, StoppedIngest], dict[int, str]]:
    """What ingests have noted, by partition, and which notes can't be read: that hides nothing else of the topic."""
    stops: dict[int, StoppedIngest] = {}
    damaged: dict[int, str] = {}
    for number in range(partitions):
        try:
            if stop := read_stopped_ingest(topic, number, properties):
                stops[number] = stop
        except LogCorrupt as error:
            damaged[number] = str(error)
    return stops, damaged


def _unread(topics: Mapping[str, _Known]) -> dict[str, KeptlogError]:
    """Those whose sources could not be read, with the reasons."""
    return {topic: each.why_unread for topic, each in sorted(topics.items()) if each.why_unread}


def _with_broker(topics: Mapping[str, _Known]) -> dict[str, _Known]:
    """Those that remember a broker."""
    return {topic: each for topic, each in topics.items() if each.stored.source and each.stored.source.bootstrap}


def _ask(
    settings: ClientSettings, clusters: Mapping[str | None, set[str]]
) -> dict[str | None, BrokerTopics | KeptlogError]:
    """What each cluster says of its topics, or why it says nothing."""
    if not clusters:
        return {}
    with ThreadPoolExecutor(min(len(clusters), _CLUSTERS_AT_ONCE)) as threads:
        asked = {where: threads.submit(partial(_look, settings.at(where), names)) for where, names in clusters.items()}
        return {where: answer.result() for where, answer in asked.items()}


def _look(settings: ClientSettings, names: set[str]) -> BrokerTopics | KeptlogError:
    # A code location that is loaded asks no broker, and need not import a client.
    from keptlog.sources.kafka_broker.topics import look_at_topics  # noqa: PLC0415

    try:
        return look_at_topics(settings, sorted(names), WAIT_SECONDS)
    except KeptlogError as error:
        return error
