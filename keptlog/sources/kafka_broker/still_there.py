"""Asks brokers whether logs are still there that say nothing.

A consumer that was told to read what is gone waits. Of a topic that was deleted, or is not shown to this user any more,
librdkafka tells after half a minute, and not where records would come; of a partition that is gone it tells nothing.
Any broker knows that at once.

But one that has just started says it of each topic until the controller has told it which there are, and any broker of
what was just made. So what is said to be gone is asked for again a moment later, and an answer that names no broker is
none: whoever gives it has been told nothing yet.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from time import monotonic as _steady_s  # noqa: TID251  # how long brokers are waited for, which no log depends on
from time import sleep as _sleep  # noqa: TID251  # how long brokers are waited for, which no log depends on

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata, TopicMetadata

from keptlog.errors import InvalidConfig, KeptlogError, UnknownTopic
from keptlog.kafka_client.errors import translated
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import NO_PARTITION

LogThere = tuple[str, int]
"""A topic's name there, and the partition."""

LOOK_AFTER_SECONDS = 2.0
"""So long a log may say nothing before anybody looks."""
LOOK_SECONDS = 1.0
"""For what any broker knows."""
_AGAIN_AFTER_SECONDS = 1.0
"""A broker that has just started is told within this what topics there are."""


def why_gone(
    consumer: Consumer, settings: ClientSettings, logs: Collection[LogThere], wait_seconds: float = math.inf
) -> dict[LogThere, KeptlogError]:
    """Those of the logs that are not there any more, or not shown to this user, with the reason.

    The reason takes a question for each topic. Once ``wait_seconds`` are over, the others are not in the answer.

    Raises:
        KafkaException: no broker answers in ``LOOK_SECONDS``, or one that knows nothing yet.
    """
    until_s = _steady_s() + wait_seconds
    listed = _listed(consumer, logs)
    suspects = [log for log in logs if not (told := listed.get(log[0])) or _why_gone(told, log, settings)]
    if not suspects:
        return {}
    _sleep(_AGAIN_AFTER_SECONDS)
    topics = _listed(consumer, suspects)
    for name in sorted({topic for topic, _ in suspects} - topics.keys()):
        if _steady_s() >= until_s:
            break
        topics[name] = _asked(consumer, name).topics[name]
    reasons = {log: _why_gone(topics[log[0]], log, settings) for log in suspects if log[0] in topics}
    return {log: why for log, why in reasons.items() if why is not None}


def _listed(consumer: Consumer, logs: Collection[LogThere]) -> dict[str, TopicMetadata]:
    """What one answer says of their topics.

    The list of all leaves out without a word what it does not show; a name has the reason.
    """
    names = {topic for topic, _ in logs}
    return dict(_asked(consumer, names.pop() if len(names) == 1 else None).topics)


def _asked(consumer: Consumer, name: str | None = None) -> ClusterMetadata:
    """One topic, or all."""
    told: ClusterMetadata = consumer.list_topics(name, timeout=LOOK_SECONDS)
    if not told.brokers:
        raise KafkaException(KafkaError(KafkaError.BROKER_NOT_AVAILABLE))
    return told


def _why_gone(told: TopicMetadata, log: LogThere, settings: ClientSettings) -> KeptlogError | None:
    topic, partition = log
    if told.error is None:
        return None if partition in told.partitions else InvalidConfig(NO_PARTITION)
    if told.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return UnknownTopic(f"{settings.bootstrap} has no topic {topic!r} any more: it was deleted").at_a_source()
    if told.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return no_right_to_read(topic, settings)
    return None


def no_right_to_read(topic: str, settings: ClientSettings) -> KeptlogError:
    """The same for all partitions of a topic, and whichever broker says it: people are told of it once."""
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    return translated(error, settings, f"topic {topic} can't be read, which takes READ")
