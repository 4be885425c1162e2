"""What a person is to be told of: logs that are late, failed or stopped, and what keeps all of them from being cleaned.

A condition has a matter and a subject: ``uncleanable`` of ``users-0``. It is one thing that is wrong, from when it is
first seen until it is seen to be over. So there is one message when it begins and one when it clears, however often
somebody looks in between (``KnownCondition``):

    look          1     2     3     4     5
    users-0       -     bad   bad   ok    ok
    message             it began          it is over

Seven things complicate this:

1. **Not looked at.** A topic that can't be read is neither fine nor broken. What was known of its logs stays as it was.
   So a sighting says by matter which topics it judged, and which subjects in them not; only what was judged may clear.
2. **What may pass by itself** is told only if it lasts: a Spark server that is started again, a lost connection.
3. **Flapping.** A condition is over when it was not seen for a while; one that came back lately, after a longer while.
   Until then nothing is told, neither the end nor a new beginning.
4. **It gets worse.** A deadline is near before it has passed. That is one condition and two levels: it is told again
   when it gets worse, and not when it gets better.
5. **Several ways to reach people**, of which one may be broken. Each has its own list of what it was told. It is told
   what it does not know yet; a condition that is over before a way works again is not told there at all.
6. **A clock that was ahead.** What is remembered of a time that is still to come counts as of now. Else one look by
   such a clock would hold back messages for as long as it was ahead.
7. **At another offset it is another one**, as of open transactions. The end of the first is told before the next
   begins. Some way may still owe that end then, so what is over is stored with its offset: ``... at 5``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple

from keptlog.errors import Action, KeptlogError
from keptlog.log.assessment import Assessment, Trigger
from keptlog.log.broker import CLEANER_DISABLED, BrokerConfig
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.told.explain import due_if_off
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time

_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
REMEMBERED_MS = _HOUR_MS
"""A condition that comes back within this time after its end is one that flaps."""
_LONGEST_CALM_MS = _HOUR_MS
_MOST_RETURNS = 10
GIVEN_UP_MS = 7 * 24 * _HOUR_MS
"""After this time an end that could not be told is forgotten: its way to people was taken away."""
_LONGEST_TEXT = 700


class Matter(StrEnum):
    """What may be wrong."""

    DEADLINE = "compaction deadline"
    UNCLEANABLE = "uncleanable"
    INGEST = "stopped ingest"
    BROKER = "broker"
    CHECK = "broken check"
    ERASURE = "erasure deadline"
    UNREADABLE = "unreadable"
    CATALOG = "catalog"
    SPARK = "spark"
    SENSORS = "sensors"


class Level(IntEnum):
    """How bad it is."""

    OPEN = 0
    """Nothing to be told of; but what was told before is not over."""
    NEAR = 1
    """Nothing is broken yet."""
    BROKEN = 2


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on something is a condition."""

    deadline_near_ms: int = _HOUR_MS
    """A log that should have been cleaned already is this near its deadline."""
    late_ms: int = 15 * _MINUTE_MS
    """So long a log may be past ``max.compaction.lag.ms``: it becomes due only then, and a run takes its time."""
    erasure_near_ms: int = 10 * _MINUTE_MS
    """Passes are asked for as late as the deadline allows, the last of them a quarter of an hour before it."""
    attempts: int = 3
    """So many cleans failed, where another try may help. Where none can, one is enough."""
    silence_ms: int = 10 * _MINUTE_MS
    """So long the sensors may be silent."""
    settle_ms: int = 2 * _MINUTE_MS
    """So long must last what may pass by itself, and the calm after a condition."""

    def silent_after_ms(self, interval_ms: int) -> int:
        """So long may be silent what ticks each ``interval_ms``: slow ones may miss two ticks."""
        return max(self.silence_ms, 3 * interval_ms)


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is wrong at the time of a look."""

    matter: Matter
    subject: str
    """A topic-partition, a topic, or what else it is about."""
    text: str
    """One sentence for people. No record's key or value is in it."""
    topic: str = ""
    """Empty if it is about no topic."""
    level: Level = Level.BROKEN
    is_sure: bool = True
    """Whether it is told at once; else only if it lasts."""
    lasts_ms: int = 0
    """So long it must have been seen before it is told."""
    level_if_lasting: Level = Level.OPEN
    """How bad it is once it has lasted as long, where it is nothing before."""
    checks: tuple[str, ...] = ()
    """Which broke, if it is about checks."""
    offset: int | None = None
    """Where it is, of what is another one if it is somewhere else."""
    may_have_moved: bool = False
    """Whether it may be the same one at another offset too."""
    action: Action | None = None
    """What is to be done about the error that it comes from; null where it comes from none."""

    @property
    def id(self) -> str:
        return f"{self.matter} {self.subject}"


