"""Looks at topics of a broker: where their logs begin, up to where they may be read, and how they are configured.

All topics are looked at with one connection and a handful of requests, however many they are:

    metadata         which topics and partitions there are; asking for all never creates one
    describe topics  the ids that tell a topic from a later one of the same name; and why one that was asked for is not
                     among all: that list leaves out, without a word, what the user may not describe
    list offsets     earliest: the log start offsets
    list offsets     latest: the high watermarks
    list offsets     latest, read committed: the last stable offsets, later than those, or each commit in between would
                     look like a transaction that is open

What is asked besides, once something depends on it, are topics' settings.

Offsets are what the leader of each partition tells, so a partition without a leader fails alone, and the others of its
topic are there. A broker that was asked in vain is remembered, and waited for a few seconds when topics are looked at
again; the others of its cluster are waited for as ever.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.kafka_client.errors import (
    AFTER_SILENCE_SECONDS,
    WAIT_SECONDS,
    Trouble,
    ask,
    broker_errors,
    is_no_answer,
    translated,
)
from keptlog.kafka_client.leaders import ask_leaders, controller_of
from keptlog.kafka_client.one_cluster import require_one_cluster
from keptlog.kafka_client.settings import ClientSettings
from keptlog.kafka_client.told_offsets import told_offset
from keptlog.kafka_client.topic_ids import NO_ID, topic_id_of
from keptlog.log.source import SourceIdentity, SourceLog, SourceTopic
from keptlog.log.topic_partition import is_topic_name
from keptlog.log.words.counted import counted
from keptlog.sources.kafka_broker.made_settings import TopicSettings, is_compacted, made_settings
from keptlog.sources.kafka_broker.signs import Silence

Name = TypeVar("Name")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class BrokerTopics:
    """What a broker says of the topics that it was asked for; each is in one of the first two."""

    topics: dict[str, SourceTopic]
    missing: dict[str, KeptlogError]
    failed: dict[str, dict[int, KeptlogError]] = field(default_factory=dict)
    """By topic that is there, those of its partitions that could not be looked at."""
    settings: ClientSettings | None = field(default=None, compare=False)
    """For clients that are to reach the very cluster that was looked at."""
    hidden: set[str] = field(default_factory=set)
    """Of those that are missing, the ones that the user may not describe: so a broker answers of names that it does not
    have, too, and nobody is told whether they are there."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of a topic."""

    unanswered: str
    permission: str
    """Of Kafka's operations, the one that a user needs for an answer."""


_ITSELF = _Question("it can't be described", "DESCRIBE")
_ITS_OFFSETS = _Question("its offsets can't be looked at", "DESCRIBE")
_ITS_SETTINGS = _Question("its settings can't be looked at", "DESCRIBE_CONFIGS")


