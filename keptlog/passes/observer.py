"""The one way to look at all logs: what each holds, how each is judged, what its last clean cost. Changes nothing.

A topic is observed from its table, and what the table said is remembered on this machine's disk under the metadata
location at which it said so (``keptlog.table.reading.cache``). A log's judgement then changes by a commit, which moves
that location, or by the clock, which says so in advance (``Assessment.good_until_ms``). There are two ways to look:

    once               ``observe``     a command, a check: the named logs, or all
    again and again    ``Observer``    a sensor's process: asks for all locations, reads the topics whose location is
                                       new, judges again what the clock has reached

One thing moves without a commit: how far registered readers have read, for whom tombstones wait. Only topics in which
such a tombstone waits now are looked at again for it. And the files that say what a table holds may be lost. A disk of
this machine is asked about them at each look, for ``CHECKING_MS``, and about the others in the next ones. An object
store is asked whether it answers at all, at each look (``stores_asked``). A file that is lost there is noticed by
whoever reads the table.

Far catalogs and stores are mostly waited for, so topics are read side by side. After a restart, or when very many have
changed at once, there may still be more to read than a sensor's tick has time for: Dagster kills one after a minute.
So an observer asks where topics are for ``LOCATING_MS`` (one query where the catalog is a database, a request a topic
behind REST), reads for ``READING_MS``, and leaves the rest to the next look; until then a topic that was not asked for,
or not read, is judged as it was last seen, or not at all.

A topic that can't be read, for whatever reason, costs only itself, and is tried again at each look. But a dozen sensors
look one after the other. So where a storage was waited for in vain, the topic is left alone for ``TRIED_AGAIN_MS``.

What is remembered is never what a change is made from: passes read the tables (``keptlog.passes.names``). Nothing is
imported here that takes long, so that ``keptlog status`` starts quickly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.assessment import Assessment, Trigger, in_order_of_urgency
from keptlog.log.broker import BrokerConfig
from keptlog.log.declared import About
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Holder, Holdings
from keptlog.log.segment import Log
from keptlog.log.told.metrics import LastPass
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted
from keptlog.log.words.named import unnamed
from keptlog.passes.holders import knowing_the_clock
from keptlog.passes.judging import Judgements, judged_apart, seen_and_judged
from keptlog.passes.names import named_logs
from keptlog.passes.observable import Observable
from keptlog.passes.stores_asked import StoresAsked
from keptlog.table.metadata.metadata_files import MetadataFiles, are_whole
from keptlog.table.metadata.state import read_open_erasures
from keptlog.table.reading.away import stores_away
from keptlog.table.waiting.reaching import apart
from keptlog.table.waiting.rest import rests_until_ms
from keptlog.table.waiting.side_by_side import Patience, each_apart, side_by_side

if TYPE_CHECKING:
    from keptlog.table.metadata.logs import ObservedTopic

READING_MS = 15_000
"""Per look of an observer: far from Dagster's limit of a minute, also if three sensors wait for each other."""
LOCATING_MS = 3_000
"""Of a look in which nothing may have changed: a tick of a sensor is to end soon."""
CHECKING_MS = 100
"""The same: time for 20,000 files of a local disk, and for less of one that is far away."""


