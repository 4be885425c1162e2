"""Which passes open erasures need now, so that their deadlines hold, and what is waited for otherwise.

Nothing is read here: it follows from the overview, which has for each topic what its erasures need and by when
(``open_erasures``), and from how long passes take (``erasure_schedule``, both in ``keptlog.log.erasures``). A pass is
asked for from a certain time on, if it can do anything yet:

    clean           a segment of a log with a tombstone can be cleaned
    expiry          a tombstone's delete horizon has passed; a clean as well
    purge           file.delete.delay.ms has passed since the records left the log
    verification    at once

A topic of which nobody can tell it is named with the reason, and costs only itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial

from keptlog.errors import KeptlogError
from keptlog.log.assessment import Assessment
from keptlog.log.config import TopicConfig
from keptlog.log.erasures.erasure_schedule import PassTimes, ask_ms
from keptlog.log.erasures.open_erasures import BY_A_CLEAN, BY_A_RUN, IN_LOG, ErasureNeed, NeedyErasures, OpenErasures
from keptlog.log.erasures.prospect import LookedLogs, may_be_further
from keptlog.log.given.past import is_past
from keptlog.log.sections import expirable
from keptlog.log.segment import Log
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import next_time
from keptlog.passes.observer import Overview
from keptlog.table.waiting.reaching import apart, parted

_IN_WORDS = {
    ErasureNeed.SOURCE: "a deletion at the source",
    ErasureNeed.REPEAT: "its request to be made again, with the same id: the pass that drops records has not ended",
    ErasureNeed.RETENTION: "retention",
    ErasureNeed.CLEAN: "a clean",
    ErasureNeed.EXPIRY: "the expiry of tombstones",
    ErasureNeed.PURGE: "a purge",
    ErasureNeed.VERIFICATION: "a verification",
}


@dataclass(frozen=True, slots=True)
class TopicNeed:
    """What some erasures of one topic need, and from when on it is asked for."""

    topic: str
    needy: NeedyErasures
    ask_ms: int | None
    """Null if nobody asks for it: it comes by itself, or from outside."""
    logs: tuple[Assessment, ...] = ()
    """Of those that were looked at because it is time to ask: the ones that a clean would bring on."""
    possible_ms: int = 0
    """Since when it can be done; in the future if it can't yet, or if a clock that was ahead has dated it."""

    @property
    def need(self) -> ErasureNeed:
        return ErasureNeed(self.needy.need)

    def is_possible(self, now_ms: int) -> bool:
        """Whether it may be done by now; a time that is still to come says nothing against it."""
        return self.possible_ms <= now_ms or not is_past(self.needy.since_ms, now_ms)

    @property
    def deadline_ms(self) -> int | None:
        return self.needy.earliest_deadline_ms

    @property
    def settled_ms(self) -> int:
        """Since when no other erasure has come to have it, and no deadline is ahead. In the future if one is."""
        newest_ms = self.needy.newest_since_ms
        # What an older keptlog has remembered tells the earliest deadline alone.
        last_ms = self.needy.latest_deadline_ms or self.deadline_ms or 0
        return max(self.possible_ms if newest_ms is None else newest_ms, last_ms)

    def told(self, now_ms: int) -> str:
        """What is waited for, and until when."""
        what = f"{self.topic}: {counted(self.needy.count, 'erasure')} waiting for {_IN_WORDS[self.need]}"
        deadline = "" if self.deadline_ms is None else f", deadline {next_time(self.deadline_ms)[3:]}"
        if self.ask_ms is None:
            return what + deadline
        when_ms = self.ask_ms if self.is_possible(now_ms) else max(self.ask_ms, self.possible_ms)
        if when_ms > now_ms:
            return f"{what}, asked for {next_time(when_ms)}{deadline}"
        if self.need in BY_A_CLEAN and not self.logs:
            return f"{what}, which can do nothing yet{deadline}"
        return what + deadline


@dataclass(frozen=True, slots=True)
class PassLengths:
    """How long the last runs took that say so nowhere in a topic, and when that was asked."""

    asked_ms: int
    purge_ms: int
    verification_ms: int


