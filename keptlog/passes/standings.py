"""How logs stand: from what is remembered as far as that is good, and from a look at the topics where it is not.

    remembered, and nothing has changed        the numbers alone: no log is put together, none is judged
    the table is known, the numbers are not    its logs are judged, and the numbers remembered for the next time
    a commit came since the last look          the table is read, as by any look (``keptlog.passes.observer``)

Whether files are there is never remembered: it is asked of the disk each time, of those that say what the table holds
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.assessment import Assessment, assess
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Holder, Holdings
from keptlog.log.segment import Log
from keptlog.log.told.metrics import CleanerMetrics, added_up, metrics_of
from keptlog.log.told.standing import LogStanding, worst_standings
from keptlog.log.told.stored_files import WrongFile, why_no_purge
from keptlog.log.told.topic_standing import TopicStanding, topic_standing
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.holders import knowing_the_clock
from keptlog.passes.observer import Overview, observe, unread_erasures_of
from keptlog.passes.stored_files import are_on_disk, files_on_disk, still_wrong, wrong_on_disk
from keptlog.table.reading.away import stores_away
from keptlog.table.waiting.reaching import apart
from keptlog.table.waiting.side_by_side import each_apart, side_by_side

if TYPE_CHECKING:
    from keptlog.table.unopened import UnopenedStore


@dataclass(frozen=True)
class Standings:
    """How logs stand at one time."""

    now_ms: int
    topics: Mapping[str, TopicStanding]
    unreadable: Mapping[str, KeptlogError]
    """Name to the reason why its logs can't be had."""
    judged: Mapping[str, Sequence[Log]] = field(default_factory=dict)
    """The logs of those topics that were not remembered."""
    named: Sequence[TopicPartition] | None = None
    """The logs that were asked for, in this order; null if all were."""
    unread_erasures: Mapping[str, OpenErasures] = field(default_factory=dict)
    """Topic to what is open of its erasures, of those that can't be read, as far as their tables tell of them."""
    away: Mapping[str, StorageUnavailable] = field(default_factory=dict)
    """Store to why it does not answer, though memory does for its topics: they are shown as they were then."""

    @property
    def logs(self) -> int:
        """How many."""
        return sum(each.logs for each in self.topics.values())

    @property
    def holdings(self) -> Mapping[str, Holdings]:
        """Topic to what its table tells of bytes that are not live."""
        return {topic: each.holdings for topic, each in self.topics.items()}

    def all(self) -> list[LogStanding]:
        """Of each log: as they were asked for, or by name."""
        of_logs = {each.topic_partition: each for topic in self.topics.values() for each in topic.standings()}
        return [of_logs[name] for name in (sorted(of_logs) if self.named is None else self.named)]

    def worst(self, limit: int) -> list[LogStanding]:
        """At most so many, the worst first."""
        return worst_standings(self.topics.values(), self.now_ms, limit)

    def metrics(self) -> CleanerMetrics:
        """Over all of them."""
        still_open = [*(each.erasures for each in self.topics.values()), *self.unread_erasures.values()]
        return metrics_of(added_up(each.tally for each in self.topics.values()), still_open, self.now_ms)

    def metrics_of_log(self, standing: LogStanding) -> CleanerMetrics:
        """Of one of them."""
        still_open = self.topics[standing.topic_partition.topic].erasures
        return metrics_of(standing.tally, [still_open], self.now_ms)

    def late_holders(self) -> list[Holder]:
        """What holds bytes past their deadline, as far as tables tell."""
        return [each for holdings in self.holdings.values() for each in holdings.late(self.now_ms)]

    def knowing(self, wrong: Mapping[TopicPartition, Sequence[WrongFile] | StorageUnavailable]) -> Standings:
        """The same, told by who knows which files are wrong: where one is lost, nobody is sent to a purge."""
        topics = dict(self.topics)
        for name, found in wrong.items():
            lost = [] if isinstance(found, StorageUnavailable) else [each for each in found if each.is_missing]
            standing = topics[name.topic]
            if lost and not standing.holdings.no_purge:
                holdings = replace(standing.holdings, no_purge=why_no_purge(lost[0].path))
                topics[name.topic] = replace(standing, holdings=holdings)
        return replace(self, topics=topics)

    def topic_of(self, name: str) -> str | None:
        """The topic of which a name is a log's; null if that is not among these."""
        topic = name.rpartition("-")[0]
        if topic in self.topics and name in {str(each.topic_partition) for each in self.topics[topic].standings()}:
            return topic
        return None


