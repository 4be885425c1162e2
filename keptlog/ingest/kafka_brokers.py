"""Topics of Kafka brokers as a source: into topics here, and onwards from where they are.

    survey     one connection a cluster: where logs begin, their last stable offsets, ids, settings if wanted
    cut        offset ranges, each read by a consumer of its own (``keptlog.sources.kafka_broker``)
    tombstones its delete.retention.ms, if it is compacted or was
    confirm    is the topic still the one that was surveyed? parts know it by its name only, and no answer is no yes

A survey needs no Spark: it also tells how far the topics here are behind. A topic here remembers its source, the
brokers' address with it, so that it can be ingested again by its name alone.

A topic that does not exist yet is created with the settings that are asked for, over those of its broker or over
``cleanup.policy=compact``: what is ingested is meant to be cleaned.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from keptlog.errors import InvalidConfig, KeptlogError, StalePlan, StorageUnavailable, UnknownTopic
from keptlog.ingest.source import EpochEnds, Survey, TopicSurvey
from keptlog.kafka_client.errors import AFTER_SILENCE_SECONDS, WAIT_SECONDS
from keptlog.log.not_shown import why_not_shown
from keptlog.log.source import IngestPlan, OffsetRange, SourceIdentity, StoredSource
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.made_settings import TopicSettings
from keptlog.sources.kafka_broker.signs import Silence
from keptlog.sources.kafka_broker.topics import (
    BrokerTopics,
    look_at_ids,
    look_at_topics,
    tombstones_kept_ms,
    topic_settings,
)
from keptlog.table.waiting.side_by_side import side_by_side

if TYPE_CHECKING:
    from keptlog.kafka_client.settings import ClientSettings
    from keptlog.sources.kafka_broker.part import BrokerPart
    from keptlog.sources.kafka_broker.still_there import LogThere
    from keptlog.table.store import LogStore

Answer = TypeVar("Answer")

DEFAULT_CONFIG: Mapping[str, str] = {"cleanup.policy": "compact"}

_logger = logging.getLogger(__name__)


def topics_from_brokers(store: LogStore, only: Collection[str] | None = None) -> dict[str, str]:
    """The topics here that remember brokers, and their names there; of some of them if ``only`` names these.

    None is left out by the address that it remembers: the cluster may have moved since. Whether brokers that are named
    have it is seen once they are asked (``KafkaBrokers.are_named``). One that can't be read is among them, under its
    own name: it fails once it is planned, and stops no other.
    """

    def name_there(topic: str) -> str | None:
        try:
            source = store.source_of(topic).source
        except UnknownTopic:
            return None  # it was deleted just now
        except Exception:  # noqa: BLE001  # see above
            return topic
        return source.topic if source and source.bootstrap else None

    here = store.topics()
    names = side_by_side(name_there, here if only is None else [topic for topic in here if topic in only])
    return {topic: name for topic, name in names.items() if name}


@dataclass(frozen=True, slots=True)
class KafkaBrokers:
    """Topics of brokers, of one cluster or several."""

    settings: ClientSettings
    topics: Mapping[str, str]
    """The topic here to its name there."""
    bootstrap: str | None = None
    """The brokers; null for those that each topic remembers, or that the client settings name."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Settings of topics that don't exist yet."""
    with_broker_config: bool = False
    """Let new topics have the settings that they have at their broker."""
    are_named: bool = field(default=False, kw_only=True)
    """Whether somebody has named these very topics, and with ``bootstrap`` where they are now. If not, one that was
    elsewhere is left out with a warning, unless its id is there: another cluster may have one of its name, and its
    records would be mixed with those that are here."""
    wait_seconds: float = WAIT_SECONDS
    """So long each of the brokers' few answers is waited for."""
    _silent: set[str | None] = field(default_factory=set, init=False, repr=False, compare=False)
    """The addresses that gave no answer when they were asked last: others are not to wait as long behind each topic."""
    _silence: dict[str | None, Silence] = field(
        default_factory=lambda: defaultdict(Silence), init=False, repr=False, compare=False
    )
    """By address of a cluster that answers, those of its brokers that did not."""
    _surveyed: dict[str | None, ClientSettings] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By address, the settings that reach no other cluster than was surveyed."""

    @property
    def is_copy(self) -> bool:
        return False

    def survey(self, stored: Mapping[str, StoredSource | None]) -> Survey:
        """As ``Source`` says; a cluster that does not answer fails its topics, a partition without a leader itself.

        It is refused if nothing shows that ``bootstrap`` has any of them, or if it does not answer and none was there.
        """
        topics: list[TopicSurvey] = []
        failed: dict[str, KeptlogError] = {}
        left_out: list[str] = []
        hidden: set[str] = set()
        unasked: dict[str, KeptlogError] = {}
        # Some are only with ``bootstrap``, so of one cluster: if that is silent, each of them is unasked, else none.
        elsewhere = {
            here: known.source
            for here, known in stored.items()
            if known and known.source and self._may_be_elsewhere(known.source)
        }
        for bootstrap, names in self._by_cluster(stored).items():
            new = {here for here in names if stored[here] is None}
            try:
                found, settings, unseen = self._ask(self.settings.at(bootstrap), names, new)
            except KeptlogError as error:
                _logger.info("%s can't be surveyed: %s", ", ".join(names), error)
                unasked |= dict.fromkeys(names.keys() & elsewhere.keys(), error)
                failed |= dict.fromkeys(names.keys() - elsewhere.keys(), error)
                continue
            for here, name in names.items():
                why = found.missing.get(name) or (unseen.get(name) if here in new else None)
                if name in found.hidden:
                    hidden.add(here)
                if here in elsewhere and _may_be_anothers(elsewhere[here], name, found):
                    left_out.append(here)
                    continue
                why = why or _why_unknown(stored[here], found.topics[name].source)
                if why:
                    failed[here] = self._with_address(why, stored[here], is_hidden=here in hidden)
                    continue
                partitions = found.failed.get(name, {})
                failed |= {str(TopicPartition(here, number)): error for number, error in partitions.items()}
                made = settings.get(name, TopicSettings(dict(DEFAULT_CONFIG), {}))
                left_out_there = {name: why for name, why in made.left_out.items() if name not in self.config}
                topics.append(TopicSurvey(here, found.topics[name], {**made.config, **self.config}, left_out_there))
        told = {here: elsewhere[here] for here in left_out or unasked}
        warnings = self._told_as_left_out(told, hidden, is_asked=not unasked)
        refusal: KeptlogError | None = None
        if warnings and not (topics or failed):
            refusal = next(iter(unasked.values()), None) or InvalidConfig("; ".join(warnings))
            if unasked:
                warnings = (str(refusal), *warnings)  # or nothing would say it
        return Survey(tuple(topics), failed, warnings, refusal, unasked)

    def ends_of_epochs(self, plans: Sequence[IngestPlan]) -> EpochEnds:
        """As ``Source`` says; a cluster is asked once, and a log there that is in two topics here once for each."""
        rounds: dict[tuple[str | None, int], dict[LogThere, tuple[TopicPartition, OffsetRange]]] = defaultdict(dict)
        for plan in plans:
            for each in plan.unsure:
                log, at = (plan.source.topic, each.partition), plan.source.bootstrap
                free = next(number for number in count() if log not in rounds[at, number])
                rounds[at, free][log] = TopicPartition(plan.topic, each.partition), each
        ends: dict[TopicPartition, int | None] = {}
        errors: dict[TopicPartition, KeptlogError] = {}
        for (bootstrap, _), asked in rounds.items():
            told, why_not = self._ends_at(bootstrap, {log: each for log, (_, each) in asked.items()})
            ends |= {asked[log][0]: end for log, end in told.items()}
            errors |= {asked[log][0]: error for log, error in why_not.items()}
        return ends, errors

    def _ends_at(
        self, bootstrap: str | None, unsure: Mapping[LogThere, OffsetRange]
    ) -> tuple[Mapping[LogThere, int | None], Mapping[LogThere, KeptlogError]]:
        """What one cluster says of the ends of epochs. That a leader is silent says nothing of the cluster."""
        from keptlog.sources.kafka_broker.cuts import ends_of_epochs  # noqa: PLC0415  # a survey needs none of it

        try:
            return ends_of_epochs(self._settings_at(bootstrap), unsure, self._wait_of(bootstrap))
        except KeptlogError as error:
            return {}, dict.fromkeys(unsure, error)

    def cut(self, plans: Sequence[IngestPlan], cores: int) -> list[tuple[BrokerPart, ...]]:
        """As ``Source`` says; offsets are all that is known of how much work there is."""
        from keptlog.sources.kafka_broker.ranges import broker_parts  # noqa: PLC0415  # a survey needs none of it

        settings = [self._settings_at(plan.source.bootstrap) for plan in plans]
        return broker_parts(list(zip(plans, settings, strict=True)), cores)

    def tombstones_kept_ms(self, plan: IngestPlan, partitions: Collection[int]) -> dict[int, int | None]:
        """As ``Source`` says: its broker's setting. Up to where its cleaner has come no client is told."""
        there = plan.source
        settings = self._settings_at(there.bootstrap)
        were_compacted = {each.partition: each.was_compacted for each in plan.ranges if each.partition in partitions}
        return self._answer(
            there.bootstrap, lambda seconds: tombstones_kept_ms(settings, there.topic, were_compacted, seconds)
        )

    def confirm(self, plan: IngestPlan) -> bool | None:
        """A later topic of the same name may have had all the offsets that were planned.

        One that is gone by now had what was read of it, and nobody can read that again.

        Raises:
            StalePlan: it was created anew since it was surveyed.
            KeptlogError: it can't be looked at now, so that nobody knows.
        """
        name, bootstrap = plan.source.topic, plan.source.bootstrap
        settings, silence = self._settings_at(bootstrap), self._silence[bootstrap]
        looked = self._answer(bootstrap, lambda seconds: look_at_ids(settings, [name], seconds, silence))
        why_missing = looked.missing.get(name)
        if isinstance(why_missing, UnknownTopic):
            return None
        if why_missing:
            raise why_missing
        there, is_compacted = looked.topics[name].source, looked.topics[name].is_compacted
        if plan.source.topic_id and not there.topic_id:
            raise StorageUnavailable(
                f"it can't be told whether topic {name} still is the one that was read: its brokers do not say its id "
                "now; nothing of it was committed, try again"
            )
        if not plan.source.may_be(there):
            raise StalePlan(
                f"topic {name} was deleted and created again while it was read; nothing of it was committed, ingest "
                "again to see what is there now"
            )
        return is_compacted

    def _by_cluster(self, stored: Mapping[str, StoredSource | None]) -> dict[str | None, dict[str, str]]:
        """The topics by the brokers that have them; null for those that the client settings name."""
        clusters: dict[str | None, dict[str, str]] = defaultdict(dict)
        for here, known in stored.items():
            remembered = known.source.bootstrap if known and known.source else None
            clusters[self.bootstrap or remembered][here] = self.topics[here]
        return clusters

    def _may_be_elsewhere(self, known: SourceIdentity) -> bool:
        """Whether a topic was last at other brokers than are asked, and nobody has said that it is theirs."""
        return not self.are_named and known.was_elsewhere(self.bootstrap)

    def _told_as_left_out(
        self, topics: Mapping[str, SourceIdentity], hidden: set[str], *, is_asked: bool
    ) -> tuple[str, ...]:
        """A line for each address that they were at; ``hidden`` are those that the user may not describe: their own."""
        told_together: dict[tuple[str, bool], list[str]] = defaultdict(list)
        for here, known in sorted(topics.items()):
            told_together[known.bootstrap or "", here in hidden].append(here)
        return tuple(
            why_not_shown(names, address, self.bootstrap or "", is_asked=is_asked, is_hidden=is_hidden)
            for (address, is_hidden), names in told_together.items()
        )

    def _with_address(self, error: KeptlogError, known: StoredSource | None, *, is_hidden: bool) -> KeptlogError:
        """The error of a topic that is not there, or not shown, with where it was, if that was elsewhere."""
        source = known.source if known else None
        if not (source and source.was_elsewhere(self.bootstrap) and (is_hidden or isinstance(error, UnknownTopic))):
            return error
        told = f"{error}; it was last at {source.bootstrap}: if it still is there, leave out --bootstrap"
        return InvalidConfig(told) if is_hidden else UnknownTopic(told).at_a_source()

    def _ask(
        self, settings: ClientSettings, names: Mapping[str, str], new: set[str]
    ) -> tuple[BrokerTopics, dict[str, TopicSettings], dict[str, KeptlogError]]:
        """What one cluster says of topics, and of the settings of new ones if they are wanted; or why it does not."""
        asked, bootstrap = sorted(set(names.values())), settings.bootstrap
        silence = self._silence[bootstrap]
        found = self._answer(bootstrap, lambda seconds: look_at_topics(settings, asked, seconds, silence))
        if found.settings:
            self._surveyed[bootstrap] = found.settings
        new_there = sorted({name for here, name in names.items() if here in new and name in found.topics})
        if not (self.with_broker_config and new_there):
            return found, {}, {}
        try:
            only = self._settings_at(bootstrap)
            made, errors = self._answer(bootstrap, lambda seconds: topic_settings(only, new_there, seconds))
        except KeptlogError as error:
            return found, {}, dict.fromkeys(new_there, error)  # the others need none
        return found, made, errors

    def _answer(self, bootstrap: str | None, question: Callable[[float], Answer]) -> Answer:
        """What one cluster answers. One that was silent for another topic is waited for a few seconds only."""
        try:
            answer = question(self._wait_of(bootstrap))
        except StorageUnavailable:
            self._silent.add(bootstrap)
            raise
        self._silent.discard(bootstrap)
        return answer

    def _wait_of(self, bootstrap: str | None) -> float:
        is_silent = bootstrap in self._silent
        return min(self.wait_seconds, AFTER_SILENCE_SECONDS) if is_silent else self.wait_seconds

    def _settings_at(self, bootstrap: str | None) -> ClientSettings:
        """For whatever comes after a survey: a client that takes another cluster's address is refused by no broker."""
        return self._surveyed.get(bootstrap) or self.settings.at(bootstrap)


def _may_be_anothers(known: SourceIdentity, name: str, found: BrokerTopics) -> bool:
    """Whether a topic that was elsewhere may be another one than is there, or is not there, or never is shown.

    That it could not be looked at, or its id is not told now, says none of that: its id may show it when it can.
    """
    if not known.topic_id:
        return True
    there = found.topics.get(name)
    if there is None:
        return name in found.hidden or isinstance(found.missing[name], UnknownTopic)
    return bool(there.source.topic_id) and not known.is_surely(there.source)


def _why_unknown(stored: StoredSource | None, there: SourceIdentity) -> StorageUnavailable | None:
    """Why a topic there may be another one than was read before; null if it is no question."""
    known = stored.source if stored else None
    if not known or not known.topic_id or there.topic_id:
        return None
    return StorageUnavailable(
        f"it can't be told whether topic {there.topic} still is the one that was read before (id {known.topic_id}): "
        "its brokers do not say its id now; nothing of it is read, try again"
    )