@dataclass
class _Answers:
    """What is asked of one client, and what could not be had: by topic, and by partition of one that is there."""

    admin: AdminClient
    trouble: Trouble
    settings: ClientSettings
    wait_seconds: float
    silence: Silence
    errors: dict[str, KeptlogError] = field(default_factory=dict)
    failed: dict[tuple[str, int], KeptlogError] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    """As in ``BrokerTopics``."""

    def metadata(self) -> ClusterMetadata:
        """All topics, but for those that the user may not describe: a broker leaves them out without a word."""
        told = ask(self.admin, self.trouble, lambda seconds: self.admin.list_topics(timeout=seconds), self.wait_seconds)
        self.settings = require_one_cluster(self.settings, told)
        return told

    def metadata_of(self, topic: str) -> ClusterMetadata:
        """One topic, with an error if it is not there or the user may not describe it."""

        def named(seconds: float) -> ClusterMetadata:
            return self.admin.list_topics(topic, timeout=seconds)

        return ask(self.admin, self.trouble, named, self.wait_seconds)

    def wait_of(self, broker: int) -> float:
        """How long a broker is waited for."""
        return self.silence.wait_seconds(broker, self.wait_seconds, min(self.wait_seconds, AFTER_SILENCE_SECONDS))

    def of(
        self,
        futures: Mapping[Name, Future[Value]],
        topic_of: Callable[[Name], str],
        question: _Question,
        told: Callable[[Future[Value]], Value] = Future.result,
        asked: int | None = None,
    ) -> tuple[dict[Name, Value], dict[Name, KeptlogError]]:
        """The results that could be had, and why others could not; ``asked`` is the broker, where it is only one."""
        results: dict[Name, Value] = {}
        errors: dict[Name, KeptlogError] = {}
        for name, future in futures.items():
            try:
                results[name] = told(future)
            except KafkaException as error:
                errors[name] = self.error(error.args[0], topic_of(name), question, asked)
                if asked is not None and is_no_answer(error.args[0]):
                    self.silence.given_up(asked)
        if asked is not None and results:
            self.silence.answers(asked)
        return results, errors

    def error(self, error: KafkaError, topic: str, question: _Question, asked: int | None = None) -> KeptlogError:
        """One of a client as keptlog's; where a permission is missing, it says which. ``asked`` as in ``of``."""
        doing = f"topic {topic}: {question.unanswered}"
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            doing += f", which takes {question.permission}"
            if question is _ITSELF:
                self.hidden.add(topic)
        if asked is not None:
            self.admin.poll(0)  # lets it tell ``trouble`` why that one does not answer
        return translated(error, self.settings, doing, self.trouble, asked)


@contextmanager
def _asked(
    settings: ClientSettings, doing: str, wait_seconds: float, silence: Silence | None = None
) -> Iterator[_Answers]:
    """What a client of its own is asked; ``doing`` is that of ``broker_errors``."""
    with broker_errors(settings, doing) as trouble:
        admin = AdminClient(settings.for_admin(error_cb=trouble))
        yield _Answers(admin, trouble, settings, wait_seconds, silence or Silence())


def look_at_ids(
    settings: ClientSettings, topics: Sequence[str], wait_seconds: float = WAIT_SECONDS, silence: Silence | None = None
) -> BrokerTopics:
    """Which topics are there, and compacted, without their logs: no leader is asked, so a silent one costs nothing.

    Raises:
        InvalidConfig: a client setting, a password or a certificate is wrong.
        StorageUnavailable: no broker can be reached.
    """
    with _asked(settings, f"{_shown(topics)} can't be looked at", wait_seconds, silence) as answers:
        metadata = answers.metadata()
        ids = _topic_ids(answers, metadata, topics)
        names = [name for name in _partitions(answers, metadata, topics) if name not in answers.errors]
        told = _settings_if_told(answers, metadata, names)
    found: dict[str, SourceTopic] = {}
    for name in names:
        identity = SourceIdentity(name, ids.get(name), settings.bootstrap)
        found[name] = SourceTopic(identity, (), is_whole=False, is_compacted=is_compacted(told.get(name, {})))
    return BrokerTopics(found, answers.errors, hidden=answers.hidden)


