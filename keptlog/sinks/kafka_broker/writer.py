"""Writes records to a topic in transactions, and in the same transactions how far it has got: exactly once.

    begin   records ...   position   commit   begin   records ...   position   commit
                                          ^ killed behind here: all before is there, and the position says so
                                                      ^ killed here: the next writer aborts it; consumers that read
                                                        committed records, Kafka's default for them, never see it

A position is the next offset of the log here, kept as the committed offset of a consumer group for the topic-partition
there; nobody consumes in that group. The transactional id is made of both names, so that Kafka fences an older writer
of the same pair as soon as a newer one begins.

librdkafka takes a timestamp of 0 for "now", so 0 can't be sent; 1, a millisecond later, is sent instead and counted.
"""

# ruff: noqa: SLF001  # the codes of librdkafka's own errors have such names

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, Queue
from typing import TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from keptlog.errors import InvalidConfig, InvalidRecord, KeptlogError, StalePlan
from keptlog.kafka_client.errors import Trouble, broker_errors, no_answer, translated
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.sinks.kafka_broker.target import Target

TRANSACTION_RECORDS = 20_000
TRANSACTION_BYTES = 16 * 2**20
"""A transaction is committed at one of these, which bounds memory and what a kill does in vain."""
_BATCH_BYTES = 1_000_000
_ANY_BYTES = 1_000_000_000
_NOBODY = logging.getLogger("keptlog.nobody")
_NOBODY.disabled = True
"""Fatal errors, which librdkafka logs whatever its log level, are raised too."""
_WAIT_SECONDS = 60.0
_ANSWER_SECONDS = 5.0
_TURN_SECONDS = 0.5
_CLIENT_SECONDS = 15.0
_MOST_CLIENTS = 3
"""One after the other, each for so long."""
_ABORT_SECONDS = 5.0
_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_NOT_READY = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._TIMED_OUT,
    }
)
_CONSEQUENCES = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a topic-partition has got: all before ``offset`` is there."""

    offset: int
    as_of_ms: int | None
    """What is there was in the log here at this time or later; null if nothing is there yet."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What is restored to what. Ids tell them from others of the same names."""

    topic: str
    topic_id: str
    target: Target

    @property
    def group(self) -> str:
        """The consumer group that keeps the positions."""
        return f"keptlog-restore-{self.topic}"

    @property
    def transactional_id(self) -> str:
        return f"keptlog-restore-{self.topic}-to-{self.target.name}"