@dataclass(frozen=True, slots=True)
class NeedsNow:
    """What open erasures need at one time."""

    all: Sequence[TopicNeed] = ()
    """Soonest first."""
    ripe: Sequence[TopicNeed] = ()
    """Of these, those for which a run is to be asked now, with the logs that it is to clean."""
    unjudged: Mapping[str, KeptlogError] = field(default_factory=dict)
    """Topic to why nobody can tell what its erasures need; they are not among the others."""


@dataclass
class KnownNeeds:
    """What erasures need, kept from tick to tick: a topic's needs change with its metadata location alone."""

    _lengths: PassLengths | None = None
    _by_topic: dict[str, tuple[str, tuple[TopicNeed, ...]]] = field(default_factory=dict)
    """With the location at which they were found."""

    def of(self, seen: Overview, topics: Iterable[str], lengths: PassLengths) -> NeedsNow:
        """What the erasures of these topics need."""
        known = self._by_topic if lengths == self._lengths else {}
        topics = set(topics)
        # What was found of a topic before it changed is not kept: nobody may be able to tell what it needs by now.
        now = {topic: each for topic, each in known.items() if topic in topics and each[0] == seen.locations[topic]}
        changed = topics - now.keys()
        found, unfound = parted(_found(seen, changed, lengths) if changed else {})
        now |= {topic: (seen.locations[topic], needs) for topic, needs in found.items()}
        self._lengths, self._by_topic = lengths, now
        ripe, unripe = parted(_ripe({topic: needs for topic, (_, needs) in self._by_topic.items()}, seen))
        unjudged = {**unfound, **unripe}
        told = [need for topic, (_, needs) in self._by_topic.items() if topic not in unjudged for need in needs]
        asked = [need for needs in ripe.values() for need in needs]
        return NeedsNow(sorted(told, key=_soonest), sorted(asked, key=_soonest), unjudged)


_FoundAt = tuple[str, LookedLogs | None]
"""At which location that was found, and what was there at the look before; null if nobody knows: a look of which nobody
knows any more whether it was has to be made again."""


@dataclass
class KeptErasures:
    """Which topics' erasures no look brings on before the time that is stored with them, kept from tick to tick.

    That time is of the settings as they were when it was stored. By altered ones what they wait for may be passed, or
    be gone, sooner; but only by a commit, so a topic is judged anew once its metadata location has changed. Those that
    all wait for a clean are brought on by a commit alone, whatever the time: it is when one could first pass them. Once
    looked at, they and those that wait for their expiry are so by a clean alone, and those that wait for their age by
    retention: most commits are others. What a run is to bring on says nothing of them.
    """

    _by_topic: dict[str, _FoundAt] = field(default_factory=dict)

    def of(
        self, seen: Overview, topics: Mapping[str, OpenErasures], looked: Mapping[str, LookedLogs]
    ) -> AbstractSet[str]:
        """Those of these topics; one that can't be judged is among them until that time."""
        now_ms = seen.now_ms
        early = {topic for topic, each in topics.items() if each.ahead_ms(now_ms) is not None}
        waiting = {topic for topic, each in topics.items() if _all_wait_in_log(each)}
        judged = early | waiting
        found_at: dict[str, _FoundAt] = {
            topic: (seen.locations[topic], looked.get(topic) if topic in waiting else None) for topic in judged
        }
        kept = {topic: at for topic, at in self._by_topic.items() if found_at.get(topic) == at}
        logs: dict[str, list[Log]] = {topic: [] for topic in judged - kept.keys()}
        for each in seen.assessments if logs else ():
            if each.log.topic_partition.topic in logs:
                logs[each.log.topic_partition.topic].append(each.log)
        looks = {
            topic: partial(may_be_further, topics[topic], now_ms, of_topic, found_at[topic][1])
            for topic, of_topic in logs.items()
        }
        found, _ = parted({topic: apart(topic, look) for topic, look in looks.items()})
        self._by_topic = kept | {topic: found_at[topic] for topic, is_further in found.items() if not is_further}
        return self._by_topic.keys() | (early & logs.keys() - found.keys())