@dataclass(frozen=True)
class Overview:
    """Logs as they stand at one time."""

    now_ms: int
    assessments: tuple[Assessment, ...] = ()
    last_passes: Mapping[TopicPartition, LastPass] = field(default_factory=dict)
    """What the last clean of each log cost; logs that were never cleaned are not in it."""
    unreadable: Mapping[str, KeptlogError] = field(default_factory=dict)
    """Name to the reason why its logs can't be had."""
    locations: Mapping[str, str] = field(default_factory=dict)
    """Topic to the metadata location at which it was observed."""
    erasures: Mapping[str, OpenErasures] = field(default_factory=dict)
    """Topic to what is open of the erasures that were asked for."""
    behind: int = 0
    """How many topics have changed, or come, and are still to be read, or even to be asked for."""
    asked_ago_ms: int = 0
    """How long ago the catalog was asked for the topic that it was asked for first."""
    holdings: Mapping[str, Holdings] = field(default_factory=dict)
    """Topic to what its table tells of bytes that are not live."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Topic to where its records come from, as it is stored; appended topics are not in it."""
    about: Mapping[str, About] = field(default_factory=dict)
    """Topic to its description and owners."""
    unread_erasures: Mapping[str, OpenErasures] = field(default_factory=dict)
    """The same of topics whose logs can't be had, as far as their tables, or an earlier look, tell of them."""
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    """Whose settings may keep all logs from being cleaned."""
    record_counts: Mapping[str, int] = field(default_factory=dict)
    """Topic to how many records it holds, also in logs of it that were not named; an ``Observer`` does not count."""

    whole_topics: Mapping[str, Sequence[Log]] = field(default_factory=dict)
    """Topic to all its logs, also those that were not named; an ``Observer`` has them in ``assessments``."""

    @property
    def logs(self) -> list[Log]:
        return [each.log for each in self.assessments]

    @property
    def known_erasures(self) -> dict[str, OpenErasures]:
        """Topic to what is known of its erasures, also where its logs can't be had."""
        return {**self.unread_erasures, **self.erasures}

    @cached_property
    def open_erasures(self) -> dict[str, OpenErasures]:
        """The same of topics that have open ones: a deadline counts, whatever keeps the logs from being read."""
        return {topic: each for topic, each in self.known_erasures.items() if each.count}

    @property
    def outage(self) -> StorageUnavailable | None:
        """Why the storage of all topics does not answer; null if one did, or has something else that is wrong."""
        outages = [error for error in self.unreadable.values() if isinstance(error, StorageUnavailable)]
        return outages[0] if outages and len(outages) == len({*self.locations, *self.unreadable}) else None

    def but_for(self, unseen: Mapping[str, KeptlogError]) -> Overview:
        """The same once it has turned out that these can't be had either; itself where there are none."""
        return replace(self, unreadable={**self.unreadable, **unseen}) if unseen else self

    def behind_lines(self) -> list[str]:
        """What was not looked at yet, or a while ago, for people."""
        to_read = [f"{counted(self.behind, 'topic')} still to be read, in the next ticks"] if self.behind else []
        seconds = self.asked_ago_ms // 1000
        asked = f"the catalog was asked about some topics {seconds} s ago, there was no time for all since"
        return [*to_read, *([asked] if self.asked_ago_ms > LOCATING_MS else [])]

    def unreadable_lines(self, most: int) -> list[str]:
        """Which topics can't be read, and why: so many of them, and how many more there are."""
        told = [f"{name} can't be read: {unnamed(name, why)}" for name, why in self.unreadable.items()]
        more = len(told) - most
        return [*told[:most], *([f"and {counted(more, 'more topic')} can't be read"] if more > 0 else [])]

    def late_holders(self) -> list[Holder]:
        """What holds bytes past their deadline, as far as tables tell; what only the storage knows is not among it."""
        return [each for holdings in self.holdings.values() for each in holdings.late(self.now_ms)]

    def due(self, trigger: Trigger) -> list[Assessment]:
        """The logs that this trigger makes due, most urgent first."""
        return [each for each in in_order_of_urgency(self.assessments) if each.trigger is trigger]


def observe(store: Observable, names: Iterable[str] = (), *, now_ms: int) -> Overview:
    """Look once at the logs that ``names`` mean, all if there are none. What can't be had stops no other.

    Raises:
        StorageUnavailable: the catalog can't be reached.
    """
    names = list(names)
    look = _Look(store, None if names else store.metadata_locations())
    look.begin(now_ms)
    named = named_logs(look, names)
    assessments, unjudged = judged_apart(named.logs, now_ms)
    look.seen |= unjudged
    topics = {
        topic: look.seen_of(topic) for topic in dict.fromkeys(each.log.topic_partition.topic for each in assessments)
    }
    holdings = {topic: observed.holdings for topic, observed in (topics | look.away).items()}
    return Overview(
        now_ms,
        tuple(assessments),
        {name: last for observed in topics.values() for name, last in observed.last_passes.items()},
        {**named.unreadable, **named.by_name(unjudged)},
        {topic: observed.location for topic, observed in topics.items()},
        {topic: observed.erasures for topic, observed in topics.items()},
        holdings=knowing_the_clock(store, holdings, now_ms),
        sources={topic: observed.source_json for topic, observed in topics.items() if observed.source_json},
        about={topic: observed.about for topic, observed in topics.items()},
        record_counts={topic: record_count(observed.logs) for topic, observed in topics.items()},
        whole_topics={topic: observed.logs for topic, observed in topics.items()},
        unread_erasures=look.unread_erasures(),
        broker=BrokerConfig.of(store.broker_settings),
    )


def unread_erasures_of(store: Observable, topic: str, why: KeptlogError) -> OpenErasures | None:
    """What is open of the erasures of a topic that can't be read, by its table's properties; null if they can't be had.

    They are to be told: what keeps the logs from being read does not move a deadline.
    """
    if isinstance(why, StorageUnavailable | UnknownTopic):
        return None
    known = apart(topic, lambda: read_open_erasures(topic, store.load_table(topic).properties))
    return None if isinstance(known, KeptlogError) else known


