"""Writes records to a topic, each in the partition of its number, and how far it has got: exactly once.

    open_writer --> positions: where earlier writers got
                    write, write, ... is_full --> commit    records and positions, in one transaction
                    write, write, ...             commit
                --> what was not committed is aborted

``transactions`` says why nothing is lost or doubled, ``position`` how the positions are kept, ``failures`` what is told
when a record is not taken.

librdkafka takes a timestamp of 0 for "now", so 0 can't be sent; 1, a millisecond later, is sent instead and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from keptlog.kafka_client.errors import Trouble, broker_errors
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import Record
from keptlog.sinks.kafka_broker.acceptance import no_key
from keptlog.sinks.kafka_broker.failures import Failures, overtaken
from keptlog.sinks.kafka_broker.position import Pair, Position, Trail
from keptlog.sinks.kafka_broker.position_group import PositionGroup
from keptlog.sinks.kafka_broker.transactions import Transactions

TRANSACTION_RECORDS = 20_000
TRANSACTION_BYTES = 16 * 2**20
"""A transaction is committed at one of these, which bounds memory and what a kill does in vain."""
_BATCH_BYTES = 1_000_000
_ANY_BYTES = 1_000_000_000
_TURN_SECONDS = 0.5
_TIMEOUT = "transaction.timeout.ms"
_TIMEOUT_MS = 60_000
"""librdkafka's default."""
_NOBODY = logging.Logger("nobody")  # noqa: LOG001  # in no tree of loggers, where a configuration would enable it again
_NOBODY.disabled = True
"""Fatal errors, which librdkafka logs whatever its log level, are raised too."""


@dataclass
class Writer:
    """Writes one topic to its target. Made by ``open_writer``."""

    pair: Pair
    producer: Producer
    transactions: Transactions
    group: PositionGroup
    failures: Failures
    trail: Trail = field(default_factory=Trail)
    zero_timestamps: int = 0
    """How many records were sent with timestamp 1 for 0."""
    _records: int = 0
    _bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return self._records >= TRANSACTION_RECORDS or self._bytes >= TRANSACTION_BYTES

    def positions(self) -> dict[int, Position | None]:
        """By partition how far earlier writers got; null where nobody began.

        Raises:
            InvalidConfig: the positions are another topic's.
        """
        with self.failures.around("its positions can't be read"):
            committed = self.group.committed(self.pair.target.name, self.pair.target.partitions)
        self.transactions.trouble.forget()
        found = {each.partition: self.pair.position(each) for each in committed}
        self.trail.found(found)
        return found

    def write(self, partition: int, record: Record) -> None:
        """Send a record to the partition of this number.

        Raises:
            InvalidRecord: this record, or one sent before, is not taken.
            StalePlan: another writer of the same pair has begun.
            InvalidConfig, StorageUnavailable: the broker refuses, is gone, or has waited for too long.
        """
        if record.key is None and self.pair.target.is_compacted:
            raise no_key(self.failures.where(partition, record.offset), self.pair.target)
        self._records += 1
        self._bytes += len(record.key or b"") + len(record.value or b"")
        self.transactions.is_used()
        self.zero_timestamps += record.timestamp_ms == 0
        while not self._was_sent(partition, record):
            self._is_sending()
        self.failures.require_none()

    def commit(self, positions: Mapping[int, Position]) -> None:
        """Make what was written visible, and the positions with it; both or neither.

        Raises:
            KeptlogError: as ``write``.
        """
        while self._is_sending():
            self.failures.require_none()
        self.failures.require_none()
        offsets = [self.pair.committed(number, position) for number, position in positions.items()]
        self.trail.tried = positions
        with self.failures.around("a transaction can't be committed"):
            self.transactions.commit(offsets, self.group)
        self.trail.committed()
        self._records = self._bytes = 0
        self.transactions.trouble.forget()

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
        """Whether the client has room for the record and took it."""
        try:
            self.producer.produce(
                self.pair.target.name,
                key=record.key,
                value=record.value,
                partition=partition,
                timestamp=record.timestamp_ms or 1,
                headers=list(record.headers),
                on_delivery=partial(self.failures.delivery, partition, record.offset),
            )
        except BufferError:
            self.failures.require_none()
            return False
        except KafkaException as error:
            self.failures.hear()
            self.failures.require_none()
            where = self.failures.where(partition, record.offset)
            raise self.failures.translated(error.args[0], where) from None
        return True


@contextmanager
def open_writer(settings: ClientSettings, pair: Pair, trail: Trail | None = None) -> Iterator[Writer]:
    """The one writer of a pair; older ones are fenced. What it has not committed when the block ends is aborted.

    ``trail`` is that of the writers before, of the same restore.

    Raises:
        StalePlan: another restore has got further than they did. Nobody is fenced.
        InvalidConfig: a setting or a permission is wrong, or the positions are another topic's. Nobody is fenced.
        StorageUnavailable: the broker does not answer.
    """
    with ExitStack() as at_end:
        with broker_errors(settings, f"{pair.topic} can't be restored to {pair.target.name}") as trouble:
            trail = trail or Trail()
            _look(settings, pair, trail, trouble)
            configured = _producer_settings(settings, pair, trouble)
            producer = Producer(configured)
            transactions = Transactions(producer, trouble, int(configured[_TIMEOUT]) / 1000)
            transactions.begin()
            group = PositionGroup(lambda: Consumer({**settings.for_consumer(trouble), "group.id": pair.group}))
            writer = Writer(pair, producer, transactions, group, Failures(pair, settings, transactions), trail)
            at_end.callback(group.close)
            at_end.callback(transactions.abort)
        yield writer


def _look(settings: ClientSettings, pair: Pair, trail: Trail, trouble: Trouble) -> None:
    """Find out who is refused, before he fences a writer whose right it is.

    Raises:
        InvalidConfig: the positions are another topic's.
        StalePlan: they are those of another restore.
        KafkaException: there is no answer.
    """
    if not pair.target.is_there:
        return
    # What a writer that was killed left open is pending until it is fenced: to wait for that here would be for long.
    wanted = {"group.id": pair.group, "isolation.level": "read_uncommitted"}
    group = PositionGroup(lambda: Consumer({**settings.for_consumer(trouble), **wanted}))
    try:
        committed = group.committed(pair.target.name, pair.target.partitions)
    finally:
        group.close()
    trouble.forget()
    if trail.is_left({each.partition: pair.position(each) for each in committed}):
        raise overtaken(pair)


def _producer_settings(settings: ClientSettings, pair: Pair, trouble: Trouble) -> dict[str, Any]:
    limit = pair.target.batch_limit
    ours = {
        "transactional.id": pair.transactional_id,
        "batch.size": max(1, min(_BATCH_BYTES, limit[0])) if limit else _BATCH_BYTES,  # the client knows no 0
        "message.max.bytes": _ANY_BYTES,  # the broker knows what it takes
        "delivery.report.only.error": True,
        "logger": _NOBODY,
    }
    return {_TIMEOUT: _TIMEOUT_MS, **settings.for_producer(trouble), **ours}