TIMELY_CHECKS = frozenset({"G8", "max_compaction_lag"})
"""Those that the clock breaks, and a pass mends; the others look at what is stored alone."""


class Evidence(NamedTuple):
    """What one way to look has found, and where it has looked."""

    conditions: Sequence[Condition] = ()
    judged: Mapping[Matter, Collection[str]] = {}
    """By matter, the topics that were judged, and subjects about no topic; the empty name stands for all of those."""
    unknown: Mapping[Matter, str] = {}
    """By matter, why nobody could look where there was something to look at."""
    unlooked: Mapping[Matter, Collection[str]] = {}
    """By matter, the subjects that nobody could look at in topics that were judged."""


@dataclass(frozen=True)
class Sighting:
    """What a look has found, and where it has looked."""

    now_ms: int
    conditions: tuple[Condition, ...] = ()
    judged: Mapping[Matter, Collection[str]] = field(default_factory=dict)
    is_gone: Callable[[str], bool] = lambda _topic: False
    """Whether there is certainly no such topic any more."""
    is_left: Callable[[str], bool] = lambda _address: False
    """Whether certainly no topic comes from the cluster of this address any more."""
    unknown: Mapping[Matter, str] = field(default_factory=dict)
    """By matter, why nobody could look where there was something to look at."""
    unlooked: Mapping[Matter, Collection[str]] = field(default_factory=dict)
    """As in ``Evidence``."""

    def with_evidence(self, found: Evidence) -> Sighting:
        """The same with what else was found, about other matters."""
        return replace(
            self,
            conditions=(*self.conditions, *found.conditions),
            judged={**self.judged, **found.judged},
            unknown={**self.unknown, **found.unknown},
            unlooked={**self.unlooked, **found.unlooked},
        )

    def covers(self, known: KnownCondition) -> bool:
        """Whether the condition would have been seen if it were still there."""
        judged = self.judged.get(known.matter, ())
        is_judged = known.topic in judged or (not known.topic and known.subject in judged)
        is_judged = is_judged and known.subject not in self.unlooked.get(known.matter, ())
        if is_judged or known.matter is not Matter.BROKER:
            return is_judged or bool(known.topic and self.is_gone(known.topic))
        return self.is_left(known.subject)

    @property
    def levels(self) -> dict[str, Condition]:
        """By id, the worst of what is seen of it."""
        worst: dict[str, Condition] = {}
        for each in self.conditions:
            if each.id not in worst or worst[each.id].level < each.level:
                worst[each.id] = each
        return worst


class Event(StrEnum):
    """What a message tells of a condition."""

    BEGAN = "began"
    GOT_WORSE = "got worse"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True)
class KnownCondition:
    """A condition as it is remembered from look to look."""

    matter: Matter
    subject: str
    text: str
    topic: str
    since_ms: int
    """When it was first seen."""
    announced: int = 0
    """The level that people are to know of; 0 while it may still pass by itself."""
    level: int = 0
    """As it was last seen."""
    calm_since_ms: int | None = None
    """Since when it is not seen any more."""
    ended_ms: int | None = None
    """When it was taken to be over."""
    returns: int = 0
    """How often it came back soon after its end."""
    told: Mapping[str, int] = field(default_factory=dict)
    """By way to people, the level that was told; 0 once the end was told."""
    checks: tuple[str, ...] = ()
    """As in ``Condition``, by the last look that saw it."""
    offset: int | None = None
    """As in ``Condition``, by the last look that saw it."""

    @property
    def id(self) -> str:
        """Once it is over, with its offset: its end may be owed to some way while another one is seen."""
        name = f"{self.matter} {self.subject}"
        return name if self.ended_ms is None else _once_over(name, self.offset)

    @property
    def is_news(self) -> bool:
        """Whether people know of it, or are to."""
        return bool(self.announced or any(self.told.values()))

    def is_another(self, seen: Condition) -> bool:
        """Whether what is seen under its id is not the one that is remembered, so that this one is over."""
        return self.ended_ms is None and self.offset != seen.offset and not seen.may_have_moved

    @property
    def holds(self) -> bool:
        """Whether it was seen by the last look that could see it, and something is wrong."""
        return self.level > Level.OPEN and self.calm_since_ms is None and self.ended_ms is None

    def event_for(self, way: str) -> Event | None:
        """What is still to be told on one way; null if nothing is."""
        level = self.told.get(way, 0)
        if self.ended_ms is not None:
            return Event.CLEARED if level else None
        if self.calm_since_ms is not None or level >= self.announced:
            return None
        return Event.GOT_WORSE if level else Event.BEGAN

    def once_told(self, way: str) -> KnownCondition:
        """The same after ``event_for`` was told."""
        level = 0 if self.ended_ms is not None else self.announced
        return replace(self, told={**self.told, way: level})

    def as_of(self, now_ms: int) -> KnownCondition:
        """The same, with no time in it that is still to come."""
        calm_since_ms, ended_ms = (at_ms and min(at_ms, now_ms) for at_ms in (self.calm_since_ms, self.ended_ms))
        return replace(self, since_ms=min(self.since_ms, now_ms), calm_since_ms=calm_since_ms, ended_ms=ended_ms)