def by_a_look(erasures: OpenErasures) -> Sequence[NeedyErasures]:
    """Those that a look may find further: the others are left to the run that brings them on."""
    return [each for each in erasures.needs if each.need not in BY_A_RUN]


def _all_wait_in_log(erasures: OpenErasures) -> bool:
    needs = by_a_look(erasures)
    return bool(needs) and all(each.need in IN_LOG for each in needs)


def _found(seen: Overview, topics: set[str], lengths: PassLengths) -> dict[str, tuple[TopicNeed, ...] | KeptlogError]:
    logs = [each.log for each in seen.assessments if each.log.topic_partition.topic in topics]
    configs = {log.topic_partition.topic: log.config for log in logs}
    clean_ms: dict[str, int] = {}
    for name, last in seen.last_passes.items():
        clean_ms[name.topic] = max(last.duration_ms, clean_ms.get(name.topic, 0))
    found: dict[str, tuple[TopicNeed, ...] | KeptlogError] = {}
    for topic, config in configs.items():
        times = PassTimes(clean_ms.get(topic, 0), lengths.purge_ms, lengths.verification_ms)
        found[topic] = apart(topic, partial(_needs_of, topic, seen.erasures[topic], config, times))
    return found


def _needs_of(topic: str, erasures: OpenErasures, config: TopicConfig, times: PassTimes) -> tuple[TopicNeed, ...]:
    """Where nothing is compacted any more, no clean brings on what waits for one: retention does, if anything."""
    delays_ms = {ErasureNeed.PURGE.value: config.file_delete_delay_ms}
    aged = frozenset[str]() if config.is_compacted else BY_A_CLEAN
    needs = (replace(each, need=ErasureNeed.RETENTION.value) if each.need in aged else each for each in erasures.needs)
    return tuple(
        TopicNeed(topic, each, ask_ms(each, config, times), (), each.since_ms + delays_ms.get(each.need, 0))
        for each in needs
    )


def _ripe(by_topic: Mapping[str, Sequence[TopicNeed]], seen: Overview) -> dict[str, list[TopicNeed] | KeptlogError]:
    """Topic to what of it is to be asked for now, with the logs to clean; topics of which nothing is are left out."""
    due = {
        topic: [each for each in needs if each.ask_ms is not None and each.ask_ms <= seen.now_ms]
        for topic, needs in by_topic.items()
    }
    logs: dict[str, list[Assessment]] = defaultdict(list)
    for each in seen.assessments if any(due.values()) else ():
        logs[each.log.topic_partition.topic].append(each)
    return {
        topic: apart(topic, partial(_all_with_logs, needs, logs[topic], seen.now_ms))
        for topic, needs in due.items()
        if needs
    }


def _all_with_logs(needs: Sequence[TopicNeed], logs: Sequence[Assessment], now_ms: int) -> list[TopicNeed]:
    return [_with_logs(each, logs, now_ms) for each in needs if each.is_possible(now_ms)]


def _with_logs(need: TopicNeed, logs: Sequence[Assessment], now_ms: int) -> TopicNeed:
    if need.need not in BY_A_CLEAN:
        return need
    of_partition = [
        each
        for each in logs
        if not need.needy.partitions or each.log.topic_partition.partition in need.needy.partitions
    ]
    ready = [each for each in of_partition if _is_ready(each, need.need, now_ms)]
    return replace(need, logs=tuple(ready))


def _is_ready(log: Assessment, need: ErasureNeed, now_ms: int) -> bool:
    """Whether a clean would do something; one that failed lately is left alone until it is tried again."""
    mark, horizon_ms = log.log.uncleanable, log.earliest_delete_horizon_ms
    if mark and mark.is_waiting(now_ms):
        return False
    # A tombstone in the segment that first dirty lies in may go only with the next compaction.
    is_compacted = len(expirable(log.log, log.sections)) < len(log.sections.clean)
    if need is ErasureNeed.CLEAN or horizon_ms is None or (is_compacted and log.sections.cleanable):
        return bool(log.sections.cleanable)
    return horizon_ms <= now_ms


def _soonest(need: TopicNeed) -> tuple[bool, int, str]:
    return need.ask_ms is None, need.ask_ms or 0, need.topic