def record_count(logs: Iterable[Log]) -> int:
    """How many records logs hold."""
    return sum(segment.record_count for log in logs for segment in log.segments)


@dataclass
class _Look:
    """What names are looked up in. All locations are asked for, and all topics read at once, if all logs are wanted."""

    store: Observable
    locations: Mapping[str, str] | None
    seen: dict[str, ObservedTopic | KeptlogError] = field(default_factory=dict)
    away: dict[str, ObservedTopic] = field(default_factory=dict)
    """What memory knows of topics whose store does not answer."""

    def begin(self, now_ms: int) -> None:
        """Read what is wanted anyhow, side by side. For a store that does not answer, memory does not either."""
        self.seen = each_apart(self._observed, self.locations or ())
        locations = {topic: seen.location for topic, seen in self.seen.items() if not isinstance(seen, KeptlogError)}
        for each in stores_away(self.store, locations, now_ms // 1000):
            self.away |= {topic: self.seen_of(topic) for topic in each.topics}
            self.seen |= dict.fromkeys(each.topics, each.why)

    def topics(self) -> Collection[str]:
        return self.store.topics() if self.locations is None else sorted(self.locations)

    def being_deleted(self) -> Collection[str]:
        return self.store.being_deleted()

    def logs(self, topic: str) -> Sequence[Log]:
        if topic not in self.seen:
            self.seen[topic] = apart(topic, lambda: self._observed(topic))
        return self.seen_of(topic).logs

    def unread_erasures(self) -> dict[str, OpenErasures]:
        """What is open of the erasures of topics that can't be read."""
        unread = {topic: seen for topic, seen in self.seen.items() if isinstance(seen, KeptlogError)}
        found = {topic: unread_erasures_of(self.store, topic, why) for topic, why in unread.items()}
        found |= {topic: observed.erasures for topic, observed in self.away.items()}
        return {topic: each for topic, each in found.items() if each and each.count}

    def seen_of(self, topic: str) -> ObservedTopic:
        """What was seen of a topic; raises what was raised then."""
        seen = self.seen[topic]
        if isinstance(seen, KeptlogError):
            raise seen
        return seen

    def _observed(self, topic: str) -> ObservedTopic:
        return self.store.observe(topic, None if self.locations is None else self.locations[topic])


@dataclass
class _Topic:
    """What was last seen of a topic."""

    location: str
    judged: Judgements = field(default_factory=lambda: Judgements([], []))
    """When a log is to be judged again is asked of a hundred thousand at each look, so it is kept."""
    last_passes: Mapping[TopicPartition, LastPass] = field(default_factory=dict)
    unreadable: KeptlogError | None = None
    erasures: OpenErasures = field(default_factory=OpenErasures)
    holdings: Holdings | None = None
    source_json: str | None = None
    about: About = field(default_factory=About)
    metadata_files: MetadataFiles = ()
    """Those that say all this."""
    rests_until_ms: int | None = None
    """Until when it is not tried again, on a clock that never goes back."""

    @property
    def assessments(self) -> Sequence[Assessment]:
        """How its logs stood at the last look."""
        return self.judged.assessments

    def away(self, why: KeptlogError) -> _Topic:
        """The same where its store does not answer, or it can't be judged: nothing is known of its logs now."""
        return replace(self, judged=Judgements([], []), last_passes={}, unreadable=why)

    def is_to_be_tried(self, monotonic_ms: int) -> bool:
        """Whether it could not be read and is to be read anew."""
        rests = self.rests_until_ms is not None and monotonic_ms < self.rests_until_ms
        return self.unreadable is not None and not rests

    def is_held(self, now_ms: int) -> bool:
        """Whether readers decide now over tombstones that could go by the clock."""
        horizons_ms = [each.earliest_delete_horizon_ms for each in self.assessments if each.log.holds.readers]
        return any(horizon_ms is not None and horizon_ms <= now_ms for horizon_ms in horizons_ms)


@dataclass
class Observer:
    """Looks at all logs of one store again and again. Safe to use from several threads.

    ``monotonic_ms`` tells how long it reads.
    """

    store: Observable
    monotonic_ms: Callable[[], int]
    last: Overview | None = None
    """What the last look saw, for whoever need not look again."""
    _seen: dict[str, _Topic] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stores: StoresAsked = field(init=False)

    def __post_init__(self) -> None:
        self._stores = StoresAsked(self.store, self.monotonic_ms)

    def look(self, now_ms: int) -> Overview:
        """Bring what is known up to date.

        Raises:
            StorageUnavailable: the catalog can't be reached, or not one of its topics. Else a topic costs only itself.
        """
        # Who waited for another look has spent its time, and takes what that one has read.
        until_ms = self.monotonic_ms() + READING_MS
        with self._lock:
            began_ms = self.monotonic_ms()
            locations = self.store.metadata_locations(Patience(self.monotonic_ms, began_ms + LOCATING_MS))
            self._seen = {topic: seen for topic, seen in self._seen.items() if topic in locations}
            for topic, seen in self._seen.items():
                if why := apart(topic, partial(seen.judged.judge_again, now_ms)):
                    self._seen[topic] = seen.away(why)
            changed = [topic for topic, location in locations.items() if self._location(topic) != location]
            # Who mends a file need not move the location: what could not be read is tried anew, longest ago first.
            unreadable = [
                topic for topic, seen in self._seen.items() if seen.is_to_be_tried(began_ms) and topic not in changed
            ]
            # Readers move without a commit: whoever is waited for is asked again where he stands.
            held = [topic for topic, seen in self._seen.items() if seen.is_held(now_ms) and topic not in changed]
            read = side_by_side(
                lambda topic: self._read(topic, locations[topic], now_ms),
                [*changed, *unreadable, *self._damaged(), *held],
                patience=Patience(self.monotonic_ms, until_ms),
            )
            for topic, seen in read.items():
                self._seen.pop(topic, None)
                self._seen[topic] = seen
            overview = self._overview(now_ms)
            if overview.outage:
                raise overview.outage
            behind = locations.to_be_asked + sum(topic not in read for topic in changed)
            self.last = replace(overview, behind=behind, asked_ago_ms=locations.asked_ago_ms)
            return self.last

    def _damaged(self) -> list[str]:
        """Topics whose files are not as they were when they were read, among those that were asked for longest ago."""
        patience = Patience(self.monotonic_ms, self.monotonic_ms() + CHECKING_MS)
        damaged = []
        for topic in [topic for topic, seen in self._seen.items() if not seen.unreadable]:
            if patience.is_over:
                break
            seen = self._seen.pop(topic)
            self._seen[topic] = seen
            if not are_whole(seen.metadata_files):
                damaged.append(topic)
        return damaged

    def _location(self, topic: str) -> str | None:
        return self._seen[topic].location if topic in self._seen else None

    def _read(self, topic: str, location: str, now_ms: int) -> _Topic:
        began_ms = self.monotonic_ms()
        found = seen_and_judged(self.store, topic, location, now_ms)
        if isinstance(found, KeptlogError):
            rests_ms = rests_until_ms(found, began_ms, self.monotonic_ms())
            before = self._seen.get(topic)
            open_then = before.erasures if before else OpenErasures()
            erasures = unread_erasures_of(self.store, topic, found) or open_then
            return _Topic(location, unreadable=found, erasures=erasures, rests_until_ms=rests_ms)
        observed, judged = found
        return _Topic(
            observed.location,
            judged,
            observed.last_passes,
            erasures=observed.erasures,
            holdings=observed.holdings,
            source_json=observed.source_json,
            about=observed.about,
            metadata_files=observed.metadata_files,
        )

    def _overview(self, now_ms: int) -> Overview:
        locations = {topic: seen.location for topic, seen in self._seen.items() if not seen.unreadable}
        away = self._stores.away(locations, now_ms)
        now = {topic: seen.away(away[topic]) if topic in away else seen for topic, seen in self._seen.items()}
        seen = dict(sorted(now.items()))
        return Overview(
            now_ms,
            tuple(each for topic in seen.values() for each in topic.assessments),
            {name: last for topic in seen.values() for name, last in topic.last_passes.items()},
            {name: topic.unreadable for name, topic in seen.items() if topic.unreadable},
            {name: topic.location for name, topic in seen.items()},
            {name: topic.erasures for name, topic in seen.items() if not topic.unreadable},
            holdings={name: topic.holdings for name, topic in seen.items() if topic.holdings},
            sources={name: topic.source_json for name, topic in seen.items() if topic.source_json},
            about={name: topic.about for name, topic in seen.items() if not topic.unreadable},
            unread_erasures={
                name: topic.erasures for name, topic in seen.items() if topic.unreadable and topic.erasures.count
            },
            broker=BrokerConfig.of(self.store.broker_settings),
        )
