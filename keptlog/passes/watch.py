"""Looks whether a person must be told of something, and tells them: the sensor and ``keptlog notify`` do this.

One look is a sighting, put together from several kinds of evidence: what the logs show, what verify has left, brokers,
Spark, the sensors' last ticks. Each says for itself where it has looked, so what can't be had is simply not there, and
clears nothing. What becomes of a sighting is decided in ``keptlog.log.told.conditions``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable, first_line
from keptlog.log.told.conditions import (
    Condition,
    Evidence,
    Matter,
    Sighting,
    Thresholds,
    after_look,
    check_condition,
    erasure_conditions,
    log_conditions,
    outage_condition,
    silent_condition,
    stopped_condition,
    unreadable_condition,
    unseen_condition,
)
from keptlog.log.told.open_transaction import hanging_condition, hanging_subject
from keptlog.log.told.silent_sensors import failing_condition, silence_condition
from keptlog.log.topic_partition import TopicPartition
from keptlog.notify.adapters import Adapter, adapters_of
from keptlog.notify.checks import broken_checks, forget_checks, topic_checked
from keptlog.notify.delivery import Delivery, to_be_told
from keptlog.notify.memory import NotifyMemory, NotifyState
from keptlog.notify.messages import Message, message_of
from keptlog.notify.settings import NotifySettings
from keptlog.notify.ticks import last_ticks, unended_ticks
from keptlog.table.catalogs.home_folder import require_home
from keptlog.table.metadata.state import read_source_identity

if TYPE_CHECKING:
    from keptlog.log.source import SourceLog
    from keptlog.passes.observer import Overview

_logger = logging.getLogger(__name__)

AT_WORK = "another notify is at work in this home, and tells what there is"
"""What somebody is told for whom ``Watch.tell`` did nothing."""
_NO_TOPIC = ""


class BrokersAsked(Protocol):
    """What brokers have said of the topics that are ingested from them."""

    @property
    def asked(self) -> Collection[str]:
        """Topics of which something is known."""

    @property
    def stopped(self) -> Mapping[TopicPartition, str]:
        """What must not be gone on with, and why."""

    @property
    def waiting(self) -> Mapping[TopicPartition, SourceLog]:
        """The logs there that have offsets which wait for an open transaction to end."""

    @property
    def unlooked(self) -> Collection[TopicPartition]:
        """Those of whose logs there nothing is known, in topics that are there."""

    @property
    def missing(self) -> Mapping[str, KeptlogError]:
        """By topic, why nothing is known of its source: it is not there, or can't be looked at now."""

    @property
    def unseen(self) -> Mapping[TopicPartition, str]:
        """What could not be looked at in topics that are there, and why."""

    @property
    def silent(self) -> Mapping[str, KeptlogError]:
        """By address, why a cluster did not answer."""

    @property
    def answered(self) -> Collection[str]:
        """The addresses of the clusters that did."""

    @property
    def is_whole(self) -> bool:
        """Whether each topic's source could be read; the broker of one of which it could not was not asked."""


class Preview(NamedTuple):
    """What a look would do; nothing was sent or remembered."""

    state: NotifyState
    messages: Mapping[str, Sequence[Message]]
    """By way."""
    not_looked_at: Sequence[str]
    """Why nobody could look where there was something to look at: that is neither fine nor wrong."""


@dataclass(frozen=True)
class Watch:
    """Who looks after a home, and tells people."""

    home: Path
    settings: NotifySettings
    monotonic_ms: Callable[[], int]
    adapters: Sequence[Adapter] | None = None
    """Those of the settings, if none are given."""

    @property
    def name(self) -> str:
        """What the home is called in messages."""
        return self.settings.name or str(self.home)

    def tell(self, look: Callable[[], Sighting]) -> Delivery | None:
        """Look, and send what is new; null if somebody else is doing that now.

        Raises:
            StorageUnavailable: what was told can't be read or remembered; then nothing is sent.
        """
        folder = NotifyMemory(self.home)
        with folder.locked() as is_mine:
            if not is_mine:
                return None
            # A look from before the lock could be older than what is remembered.
            seen = look()
            before = folder.state()
            state = self._after(before, seen)
            adapters = adapters_of(self.settings) if self.adapters is None else self.adapters
            # What is sent and can't be remembered is sent at each look: so it is tried before, also with nothing new.
            if state != before or any(to_be_told(state, each.name) for each in adapters):
                folder.keep(state)
            # Only who tells people forgets: others look, and change nothing. A topic that is not there may be back at
            # the next look, as broken as it was: so not before what was found is over.
            open_checks = {each.subject for each in state.known if each.matter is Matter.CHECK and not each.ended_ms}
            forget_checks(self.home, lambda name: name not in open_checks and seen.is_gone(topic_checked(name)))
            delivery = Delivery(folder, state, self.name, self.monotonic_ms)
            delivery.send_all(adapters, seen.now_ms)
            return delivery

    def would_tell(self, look: Callable[[], Sighting]) -> Preview:
        """Look, and give what would be remembered and sent; nothing is.

        Raises:
            StorageUnavailable: what was told can't be read.
        """
        before = NotifyMemory(self.home).state(is_to_be_kept=False)
        seen = look()
        state = self._after(before, seen)
        ways = [each.name for each in adapters_of(self.settings)]
        messages = {way: [message_of(self.name, told) for told in to_be_told(state, way)] for way in ways}
        return Preview(state, messages, tuple(seen.unknown.values()))

    def _after(self, state: NotifyState, seen: Sighting) -> NotifyState:
        known = after_look(state.known, seen, self.settings.thresholds.settle_ms)
        return replace(state, known=tuple(known))