def look_at_standings(store: UnopenedStore, names: Iterable[str] = (), *, now_ms: int) -> Standings:
    """How the logs stand that ``names`` mean, all if there are none. What can't be had stops no other.

    Raises:
        StorageUnavailable: the catalog can't be reached.
    """
    names = list(names)
    if names:
        return _of_named(observe(store, names, now_ms=now_ms))
    locations = store.metadata_locations()
    known = {topic: store.standings.get(topic, location, now_ms) for topic, location in locations.items()}

    def look(topic: str) -> tuple[TopicStanding, Sequence[Log]]:
        return _looked_at(store, topic, locations[topic], now_ms)

    looked = each_apart(look, sorted(topic for topic, standing in known.items() if standing is None))
    topics, unreadable, judged = dict(known), {}, {}
    for topic, found in looked.items():
        if isinstance(found, KeptlogError):
            unreadable[topic] = found
        else:
            topics[topic], judged[topic] = found
    # A topic that was deleted just now is simply not there.
    gone = {topic: error for topic, error in unreadable.items() if not isinstance(error, UnknownTopic)}
    erasures = {topic: unread_erasures_of(store, topic, error) for topic, error in gone.items()}
    shown = {topic: location for topic, location in locations.items() if topics[topic]}
    there = {name: each for name, each in sorted(topics.items()) if each}
    holdings = knowing_the_clock(store, {name: each.holdings for name, each in there.items()}, now_ms)
    return Standings(
        now_ms,
        {name: replace(each, holdings=holdings[name]) for name, each in there.items()},
        gone,
        judged,
        unread_erasures={topic: each for topic, each in erasures.items() if each},
        away={each.name: each.why for each in stores_away(store, shown, now_ms // 1000)},
    )


def wrong_files_on_disk(
    seen: Standings, store: UnopenedStore, again: UnopenedStore
) -> dict[TopicPartition, list[WrongFile] | StorageUnavailable]:
    """Topic-partition to what is wrong with its files, where they lie on a disk, or why they can't be looked at.

    Logs that are not known are had from ``store``. ``again`` is asked for topics that seem damaged: whoever replaced
    and purged a file meanwhile has done no harm.
    """
    suspected = {topic for topic, each in seen.topics.items() if not _is_whole(each)}
    unknown = suspected - seen.judged.keys()
    locations = {topic: seen.topics[topic].location for topic in suspected}
    logs = side_by_side(lambda topic: _logs(store, topic, locations[topic]), sorted(unknown))
    wrong = wrong_on_disk(log for topic in sorted(suspected) for log in seen.judged.get(topic) or logs[topic])
    later = side_by_side(lambda topic: _logs(again, topic), sorted({name.topic for name in wrong}))
    now = {log.topic_partition: log for of_topic in later.values() for log in of_topic}
    left = {name: _still_wrong(found, now[name]) for name, found in wrong.items() if name in now}
    return {name: found for name, found in left.items() if found}


def _still_wrong(found: list[WrongFile] | StorageUnavailable, now: Log) -> list[WrongFile] | StorageUnavailable:
    return found if isinstance(found, StorageUnavailable) else still_wrong(found, now)


def _is_whole(standing: TopicStanding) -> bool:
    """Whether all its files are on the disk; false also if that is to be asked file by file."""
    files = standing.files()
    return files is not None and are_on_disk(files)


def _looked_at(store: UnopenedStore, topic: str, location: str, now_ms: int) -> tuple[TopicStanding, Sequence[Log]]:
    observed = store.observe(topic, location)
    judged = [assess(log, now_ms) for log in observed.logs]
    of_topic = observed.location, observed.holdings, observed.erasures
    standing = topic_standing(judged, observed.last_passes, of_topic, files_on_disk(observed.logs), now_ms)
    if observed.is_remembered:
        store.standings.put(topic, standing, observed.metadata_files)
    return standing, observed.logs


def _of_named(seen: Overview) -> Standings:
    by_topic: dict[str, list[Assessment]] = {}
    for each in seen.assessments:
        by_topic.setdefault(each.log.topic_partition.topic, []).append(each)
    topics, judged = {}, {}
    for topic, assessments in by_topic.items():
        judged[topic] = [each.log for each in assessments]
        of_topic = seen.locations[topic], seen.holdings[topic], seen.erasures[topic]
        files = files_on_disk(judged[topic])
        topics[topic] = topic_standing(assessments, seen.last_passes, of_topic, files, seen.now_ms)
    named = [log.topic_partition for log in seen.logs]
    return Standings(seen.now_ms, topics, seen.unreadable, judged, named, seen.unread_erasures)


def _logs(store: UnopenedStore, topic: str, location: str | None = None) -> Sequence[Log]:
    """The logs of a topic; none if they can't be had any more."""
    seen = apart(topic, lambda: store.observe(topic, location))
    return () if isinstance(seen, KeptlogError) else seen.logs