@dataclass
class Writer:
    """Writes one topic to its target. Made by ``open_writer``."""

    pair: Pair
    settings: ClientSettings
    trouble: Trouble
    producer: Producer
    new_consumer: Callable[[], Consumer]
    consumer: Consumer
    """Of the group that keeps the positions."""
    zero_timestamps: int = 0
    """How many records were sent with timestamp 1 for 0."""
    _records: int = 0
    _bytes: int = 0
    _failure: KeptlogError | None = field(default=None)

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return self._records >= TRANSACTION_RECORDS or self._bytes >= TRANSACTION_BYTES

    def positions(self) -> dict[int, Position | None]:
        """By partition how far earlier writers got; null where nobody began.

        Raises:
            InvalidConfig: the positions are another topic's.
        """
        names = [TopicPartition(self.pair.target.name, number) for number in range(self.pair.target.partitions)]
        with self._errors("its positions can't be read"):
            committed = self._committed(names)
            for each in committed:
                if each.error:
                    raise KafkaException(each.error)
        self.trouble.forget()
        return {each.partition: self._position(each) for each in committed}

    def write(self, partition: int, record: Record) -> None:
        """Send a record to the partition of this number.

        Raises:
            InvalidRecord: this record, or one sent before, is not taken.
            StalePlan: another writer of the same pair has begun.
            InvalidConfig, StorageUnavailable: the broker refuses or is gone.
        """
        if record.key is None and self.pair.target.is_compacted:
            raise InvalidRecord(
                f"{self._where(partition, record.offset)}: it has no key, and {self.pair.target.name} is compacted: "
                "restore to a topic with cleanup.policy=delete"
            )
        self._records += 1
        self._bytes += len(record.key or b"") + len(record.value or b"")
        self.zero_timestamps += record.timestamp_ms == 0
        while not self._was_sent(partition, record):
            self._is_sending()
        self._require_no_failure()

    def commit(self, positions: Mapping[int, Position]) -> None:
        """Make what was written visible, and the positions with it; both or neither.

        Raises:
            KeptlogError: as ``write``.
        """
        while self._is_sending():
            self._require_no_failure()
        self._require_no_failure()
        offsets = [
            TopicPartition(self.pair.target.name, number, position.offset, metadata=self._metadata(position))
            for number, position in positions.items()
        ]
        with self._errors("a transaction can't be committed"):
            if self.trouble.errors:
                # After a broker went and came back, the next call might wait for it for ever: a new client does not.
                raise no_answer()
            group = self.consumer.consumer_group_metadata()
            seconds = _WAIT_SECONDS + _ANSWER_SECONDS
            _in_time(partial(self.producer.send_offsets_to_transaction, offsets, group, _WAIT_SECONDS), seconds)
            _in_time(partial(self.producer.commit_transaction, _WAIT_SECONDS), seconds)
            self.producer.begin_transaction()
        self._records = self._bytes = 0
        self.trouble.forget()

    def _committed(self, names: list[TopicPartition]) -> list[TopicPartition]:
        """Asked with another client when one does not answer: it may wait for ever, and the other finds out at once."""
        for _ in range(_MOST_CLIENTS - 1):
            try:
                return _in_time(partial(self._asked, names), _CLIENT_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT:
                    raise
            self.consumer = self.new_consumer()
        return _in_time(partial(self._asked, names), _CLIENT_SECONDS)

    def _asked(self, names: list[TopicPartition]) -> list[TopicPartition]:
        """Asked again while the broker that has the answer is not ready: its first group makes it create a topic."""
        consumer = self.consumer
        for _ in range(round(_CLIENT_SECONDS / _TURN_SECONDS)):
            try:
                return consumer.committed(names, timeout=_ANSWER_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in _NOT_READY:
                    raise
            why = consumer.poll(_TURN_SECONDS)
            if why and why.error():
                raise KafkaException(why.error())
        raise no_answer()

    def _is_sending(self) -> bool:
        """Give the client a turn; whether it has records that the broker has not taken yet.

        If the client is broken for good it raises, but not always what it means to, because a delivery report may get
        in its way. The next call says it.
        """
        try:
            return self.producer.flush(_TURN_SECONDS) > 0
        except (KafkaException, SystemError):
            return False

    def _was_sent(self, partition: int, record: Record) -> bool:
        try:
            self.producer.produce(
                self.pair.target.name,
                key=record.key,
                value=record.value,
                partition=partition,
                timestamp=record.timestamp_ms or 1,
                headers=list(record.headers),
                on_delivery=partial(self._failed, partition, record.offset),
            )
        except BufferError:
            self._require_no_failure()
            return False
        except KafkaException as error:
            self._require_no_failure()
            raise self._translated(error.args[0], self._where(partition, record.offset)) from None
        return True

    def _failed(self, partition: int, offset: int, error: KafkaError, _message: Message) -> None:
        """The first failure says most; those behind it are its consequences."""
        if self._failure or error.code() in _CONSEQUENCES:
            return
        where, target = self._where(partition, offset), self.pair.target
        if error.code() in _TOO_LARGE:
            self._failure = InvalidRecord(
                f"{where}: it is larger than max.message.bytes={target.max_message_bytes} of {target.name}: raise it "
                "there, and run this again; it goes on from here"
            )
        elif error.code() == KafkaError.INVALID_TIMESTAMP:
            self._failure = InvalidRecord(
                f"{where}: its timestamp is outside of message.timestamp.before.max.ms and message.timestamp.after."
                f"max.ms of {target.name}: raise them there, and run this again; it goes on from here"
            )
        else:
            self._failure = self._translated(error, where)

    def _where(self, partition: int, offset: int) -> str:
        return f"{self.pair.topic}-{partition} can't be restored beyond offset {offset}"

    def _require_no_failure(self) -> None:
        if self._failure:
            raise self._failure

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            self._require_no_failure()
            raise self._translated(error.args[0], f"{self.pair.topic} can't be restored: {what}") from None

    def _translated(self, error: KafkaError, doing: str) -> KeptlogError:
        if error.code() == KafkaError._FATAL:  # which one it is only transactions tell
            try:
                self.producer.begin_transaction()
            except KafkaException as told:
                error = told.args[0]
        if error.code() in _FENCED:
            pair = f"{self.pair.topic} to {self.pair.target.name}"
            return StalePlan(f"another restore of {pair} has begun and goes on where this one was; nothing is lost")
        return translated(error, self.settings, doing, self.trouble)

    def _metadata(self, position: Position) -> str:
        return json.dumps(
            {"topic": self.pair.topic_id, "target": self.pair.target.id, "as_of_ms": position.as_of_ms},
            separators=(",", ":"),
        )

    def _position(self, committed: TopicPartition) -> Position | None:
        if committed.offset < 0:
            return None
        where = f"{committed.topic}-{committed.partition}"
        try:
            told = json.loads(committed.metadata or "")
            position, topic_id = Position(committed.offset, told["as_of_ms"]), told["topic"]
        except (ValueError, KeyError, TypeError):
            raise InvalidConfig(
                f"consumer group {self.pair.group} has an offset for {where} that keptlog did not commit: restore to "
                "another topic (--topic), or delete the group's offsets"
            ) from None
        if told["target"] != self.pair.target.id:
            return None
        if topic_id != self.pair.topic_id:
            raise InvalidConfig(
                f"{where} was restored from another topic {self.pair.topic}, of another home or deleted since: restore "
                "to another topic (--topic)"
            )
        return position


def _in_time(call: Callable[[], Result], seconds: float) -> Result:
    """What a call of librdkafka gives, if it ends in time; a timeout that it takes itself it sometimes forgets.

    Raises:
        KafkaException: what the call raises, or that it did not end.
    """
    ended: Queue[tuple[Result | None, KafkaException | None]] = Queue()

    def made() -> None:
        try:
            ended.put((call(), None))
        except KafkaException as error:
            ended.put((None, error))

    threading.Thread(target=made, daemon=True).start()
    try:
        result, error = ended.get(timeout=seconds)
    except Empty:
        raise no_answer() from None
    if error:
        raise error
    return cast("Result", result)


@contextmanager
def open_writer(settings: ClientSettings, pair: Pair) -> Iterator[Writer]:
    """The one writer of a pair; older ones are fenced. What it has not committed when the block ends is aborted.

    Raises:
        InvalidConfig: a setting or a permission is wrong.
        StorageUnavailable: the broker does not answer.
    """
    ours = {
        "transactional.id": pair.transactional_id,
        "batch.size": min(_BATCH_BYTES, pair.target.max_message_bytes),
        "message.max.bytes": _ANY_BYTES,  # the broker knows what it takes
        "delivery.report.only.error": True,
        "logger": _NOBODY,
    }
    doing = f"{pair.topic} can't be restored to {pair.target.name}"
    with broker_errors(settings, doing) as trouble:
        producer = Producer({**settings.for_producer(trouble), **ours})
        producer.init_transactions(_WAIT_SECONDS)
        producer.begin_transaction()

        def new_consumer() -> Consumer:
            return Consumer({**settings.for_consumer(trouble), "group.id": pair.group})

        writer = Writer(pair, settings, trouble, producer, new_consumer, new_consumer())
    try:
        yield writer
    finally:
        producer.purge()
        # If it can't be aborted now, the next writer does, or the broker when the transaction times out.
        with contextlib.suppress(KafkaException):
            producer.abort_transaction(_ABORT_SECONDS)
        with contextlib.suppress(KafkaException):
            _in_time(writer.consumer.close, _ABORT_SECONDS)