@dataclass(frozen=True)
class Chosen:
    """Some topics of a home, where a look is at these alone.

    It hears of some brokers only. One that it does not hear of is over where no topic of the home is left that comes
    from it.
    """

    is_meant: Callable[[str], bool]
    """Whether a topic is one of them."""
    is_left: Callable[[str], bool]
    """Whether certainly no topic of the home comes from the cluster of an address any more."""


def home_sighting(
    home: Path,
    seen: Overview,
    limits: Thresholds,
    asked: Callable[[], Evidence],
    chosen: Chosen | None = None,
) -> Sighting:
    """What an overview, and what verify has left, show; ``asked`` says what brokers tell, where a topic has one.

    ``chosen`` says of which topics the overview is; null if of all.
    """
    if why_nothing_is_known(home, seen):
        return Sighting(seen.now_ms)
    sighting = sighting_of(seen, limits, chosen.is_meant if chosen else lambda _topic: True)
    of_brokers = without_brokers(seen)
    of_brokers = asked() if of_brokers is None else of_brokers
    if chosen:
        judged = {matter: {*names} - {_NO_TOPIC} for matter, names in of_brokers.judged.items()}
        of_brokers = of_brokers._replace(judged=judged)
        sighting = replace(sighting, is_left=chosen.is_left)
    return sighting.with_evidence(check_evidence(home, seen)).with_evidence(of_brokers)


def why_nothing_is_known(home: Path, seen: Overview) -> str | None:
    """Why nobody may go by what an overview shows; null if it is known.

    That no topic is there is believed where there is a catalog, configured or the home's own. One that finds files of
    topics and no topic does not answer. Without one nothing is
    known of any log: it may be configured by variables that this process lacks.
    """
    if seen.locations or seen.unreadable:
        return None
    try:
        require_home(home)
    except KeptlogError as error:
        return f"nothing is known of the logs: {first_line(error)} (or set PYICEBERG_… to the catalog that you mean)"
    return None


def sighting_of(seen: Overview, limits: Thresholds, is_meant: Callable[[str], bool] = lambda _topic: True) -> Sighting:
    """What the logs show; ``is_meant`` says whether a topic would be among them if it were there."""
    known = {*seen.locations, *seen.unreadable}
    if seen.outage:
        # One condition, and not one for each topic.
        return without_catalog(seen.outage, seen.now_ms)
    read = known - seen.unreadable.keys()
    conditions = [
        *log_conditions(seen.assessments, seen.broker, seen.now_ms, limits),
        *erasure_conditions(seen.open_erasures, seen.now_ms, limits),
        *_unreadable(seen.unreadable),
    ]
    judged = {
        Matter.DEADLINE: read,
        Matter.UNCLEANABLE: read,
        Matter.ERASURE: (read & seen.erasures.keys()) | seen.unread_erasures.keys(),
        Matter.UNREADABLE: known,
        Matter.CATALOG: {_NO_TOPIC},
    }
    is_whole = not seen.behind
    return Sighting(
        seen.now_ms, tuple(conditions), judged, lambda topic: is_whole and is_meant(topic) and topic not in known
    )


def without_catalog(why: KeptlogError, now_ms: int) -> Sighting:
    """A look that could not open a catalog, and so saw nothing else."""
    return Sighting(now_ms, (outage_condition(Matter.CATALOG, str(why)),), {Matter.CATALOG: {_NO_TOPIC}})


def without_topics(of_all: Overview, is_meant: Callable[[str], bool]) -> Sighting:
    """A look that could have none of the topics which are meant, while others of the home can be had."""
    known = {topic for topic in (*of_all.locations, *of_all.unreadable) if is_meant(topic)}
    found = _unreadable({topic: error for topic, error in of_all.unreadable.items() if topic in known})
    return Sighting(of_all.now_ms, found, {Matter.UNREADABLE: known, Matter.CATALOG: {_NO_TOPIC}})


def _unreadable(errors: Mapping[str, KeptlogError]) -> tuple[Condition, ...]:
    return tuple(
        unreadable_condition(topic, str(error), is_outage=isinstance(error, StorageUnavailable))
        for topic, error in errors.items()
    )