def after_look(known: Iterable[KnownCondition], seen: Sighting, settle_ms: int) -> list[KnownCondition]:
    """What is remembered after one more look."""
    before, now = {each.id: each.as_of(seen.now_ms) for each in known}, seen.levels
    # Of what people know they are told the end before another one of its id begins.
    news = {name: each for name, each in before.items() if each.is_news}
    ending = {name for name, each in now.items() if name in news and news[name].is_another(each)}
    there = {name: each for name, each in now.items() if name not in ending}
    present = [_present(_remembered(before, each), each, seen.now_ms, settle_ms) for each in there.values()]
    gone = before.keys() - there.keys() - {_once_over(name, each.offset) for name, each in there.items()}
    absent = [_absent(before[name], seen, settle_ms) for name in gone]
    return sorted([*present, *(each for each in absent if each)], key=lambda each: (each.since_ms, each.id))


def _once_over(name: str, offset: int | None) -> str:
    return name if offset is None else f"{name} at {offset}"


def _remembered(before: Mapping[str, KnownCondition], seen: Condition) -> KnownCondition | None:
    """What is seen, as it was: one that goes on, or one that was over and is back where it was."""
    found = (before.get(name) for name in (seen.id, _once_over(seen.id, seen.offset)))
    return next((each for each in found if each and not each.is_another(seen)), None)


def _present(before: KnownCondition | None, seen: Condition, now_ms: int, settle_ms: int) -> KnownCondition:
    if before is None:
        before = KnownCondition(seen.matter, seen.subject, seen.text, seen.topic, now_ms)
    elif before.ended_ms is not None:
        before = replace(before, since_ms=now_ms, announced=0, ended_ms=None, returns=before.returns + 1)
    to_last_ms = seen.lasts_ms if seen.is_sure else max(seen.lasts_ms, settle_ms)
    lasts = now_ms - before.since_ms >= to_last_ms
    level = int(max(seen.level, seen.level_if_lasting) if lasts else seen.level)
    announced = max(before.announced, level) if lasts else before.announced
    before = replace(before, level=level, announced=announced, calm_since_ms=None)
    return replace(before, text=seen.text, checks=seen.checks, offset=seen.offset)


def _absent(before: KnownCondition, seen: Sighting, settle_ms: int) -> KnownCondition | None:
    now_ms = seen.now_ms
    if before.ended_ms is not None:
        is_untold = any(before.told.values())
        return before if now_ms - before.ended_ms < (GIVEN_UP_MS if is_untold else REMEMBERED_MS) else None
    if not seen.covers(before):
        return before
    since_ms = now_ms if before.calm_since_ms is None else before.calm_since_ms
    calm_ms = min(settle_ms << min(before.returns, _MOST_RETURNS), max(_LONGEST_CALM_MS, settle_ms))
    if now_ms - since_ms < calm_ms:
        return replace(before, calm_since_ms=since_ms)
    # What nobody was to know of leaves no trace.
    return replace(before, calm_since_ms=since_ms, ended_ms=now_ms) if before.is_news else None


