"""What goes wrong while a topic is written, as keptlog's errors: with the offset that can't be passed, and what to do.

Most of what a topic does not take is known before (``acceptance``). What only the broker knows, it reports long after
the record was sent, and then everything behind it fails as well: its transaction is broken. So the first report is kept
and told, and whatever fails after it is its consequence. A call may fail before the report is heard that says why: it
is waited for.
"""

# ruff: noqa: SLF001  # the codes of librdkafka's own errors have such names

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message

from keptlog.errors import KeptlogError, StalePlan, StorageUnavailable
from keptlog.kafka_client.errors import AFTER_SILENCE_SECONDS, is_no_answer, translated
from keptlog.kafka_client.leaders import leader_now
from keptlog.kafka_client.settings import ClientSettings
from keptlog.sinks.kafka_broker.acceptance import too_large, untimely
from keptlog.sinks.kafka_broker.position import Pair
from keptlog.sinks.kafka_broker.transactions import Transactions, is_fenced

_CONSEQUENCES = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
_TURN_SECONDS = 0.2
_REPORT_TURNS = 25
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


@dataclass
class Failures:
    """Of one writer."""

    pair: Pair
    settings: ClientSettings
    transactions: Transactions
    first: KeptlogError | None = None
    """That of the first record that the broker did not take."""
    _reported: tuple[KafkaError, int, int] | None = None
    """Instead, until it is told, what the client reported, with partition and offset: while a client reports, it can't
    be asked for the cause, or who leads. To ask it would end the process."""

    def delivery(self, partition: int, offset: int, error: KafkaError, _message: Message) -> None:
        """What librdkafka reports of a record that was not taken: its offset here, and why."""
        if self.is_known or error.code() in _CONSEQUENCES:
            return
        where, target = self.where(partition, offset), self.pair.target
        if error.code() in _TOO_LARGE:
            self.first = too_large(where, target)
        elif error.code() == KafkaError.INVALID_TIMESTAMP:
            self.first = untimely(where, target)
        else:
            self._reported = error, partition, offset

    @property
    def is_known(self) -> bool:
        """Whether a record is known that the broker did not take."""
        return self.first is not None or self._reported is not None

    def hear(self) -> None:
        """Wait for the report of a record that was not taken, as long as one may come."""
        producer = self.transactions.producer
        for _ in range(_REPORT_TURNS):
            if self.is_known or not len(producer):
                return
            with suppress(KafkaException, SystemError):
                producer.poll(_TURN_SECONDS)

    def require_none(self) -> None:
        """Raises the first failure, if there is one."""
        if self._reported:
            (error, partition, offset), self._reported = self._reported, None
            producer = self.transactions.producer
            leader = None
            if is_no_answer(error):
                leader = leader_now(producer, self.pair.target.name, partition, AFTER_SILENCE_SECONDS)
            self.first = self.translated(error, self.where(partition, offset), leader)
        if self.first:
            raise self.first

    @contextmanager
    def around(self, what: str) -> Iterator[None]:
        """Around whatever uses a client; ``what`` ends the error's message, such as "its positions can't be read"."""
        try:
            yield
        except KafkaException as error:
            self.hear()
            self.require_none()
            raise self.translated(error.args[0], f"{self.pair.topic} can't be restored: {what}") from None

    def translated(self, error: KafkaError, doing: str, broker: int | None = None) -> KeptlogError:
        """One error of the producer as keptlog's; ``broker`` as in ``kafka_client.errors``."""
        error = self.transactions.cause_of(error)
        if is_fenced(error):
            open_seconds = self.transactions.outlived_seconds
            if open_seconds is not None:
                limit = f"transaction.timeout.ms={round(self.transactions.timeout_seconds * 1000)}"
                return StorageUnavailable(
                    f"{doing}: a transaction was open for {open_seconds:.0f} s, longer than {limit}, so the broker has "
                    "aborted it; nothing is lost, try again"
                )
            return overtaken(self.pair)
        return translated(error, self.settings, doing, self.transactions.trouble, broker)

    def where(self, partition: int, offset: int) -> str:
        """The record that can't be passed."""
        return f"{self.pair.topic}-{partition} can't be restored beyond offset {offset}"


def overtaken(pair: Pair) -> StalePlan:
    """A newer writer of the pair has begun."""
    return StalePlan(
        f"another restore of {pair.topic} to {pair.target.name} has begun, so this one has ended; nothing is lost, and "
        "another run goes on from where they got"
    )
