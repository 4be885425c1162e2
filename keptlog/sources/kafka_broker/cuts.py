"""Asks whether logs are up to a position what they were under an earlier leader, where nothing is to be read.

As in ``part``, librdkafka asks for the end of the leader epoch that a position is given with (KIP-320), before it
fetches. Whatever comes first then, a record or the end of the log, says that nothing was cut off.

One consumer asks for all logs of a cluster. Each answers, or fails, for itself: a leader that is silent costs the
others the wait, and nothing else.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic as _steady_s  # noqa: TID251  # how long brokers are waited for, which no log depends on

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from keptlog.errors import KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.kafka_client.errors import (
    OFFSET_OUT_OF_RANGE,
    PARTITION_EOF,
    Trouble,
    broker_errors,
    is_broken_batch,
    no_answer,
    translated,
)
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.source import OffsetRange
from keptlog.sources.kafka_broker.part import BROKER_END, IN_TROUBLE_SECONDS, is_harmless
from keptlog.sources.kafka_broker.still_there import LOOK_AFTER_SECONDS, LogThere, no_right_to_read, why_gone

_UNTOLD_FOR_GOOD = "it can't be told whether records were cut off there"
"""The same for all logs: of thousands each cause is one line."""
_UNTOLD = f"{_UNTOLD_FOR_GOOD}, and the next ingest asks again"
_POLL_SECONDS = 0.05
_MESSAGES_AT_ONCE = 500
_NO_WAITING: Mapping[str, int] = {"fetch.wait.max.ms": 1}
"""For records that nobody wants: by default a broker waits half a second for some before it says that the log ends."""


def ends_of_epochs(
    settings: ClientSettings, reached: Mapping[LogThere, OffsetRange], wait_seconds: float
) -> tuple[dict[LogThere, int | None], dict[LogThere, KeptlogError]]:
    """Up to where logs are what they were, and why others don't say it. Takes no longer than ``wait_seconds``.

    ``reached`` has the position of each, with its leader epoch. An end is null if the log was cut off and nobody says
    where. A log that does not hold the position any more is in neither: it has been deleted since it was looked at.

    Raises:
        InvalidConfig: a client setting is wrong.
    """
    with broker_errors(settings, _UNTOLD) as trouble:
        asked = Asked(settings, trouble, reached)
        consumer = Consumer({**settings.for_consumer(error_cb=trouble), **_NO_WAITING})
        with contextlib.closing(consumer):
            consumer.assign([_position(log, each) for log, each in reached.items()])
            until_s, looks_s = _steady_s() + wait_seconds, _steady_s() + LOOK_AFTER_SECONDS
            in_trouble_until_s = until_s  # each answer begins it anew
            while asked.open and _steady_s() < min(until_s, in_trouble_until_s):
                if trouble.is_final or trouble.is_refused:
                    in_trouble_until_s = min(in_trouble_until_s, _steady_s() + IN_TROUBLE_SECONDS)
                before = set(asked.open)
                for message in consumer.consume(_MESSAGES_AT_ONCE, timeout=_POLL_SECONDS):
                    asked.hear(message)
                if answered := before - asked.open:
                    # Or they would go on to fetch, and to say that they end.
                    consumer.pause([Position(*log) for log in answered])
                    in_trouble_until_s = until_s
                if asked.open and _steady_s() >= looks_s:
                    looks_s = math.inf
                    # Meanwhile nobody hears leaders that do answer, so half of the time is for these.
                    asked.look(consumer, (until_s - _steady_s()) / 2)
                    if asked.has_looked:
                        in_trouble_until_s = until_s
        asked.give_up()
    return asked.ends, asked.errors


def _position(log: LogThere, reached: OffsetRange) -> Position:
    if reached.position_epoch is None:
        return Position(*log, reached.from_offset)
    return Position(*log, reached.from_offset, leader_epoch=reached.position_epoch)


@dataclass
class Asked:
    """What is asked of one cluster, and what came of it."""

    settings: ClientSettings
    trouble: Trouble
    reached: Mapping[LogThere, OffsetRange]
    ends: dict[LogThere, int | None] = field(default_factory=dict)
    errors: dict[LogThere, KeptlogError] = field(default_factory=dict)
    open: set[LogThere] = field(init=False)
    """Those that have not answered yet."""
    has_looked: bool = False
    """Whether a broker has said that these are there."""

    def __post_init__(self) -> None:
        self.open = set(self.reached)

    def hear(self, message: Message) -> None:
        """What came of one log; or an error, which may be of a whole topic, or of all that is asked."""
        error, topic, partition = message.error(), message.topic(), message.partition()
        if error is not None and is_harmless(error):
            return
        told = self.open & {(topic, partition)}
        if error is not None and partition is None:
            told = {log for log in self.open if topic in {log[0], None}}
        self._answered(told, error)

    def look(self, consumer: Consumer, wait_seconds: float) -> None:
        """Heed that logs are gone, or not shown to this user, if any broker says it."""
        with contextlib.suppress(KafkaException):  # the leader may answer yet
            gone = why_gone(consumer, self.settings, self.open, wait_seconds)
            self.errors |= gone
            self.open -= gone.keys()
            self.has_looked = True

    def _answered(self, logs: Collection[LogThere], error: KafkaError | None) -> None:
        for log in logs:
            self.open.discard(log)
            self._heed(log, error)

    def _heed(self, log: LogThere, error: KafkaError | None) -> None:
        if error is None or error.code() == PARTITION_EOF or is_broken_batch(error):
            self.ends[log] = self.reached[log].from_offset
        elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self.errors[log] = no_right_to_read(log[0], self.settings)
        elif error.code() != OFFSET_OUT_OF_RANGE:
            self.errors[log] = self._why_untold(error)
        elif "truncation" in error.str():
            told = BROKER_END.search(error.str())
            self.ends[log] = int(told[1]) if told else None

    def _why_untold(self, error: KafkaError, trouble: Trouble | None = None) -> KeptlogError:
        """Another ingest is named where that is of use."""
        told = translated(error, self.settings, _UNTOLD, trouble)
        if isinstance(told, StorageUnavailable):
            return told
        told = translated(error, self.settings, _UNTOLD_FOR_GOOD, trouble)
        return told.at_a_source() if isinstance(told, UnknownTopic) else told

    def give_up(self) -> None:
        """Nothing more is waited for."""
        in_time = f"{_UNTOLD}: no leader at {self.settings.bootstrap} said it in time"
        error: KeptlogError = StorageUnavailable(in_time)
        # Where others have answered, it may be of one broker, and what is open is another's.
        if self.trouble.errors and not (self.ends or self.has_looked):
            error = self._why_untold(no_answer().args[0], self.trouble)
        elif self.trouble.is_final:
            told = translated(no_answer().args[0], self.settings, f"{in_time}; at one broker", self.trouble)
            error = StorageUnavailable(str(told))
        self.errors |= dict.fromkeys(self.open, error)
        self.open.clear()
