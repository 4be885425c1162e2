"""The transactions of one writer: what makes a restore exactly once.

    begin   records ...   positions   commit   begin   records ...   positions   commit
                                           ^ killed behind here: all before is there, and the positions say so
                                                       ^ killed here: the next writer aborts it; consumers that read
                                                         committed records, Kafka's default for them, never see it

A writer that begins fences the older ones of its transactional id: from then on the broker refuses whatever they send,
and what they had open is aborted. So there is one writer of a pair at a time, wherever its processes run.

The broker also fences a writer whose transaction is open for longer than ``transaction.timeout.ms``, with the same
error. So it is known for how long it was open: in between, storage is read, and a machine may sleep.
"""

# ruff: noqa: SLF001  # the codes of librdkafka's own errors have such names

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic as _steady_s  # noqa: TID251  # how long a broker waited, which no log depends on
from time import time as _wall_s  # noqa: TID251  # as above, and it goes on while the machine sleeps

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from keptlog.kafka_client.errors import Trouble, no_answer
from keptlog.sinks.kafka_broker.position_group import PositionGroup
from keptlog.sinks.kafka_broker.waiting import in_time

_logger = logging.getLogger(__name__)

_WAIT_SECONDS = 60.0
_LATE_SECONDS = 5.0
"""A call that has not ended so long after its own timeout has forgotten it."""
_ABORT_SECONDS = 5.0
_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})


def _clocks() -> tuple[float, float]:
    """In seconds: one that nobody sets, and one that goes on while the machine sleeps."""
    return _steady_s(), _wall_s()


@dataclass(slots=True)
class Transactions:
    """One after the other, on one producer with a transactional id. All methods raise KafkaException but ``abort``."""

    producer: Producer
    trouble: Trouble
    """What the producer's ``error_cb`` was told since it last worked."""
    timeout_seconds: float
    """After so long the broker aborts one, and fences its writer."""
    _opened: tuple[float, float] | None = field(default=None, init=False)

    def begin(self) -> None:
        """Fence older writers, abort what they left, and begin."""
        self.producer.init_transactions(_WAIT_SECONDS)
        self.producer.begin_transaction()

    def is_used(self) -> None:
        """Something is being sent: the first time, the broker's clock for this one begins."""
        self._opened = self._opened or _clocks()

    @property
    def outlived_seconds(self) -> float | None:
        """For how long it has been open, if that is too long; null if it is not."""
        open_seconds = max(now - then for now, then in zip(_clocks(), self._opened or _clocks(), strict=True))
        return open_seconds if open_seconds >= self.timeout_seconds else None

    def commit(self, offsets: Sequence[TopicPartition], group: PositionGroup) -> None:
        """Make what was sent visible, and the group's offsets with it, both or neither; then begin the next.

        The broker must have taken all that was sent.
        """
        if self.trouble.errors:
            # After a broker went and came back, the next call might wait for it for ever: a new client does not.
            raise no_answer()
        self.is_used()
        metadata, seconds = group.metadata, _WAIT_SECONDS + _LATE_SECONDS
        in_time(partial(self.producer.send_offsets_to_transaction, list(offsets), metadata, _WAIT_SECONDS), seconds)
        in_time(partial(self.producer.commit_transaction, _WAIT_SECONDS), seconds)
        self._opened = None
        self.producer.begin_transaction()

    def abort(self) -> None:
        """Give up what was not committed.

        If the broker can't be told now, the next writer tells it, or the transaction times out there.
        """
        self.producer.purge()
        try:
            self.producer.abort_transaction(_ABORT_SECONDS)
        except KafkaException as error:
            _logger.debug("a transaction is left open, the broker can't be told (%s)", error.args[0].name())

    def cause_of(self, error: KafkaError) -> KafkaError:
        """The error itself; if that only says that the client is broken for good, what broke it."""
        if error.code() == KafkaError._FATAL:  # which one it is only transactions tell
            try:
                self.producer.begin_transaction()
            except KafkaException as told:
                cause: KafkaError = told.args[0]
                return cause
        return error


def is_fenced(error: KafkaError) -> bool:
    """Whether it says that the broker takes no more from this writer: a newer one has begun, or it was too slow."""
    return error.code() in _FENCED