def log_conditions(
    assessments: Iterable[Assessment], broker: BrokerConfig, now_ms: int, limits: Thresholds
) -> Iterator[Condition]:
    """Logs that can't be cleaned, or are not cleaned in time."""
    for each in assessments:
        if not each.log.config.is_compacted:
            continue
        name, mark, off = each.log.topic_partition, each.log.uncleanable, due_if_off(each, broker)
        if mark and (mark.attempts >= limits.attempts or mark.action != Action.RETRY):
            yield Condition(Matter.UNCLEANABLE, str(name), _line(f"{name} is {mark.told(now_ms, off)}"), name.topic)
        deadline_ms = each.deadline_ms
        if deadline_ms is None:
            continue
        why = f": {CLEANER_DISABLED}" if off else ""
        text = f"{name} has records that were to be compacted by {iso_time(deadline_ms)} (max.compaction.lag.ms)"
        if now_ms - deadline_ms > limits.late_ms:
            # Old records that have just come in are past it at once: their clean is given its time too.
            late = f"{text}, and are not{why}"
            yield Condition(Matter.DEADLINE, str(name), late, name.topic, lasts_ms=limits.late_ms)
        # That a deadline comes near is how most logs are cleaned. It matters where a clean was due before, or failed.
        elif deadline_ms - now_ms < limits.deadline_near_ms and (mark or each.trigger):
            if each.trigger is Trigger.MAX_COMPACTION_LAG and not mark:
                yield Condition(Matter.DEADLINE, str(name), text, name.topic, Level.OPEN)
                continue
            near = f"{text}, and a clean that was due has not done it yet{why}"
            yield Condition(Matter.DEADLINE, str(name), near, name.topic, Level.NEAR, is_sure=False)


def erasure_conditions(erasures: Mapping[str, OpenErasures], now_ms: int, limits: Thresholds) -> Iterator[Condition]:
    """Erasures that are not done by their deadline, and those that hardly will be; one condition a topic."""
    for topic, each in erasures.items():
        deadline_ms = each.earliest_deadline_ms
        if not each.count or deadline_ms is None:
            continue
        if each.is_overdue(now_ms):
            overdue = counted(each.overdue_count(now_ms), "erasure")
            text = f"{topic} has {overdue} past the deadline, the earliest was {iso_time(deadline_ms)}"
            yield Condition(Matter.ERASURE, topic, text, topic)
        elif deadline_ms - now_ms < limits.erasure_near_ms:
            text = f"{topic} has an open erasure whose deadline is {iso_time(deadline_ms)}"
            yield Condition(Matter.ERASURE, topic, text, topic, Level.NEAR)


def unreadable_condition(topic: str, reason: str, *, is_outage: bool) -> Condition:
    """A topic that can't be read; what only does not answer may pass by itself."""
    text = reason if reason.startswith(topic) else f"{topic}: {reason}"
    return Condition(Matter.UNREADABLE, topic, _line(f"can't be read: {text}"), topic, is_sure=not is_outage)


def stopped_condition(name: str, topic: str, reason: str, action: Action | None = None) -> Condition:
    """A topic-partition that an ingest leaves alone."""
    return Condition(Matter.INGEST, name, _line(f"the ingest of {name} is stopped: {reason}"), topic, action=action)


def unseen_condition(name: str, topic: str, reason: str) -> Condition:
    """A topic-partition, or a whole topic, that an ingest can't read now, as while a leader is elected."""
    return replace(stopped_condition(name, topic, reason, Action.RETRY), is_sure=False)


def silent_condition(address: str, error: KeptlogError) -> Condition:
    """A cluster that topics are ingested from does not answer, or not as it is asked."""
    text = _line(f"nothing can be ingested: {error}")
    return Condition(Matter.BROKER, address, text, is_sure=False, action=error.action)


def check_condition(name: str, topic: str, problems: Mapping[str, str]) -> Condition:
    """A log, or something else that ``verify`` looks at, with what is broken by check."""
    told = "; ".join(f"{check}: {problem}" for check, problem in sorted(problems.items()))
    return Condition(
        Matter.CHECK, name, _line(f"verify found {name} broken: {told}"), topic, checks=tuple(sorted(problems))
    )


def outage_condition(matter: Matter, reason: str) -> Condition:
    """The catalog, or Spark, does not answer."""
    return Condition(matter, "all topics", _line(f"no log can be cleaned: {reason}"), is_sure=False)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]} …"