def spark_evidence(why_down: str | None) -> Evidence:
    """Whether the Spark server that runs use answers."""
    found = [outage_condition(Matter.SPARK, why_down)] if why_down else []
    return Evidence(found, {Matter.SPARK: {_NO_TOPIC}})


def ingest_evidence(scan: BrokersAsked) -> Evidence:
    """What ingests leave alone, of the topics whose brokers have answered, and the brokers that have not."""
    stopped = [stopped_condition(str(name), name.topic, reason) for name, reason in scan.stopped.items()]
    missing = [
        unseen_condition(topic, topic, str(error))
        if isinstance(error, StorageUnavailable)
        else stopped_condition(topic, topic, str(error), error.action)
        for topic, error in scan.missing.items()
    ]
    unseen = [unseen_condition(str(name), name.topic, reason) for name, reason in scan.unseen.items()]
    hanging = [each for name, log in scan.waiting.items() if (each := hanging_condition(name, log))]
    silent = [silent_condition(address, error) for address, error in scan.silent.items()]
    judged: dict[Matter, Collection[str]] = {Matter.INGEST: scan.asked}
    if scan.is_whole:
        judged[Matter.BROKER] = {_NO_TOPIC, *scan.answered}
    unlooked = {Matter.INGEST: {hanging_subject(name) for name in scan.unlooked}}
    return Evidence([*stopped, *missing, *unseen, *hanging, *silent], judged, unlooked=unlooked)


def without_brokers(seen: Overview) -> Evidence | None:
    """That no broker is waited for; null if a topic has one, or may have one that can be asked."""
    if any(isinstance(error, LogCorrupt) for error in seen.unreadable.values()):
        return None  # of most of them the source can be read, and nobody but who asks has done so
    addresses, is_whole = _addresses(seen)
    return None if addresses else Evidence((), {Matter.BROKER: {_NO_TOPIC}} if is_whole else {})


def is_left(seen: Overview, address: str) -> bool:
    """Whether certainly none of the topics comes from the cluster of this address."""
    addresses, is_whole = _addresses(seen)
    return is_whole and address not in addresses


def brokers_of(seen: Overview) -> dict[str, str | None]:
    """By topic that comes from brokers, or may, their address; null where its source can't be read."""
    found: dict[str, str | None] = {}
    for topic, text in seen.sources.items():
        try:
            source = read_source_identity(topic, text)
        except LogCorrupt:
            found[topic] = None
            continue
        if source and source.bootstrap:
            found[topic] = source.bootstrap
    return found


def _addresses(seen: Overview) -> tuple[set[str], bool]:
    """Those of the brokers that topics come from, and whether these are all: the source of each topic could be read."""
    found = set(brokers_of(seen).values())
    return {address for address in found if address}, not (seen.behind or seen.unreadable or None in found)


def check_evidence(home: Path, seen: Overview) -> Evidence:
    """What verify has found broken."""
    try:
        broken = broken_checks(home)
    except KeptlogError as error:
        return unknown_evidence(Matter.CHECK, str(error))
    topics = {*seen.locations, *seen.unreadable}
    found = [
        check_condition(name, topic, problems)
        for name, problems in broken.items()
        if (topic := topic_checked(name)) in topics
    ]
    return Evidence(found, {Matter.CHECK: topics})


def tick_evidence(home: Path, now_ms: int, limits: Thresholds) -> Evidence:
    """Whether sensors tick that have ticked before. A mount of which nobody knows hides no other one."""
    try:
        ticks, unended = last_ticks(home), unended_ticks(home)
    except KeptlogError as error:
        return unknown_evidence(Matter.SENSORS, str(error))
    damage = [str(each) for each in [*ticks, *unended] if isinstance(each, KeptlogError)]
    known = [each for each in ticks if not isinstance(each, KeptlogError)]
    told = [silence_condition(each.sensors, each.at_ms, each.interval_ms, now_ms, limits) for each in known]
    silent = {each.subject for each in told if each}
    for each in unended:
        if not isinstance(each, KeptlogError):
            # Where all of them are silent nobody has turned this one off: what was told of it is not over.
            begun_ms = now_ms if each.sensors in silent else each.begun_ms
            limit_ms = limits.silent_after_ms(each.interval_ms)
            told.append(failing_condition(each.sensor, each.since_ms, begun_ms, now_ms, limit_ms))
    found: list[Condition] = [each for each in told if each]
    if damage:
        return unknown_evidence(Matter.SENSORS, "; ".join(damage))._replace(conditions=found)
    return Evidence(found, {Matter.SENSORS: {_NO_TOPIC}})


def unknown_evidence(matter: Matter, why: str) -> Evidence:
    """That nobody could look, which a line says; neither is anything wrong nor fine."""
    _logger.warning("%s", why)
    return Evidence(unknown={matter: why})