def look_at_topics(
    settings: ClientSettings, topics: Sequence[str], wait_seconds: float = WAIT_SECONDS, silence: Silence | None = None
) -> BrokerTopics:
    """What is there to read of each topic. Nothing is waited for longer than ``wait_seconds``.

    ``silence`` has the brokers of this cluster that were asked in vain before, and gets those that are now.

    Raises:
        InvalidConfig: a client setting, a password or a certificate is wrong.
        StorageUnavailable: no broker can be reached.
    """
    with _asked(settings, f"{_shown(topics)} can't be looked at", wait_seconds, silence) as answers:
        metadata = answers.metadata()
        ids = _topic_ids(answers, metadata, topics)
        partitions = _partitions(answers, metadata, topics)
        leaders = {
            Position(name, number): metadata.topics[name].partitions[number].leader
            for name, numbers in partitions.items()
            for number in numbers
        }
        starts = _offsets(answers, leaders, OffsetSpec.earliest())
        high = _offsets(answers, leaders, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        ends = _offsets(answers, leaders, OffsetSpec.latest())
    found = BrokerTopics({}, answers.errors, hidden=answers.hidden, settings=answers.settings)
    for name, numbers in partitions.items():
        failed = {number: answers.failed[name, number] for number in numbers if (name, number) in answers.failed}
        if name in found.missing:
            continue
        if failed and len(failed) == len(numbers):
            found.missing[name] = failed[numbers[0]]
            continue
        logs = tuple(
            _log(number, starts[name, number], ends[name, number], high[name, number])
            for number in numbers
            if number not in failed
        )
        identity = SourceIdentity(name, ids.get(name), settings.bootstrap)
        found.topics[name] = SourceTopic(identity, logs, is_whole=not failed)
        if failed:
            found.failed[name] = failed
    return found


def topic_settings(
    settings: ClientSettings, topics: Sequence[str], wait_seconds: float = WAIT_SECONDS
) -> tuple[dict[str, TopicSettings], dict[str, KeptlogError]]:
    """Those settings of topics that are no defaults, or decide; and by topic, why those of others can't be had.

    Raises:
        InvalidConfig: a client setting, a password or a certificate is wrong.
        StorageUnavailable: no broker can be reached.
    """
    found, errors = _all_settings(settings, topics, wait_seconds)
    return {name: made_settings(entries.values()) for name, entries in found.items()}, errors


def tombstones_kept_ms(
    settings: ClientSettings, topic: str, were_compacted: Mapping[int, bool], wait_seconds: float = WAIT_SECONDS
) -> dict[int, int | None]:
    """A topic's ``delete.retention.ms``, by partition; null if its broker does not say it.

    Where it is not compacted, only that of partitions that were: what its cleaner did before stays done.

    Raises:
        InvalidConfig: the user may not see it.
        UnknownTopic: the topic is not there.
        StorageUnavailable: no broker can be reached.
    """
    found, errors = _all_settings(settings, [topic], wait_seconds)
    if errors:
        raise errors[topic]
    entries = found[topic]
    kept_ms = entries["delete.retention.ms"].value if "delete.retention.ms" in entries else None
    may_be_cleaned = is_compacted(entries) is not False
    partitions = [number for number, was_compacted in were_compacted.items() if may_be_cleaned or was_compacted]
    return dict.fromkeys(partitions, None if kept_ms is None else int(kept_ms))


def _all_settings(
    settings: ClientSettings, topics: Sequence[str], wait_seconds: float
) -> tuple[dict[str, Mapping[str, Any]], dict[str, KeptlogError]]:
    """All settings of topics, by their names, defaults too; and why those of others could not be had."""
    with _asked(settings, f"the settings of {_shown(topics)} can't be looked at", wait_seconds) as answers:
        metadata = answers.metadata()  # tells early, and why, if nobody is there
        return _settings_of(answers, metadata, topics)


def _settings_if_told(
    answers: _Answers, metadata: ClusterMetadata, topics: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    """All settings of those topics that they can be had of, for whoever can do without them.

    The controller is asked. One that is silent is waited for a few seconds, and then not asked again.
    """
    few_seconds = min(answers.wait_seconds, AFTER_SILENCE_SECONDS)
    if not topics or answers.silence.wait_seconds(metadata.controller_id, few_seconds, 0) == 0:
        return {}
    found, _ = _settings_of(replace(answers, wait_seconds=few_seconds), metadata, topics)
    return found


def _settings_of(
    answers: _Answers, metadata: ClusterMetadata, topics: Sequence[str]
) -> tuple[dict[str, Mapping[str, Any]], dict[str, KeptlogError]]:
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
    futures = answers.admin.describe_configs(resources, request_timeout=answers.wait_seconds)
    found, errors = answers.of(
        futures, lambda resource: str(resource.name), _ITS_SETTINGS, asked=controller_of(metadata)
    )
    return {str(each.name): told for each, told in found.items()}, {str(each.name): why for each, why in errors.items()}


def _partitions(answers: _Answers, metadata: ClusterMetadata, topics: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic that is there; all were asked for by their names before."""
    found: dict[str, list[int]] = {}
    for name in topics:
        topic = metadata.topics.get(name)
        if topic is None:
            answers.errors[name] = _why_unlisted(answers, metadata, name)
        elif topic.error is not None:
            answers.errors[name] = translated(topic.error, answers.settings, f"topic {name} can't be looked at")
        else:
            found[name] = sorted(topic.partitions)
    return found


def _why_unlisted(answers: _Answers, metadata: ClusterMetadata, name: str) -> KeptlogError:
    """Why a topic is not among all: what was said of its name tells one that is gone from one that is not shown."""
    why, where = answers.errors.get(name), answers.settings.bootstrap
    if why is None:
        return StorageUnavailable(f"{where} does not show topic {name!r} among all yet: it was just created, try again")
    if not isinstance(why, UnknownTopic):
        return why
    near = difflib.get_close_matches(name, metadata.topics, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"it shows {counted(len(metadata.topics), 'topic')}"
    return UnknownTopic(f"{where} has no topic {name!r}: {hint}").at_a_source()


def _topic_ids(answers: _Answers, metadata: ClusterMetadata, topics: Sequence[str]) -> dict[str, str]:
    """The ids of topics, in base64 as Kafka prints them, where they are known; of the others their errors are noted.

    Asking for all of them by name, in one call, creates none. A client refuses the whole call for one name that it
    can't send, or that comes twice: so each is asked for once, and none that no topic can have.
    """
    controller = metadata.controller_id
    names = [name for name in dict.fromkeys(topics) if name in metadata.topics or is_topic_name(name)]
    answers.errors |= {name: UnknownTopic(f"no topic has such a name: {name!r}") for name in {*topics} - {*names}}
    if not names:
        return {}
    if controller not in metadata.brokers:
        # Only the controller knows ids, and this cluster has none: librdkafka's mock, or others for a moment.
        for name in [each for each in names if each not in metadata.topics]:
            error = answers.metadata_of(name).topics[name].error
            if error is not None:
                answers.errors[name] = answers.error(error, name, _ITSELF)
        return {}
    futures = answers.admin.describe_topics(TopicCollection(names), request_timeout=answers.wait_of(controller))
    described, errors = answers.of(futures, str, _ITSELF, asked=controller)
    answers.errors |= errors
    ids = {name: topic_id_of(description.topic_id) for name, description in described.items()}
    return {name: topic_id for name, topic_id in ids.items() if topic_id != NO_ID}


def _offsets(
    answers: _Answers,
    leaders: Mapping[Position, int],
    which: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> dict[tuple[str, int], ListOffsetsResultInfo]:
    """An offset of each topic-partition, of committed records or of all, and the leader epoch of then."""
    wanted = {
        each: leader
        for each, leader in leaders.items()
        if each.topic not in answers.errors and (each.topic, each.partition) not in answers.failed
    }
    asked = ask_leaders(answers.admin, wanted, which, isolation, answers.wait_of)
    offsets: dict[tuple[str, int], ListOffsetsResultInfo] = {}
    for leader, futures in asked.items():
        found, errors = answers.of(futures, lambda each: str(each.topic), _ITS_OFFSETS, told_offset, leader)
        answers.failed |= {(each.topic, each.partition): error for each, error in errors.items()}
        offsets |= {(each.topic, each.partition): result for each, result in found.items()}
    return offsets


def _log(
    number: int, start: ListOffsetsResultInfo, end: ListOffsetsResultInfo, high: ListOffsetsResultInfo
) -> SourceLog:
    waits_to = high.offset if high.offset > max(start.offset, end.offset) else None
    return SourceLog(number, start.offset, end.offset, end.leader_epoch, high_watermark=waits_to)


def _shown(topics: Sequence[str]) -> str:
    return f"topic {topics[0]}" if len(topics) == 1 else counted(len(topics), "topic")
