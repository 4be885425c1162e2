"""Reads one offset range of one topic-partition, with a consumer of its own that knows no group and commits nothing.

Offsets have gaps: markers of transactions, aborted records, what the broker's cleaner took. So the end of a range is
not an offset that must come. It is reached with the first record at or behind it, or with the end of the log:

    range [120, 200)      120 .. 151   153 .. 197  [200        200 belongs to another part
                          120 .. 151   153 .. 197  | end       198 and 199 are markers; the log ends at 200

Of what it leaves out librdkafka tells nobody, and a transaction that was aborted may have gigabytes of it. Only its
statistics say that it goes on; so they are looked at where no record comes:

    range [200, 400)      200 .. 213   aborted: 214 .. 90,000       fetched up to 31,000: alive, and this range is over

If the log ends before the range does, or does not begin before it, it is another log than the one that was planned
from, and the part fails. So it does if the broker says that the log was cut off below the range since: librdkafka asks
for the end of the leader epoch that a position is given with (KIP-320). Memory is bounded: by what librdkafka may fetch
ahead, and by one table.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from keptlog.errors import IngestStopped, InvalidRecord, KeptlogError, LogCorrupt, StalePlan, StorageUnavailable
from keptlog.kafka_client.errors import (
    AFTER_SILENCE_SECONDS,
    OFFSET_OUT_OF_RANGE,
    PARTITION_EOF,
    Trouble,
    broker_errors,
    is_broken_batch,
    no_answer,
    translated,
)
from keptlog.kafka_client.leaders import leader_now
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.cut_off import NOTHING_KEPT, Kept, why_refilled
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.messages import table_of
from keptlog.sources.kafka_broker.remedies import delete_there
from keptlog.sources.kafka_broker.signs import Signs, Silence
from keptlog.sources.kafka_broker.still_there import LOOK_AFTER_SECONDS, LOOK_SECONDS, no_right_to_read, why_gone

_logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
"""Of the wait for messages that don't come, at the end of a log; while they come, nobody waits."""
_MOST_AT_ONCE = 500
"""Messages; Kafka's own ``max.poll.records``."""
_BYTES_AT_ONCE = 4 * 2**20
"""Of messages with keys and values of the size of those before."""
_TABLE_ROWS = 4_096
_TABLE_BYTES = 8 * 2**20
"""Of keys and values; whichever comes first."""

IN_TROUBLE_SECONDS = 2.0
"""So long is waited once a broker lets nobody in, or none listens: it may be one of several, and another one leads."""
_TOLD_AFTER_SECONDS = 1.0
"""An outage; for as long, another broker may answer, and nobody has to look at anything."""
_WHO_LEADS_SECONDS = 0.25
"""For an answer that is there in a millisecond, and nothing depends on."""

_TOLD_IN_A_STALL = 12
"""At least so often librdkafka's statistics come in a wait: each 0.25 s of 3."""
_TOLD_EACH_SECONDS = IN_TROUBLE_SECONDS / 2
"""And at least so often in any: before a part is given up, they have said whether its leader is up."""

BROKER_END = re.compile(r"broker end offset is (\d+)")
"""Where a log was cut off: librdkafka tells it in words alone."""

# Of the group that it must name and never joins:
_OF_THE_GROUP = "FindCoordinator"
_HARMLESS = {
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


@dataclass(frozen=True, slots=True)
class BrokerPart:
    """The committed records with offsets in [from, end) of one topic-partition of a broker."""

    settings: ClientSettings
    topic: str
    """Its name there."""
    topic_partition: TopicPartition
    """The one here; it has the partition's number there."""
    from_offset: int
    end_offset: int
    """At most the last stable offset."""
    leader_epoch: int | None = None
    """That under which the records before the range were read, if the log must not have been cut off below it since."""
    silence: Silence = field(default_factory=Silence, compare=False)
    """Of its cluster."""
    stall_seconds: float = 60
    """So long nothing may come from the broker, not even what is left out; a restart takes less."""
    kept: Kept = NOTHING_KEPT

    @property
    def weight(self) -> int:
        """How many offsets; nobody knows how many bytes they are."""
        return self.end_offset - self.from_offset

    @property
    def there(self) -> str:
        """What is read, for messages."""
        name = TopicPartition(self.topic, self.topic_partition.partition)
        return f"{name} at {self.settings.bootstrap}"

    @property
    def _position(self) -> Position:
        position = Position(self.topic, self.topic_partition.partition, self.from_offset)
        if self.leader_epoch is None:
            return position
        return Position(position.topic, position.partition, position.offset, leader_epoch=self.leader_epoch)

    def wait_seconds(self, signs: Signs) -> float:
        """So long the next sign of the broker is waited for."""
        return signs.wait_seconds(self.stall_seconds, self._shortest_wait_seconds)

    @property
    def _shortest_wait_seconds(self) -> float:
        return min(self.stall_seconds, AFTER_SILENCE_SECONDS)

    def read(self, _skip: Callable[[str], None]) -> Iterator[pa.Table]:
        """The records as tables of ``SCHEMA``, without delete horizons; nothing is ever left out.

        Raises:
            StalePlan: the log there does not hold the range any more, or was cut off in it.
            StorageUnavailable: the broker can't be reached, or nothing came from it for ``stall_seconds``; for a few if
                its leader was silent for another part just before.
            InvalidConfig: a client setting or a password is wrong, or the permission or the partition is missing.
            IngestStopped: the log was cut off below the range.
            UnknownTopic: the topic is gone.
            LogCorrupt: a batch there is damaged, or of a kind that this client can't read.
            InvalidRecord: a record can't be kept as it is.

        The last two come behind all records that are there before.
        """
        with broker_errors(self.settings, f"{self.there} can't be read") as trouble, _no_search_for_cycles():
            signs = Signs(self.topic, str(self.topic_partition.partition), self.silence)
            # Who leads here is only told with them, and may be known to be silent.
            wait_seconds = self._shortest_wait_seconds if self.silence.leaders else self.stall_seconds
            interval_ms = max(1, int(min(wait_seconds / _TOLD_IN_A_STALL, _TOLD_EACH_SECONDS) * 1000))
            statistics = {"stats_cb": signs, "statistics.interval.ms": interval_ms}
            consumer = Consumer({**self.settings.for_consumer(error_cb=trouble), **statistics})
            with contextlib.closing(consumer):
                consumer.assign([self._position])
                reading = _Reading(self, consumer, trouble, signs)
                while not reading.is_done:
                    yield from reading.next_table()
                if signs.is_anonymous and self.silence.leaders:
                    self._ask_who_leads(consumer, signs)

    def _ask_who_leads(self, consumer: Consumer, signs: Signs) -> None:
        """Of a small part nobody says it before the end; so one that was silent, and has just answered, stayed that."""
        signs.is_led_by(leader_now(consumer, self.topic, self.topic_partition.partition, _WHO_LEADS_SECONDS))


@dataclass
class _Reading:
    """One part on its way."""

    part: BrokerPart
    consumer: Consumer
    trouble: Trouble
    signs: Signs
    position: int = field(init=False)
    """The least offset that the next record can have."""
    is_done: bool = False
    _at_once: int = 64
    _idle_polls: int = 0
    _log_end: int | None = None
    """Where the log ended when it was last seen to."""
    _broken: LogCorrupt | None = None
    """Why the next records can't be read."""
    _outage_from: int | None = None
    """If the broker can't be reached, and that was logged: how often ``signs`` had been told by then."""
    _shut_out_from: int | None = None
    """If a broker lets nobody in: how many polls were idle when that was seen."""
    _trouble_from: int | None = None
    """The same, if anything else is wrong with one."""
    _has_looked: bool = False
    """Whether brokers were asked if the log is still there, since the last record came."""

    def __post_init__(self) -> None:
        self.position = self.part.from_offset

    def next_table(self) -> Iterator[pa.Table]:
        """The next records together, or nothing."""
        together: list[Message] = []
        size_bytes = 0
        while not self.is_done and len(together) < _TABLE_ROWS and size_bytes < _TABLE_BYTES:
            messages = self._poll()
            if messages:
                together += messages
                # A message is as long as its value.
                polled_bytes = sum(map(len, messages)) + sum(map(len, filter(None, map(Message.key, messages))))
                size_bytes += polled_bytes
                self._at_once = max(1, min(_MOST_AT_ONCE, _BYTES_AT_ONCE * len(messages) // (polled_bytes + 1)))
        if together:
            yield from self._tables_of(together)
        if self._broken:
            raise self._broken

    def _tables_of(self, messages: Sequence[Message]) -> Iterator[pa.Table]:
        """One table, or that of the messages before the first which no table can hold."""
        try:
            table = table_of(messages, self.part.topic_partition)
        except InvalidRecord as error:
            if before := [message for message in messages if _offset(message) < (error.whole_before_offset or 0)]:
                yield from self._tables_of(before)
            raise
        yield table

    def _poll(self) -> list[Message]:
        """The records that came, none of them outside of the part; notices when it is done."""
        end, fetched, told_times = self.part.end_offset, self.signs.fetched, self.signs.times
        polled = self.consumer.consume(min(self._at_once, end - self.position), timeout=_POLL_SECONDS)
        has_events = any(map(Message.error, polled))
        # The client goes on behind a batch that it can't read.
        broken = next((place for place, each in enumerate(polled) if _is_broken(each)), None) if has_events else None
        polled, unreadable = polled[:broken], polled[broken] if broken is not None else None
        messages = [message for message in polled if message.error() is None] if has_events else polled
        if messages:
            self._go_on_at(_offset(messages[-1]) + 1)
            self._has_looked = False
            self._answers()
        elif not polled and fetched > self.position:
            # Nothing is queued: so what was fetched until then was all left out.
            self._go_on_at(fetched)
            # What is told for the first time after an outage has begun may have been fetched before.
            if self._outage_from is not None and told_times > self._outage_from + 1:
                self._answers()
        if has_events:
            for event in polled:
                self._heed(event.error(), _offset(event))
        if unreadable:
            self._stop_at(unreadable)
        if self.position >= end:
            self.is_done = True
            return [message for message in messages if _offset(message) < end]
        if not messages and not self.is_done:
            self._wait_on()
        return messages

    def _go_on_at(self, position: int) -> None:
        """Something came, and was given to the caller or left out."""
        self.position, self._idle_polls, self._shut_out_from, self._trouble_from = position, 0, None, None
        self.signs.answers()
        if self._log_end is not None and self._log_end < position:
            self._log_end = None

    def _answers(self) -> None:
        """The broker is there, whatever was wrong before."""
        self.trouble.forget()
        if self._outage_from is not None:
            self._outage_from = None
            _logger.info("%s answers again; reading on at offset %d", self.part.there, self.position)

    def _heed(self, error: KafkaError | None, offset: int) -> None:
        """What came between the records."""
        if error is None or is_harmless(error):
            return
        if error.code() == OFFSET_OUT_OF_RANGE and "truncation" in error.str():
            found = BROKER_END.search(error.str())
            end_offset = int(found[1]) if found else None
            if end_offset is not None and end_offset >= self.part.from_offset:
                # What was read before this part is still there: nobody needs to choose anything.
                raise StalePlan(
                    f"{self.part.there} was cut off at offset {end_offset} while it was read; ingest again to see what "
                    "is there now"
                )
            why = why_refilled(self.part.topic_partition, self.part.from_offset, end_offset, self.part.kept)
            raise IngestStopped(f"{self.part.there}: {why}")
        if error.code() == OFFSET_OUT_OF_RANGE:
            raise StalePlan(
                f"{self.part.there} does not have offset {self.position} any more: it was deleted, or the log was cut "
                "off; ingest again to see what is left"
            )
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise no_right_to_read(self.part.topic, self.part.settings)
        if error.code() != PARTITION_EOF:
            raise KafkaException(error)
        self._log_end = offset
        self.signs.answers()
        self.is_done = offset >= self.part.end_offset

    def _stop_at(self, unreadable: Message) -> None:
        """End with what came before a batch; it is an error if it lies in the part."""
        self.is_done = True
        at_offset = max(_offset(unreadable), self.position)
        if at_offset < self.part.end_offset:
            why = self.part.settings.hide(cast("KafkaError", unreadable.error()).str())
            self._broken = LogCorrupt(
                f"{self.part.there}: the batch at offset {at_offset} can't be read: {why}; let a replica lead it that "
                f"is whole, or {delete_there('up to the end of that batch')}"
            ).from_offset(at_offset)

    def _wait_on(self) -> None:
        """Nothing came; give up if that has lasted too long."""
        wait_seconds = self.part.wait_seconds(self.signs)
        is_final = self.trouble.is_final_for(self.signs.known_leader)
        if not is_final or self.signs.is_up or self.signs.is_leaderless:
            self._shut_out_from = None  # it was another broker
        elif self._shut_out_from is None:
            self._shut_out_from = self._idle_polls
        elif (self._idle_polls - self._shut_out_from) * _POLL_SECONDS >= min(IN_TROUBLE_SECONDS, wait_seconds):
            raise self._why_silent(f"{self.part.there} can't be read")
        if not is_final and self._outage_from is None and not self.signs.is_leaderless:
            self._tell_outage(wait_seconds)
        self._idle_polls += 1
        if not self._has_looked and self._idle_polls * _POLL_SECONDS >= LOOK_AFTER_SECONDS:
            self._look()
        if self._idle_polls * _POLL_SECONDS < wait_seconds:
            return
        if self._log_end is not None:
            raise StalePlan(
                f"{self.part.there} ends at offset {self._log_end}, and {self.part.end_offset} was planned: it was cut "
                "off; ingest again to see what is left"
            )
        self.signs.given_up()
        if self.trouble.errors and not self.signs.is_up and not self.signs.is_leaderless:
            raise self._why_silent(f"{self.part.there} can't be read")
        # What is wrong with another broker, or an address of the list, is no reason then.
        nobody = ", and nobody led it when brokers last told of it" if self.signs.is_leaderless else ""
        raise StorageUnavailable(
            f"{self.part.there}: nothing came for {wait_seconds:g} s at offset {self.position} of "
            f"[{self.part.from_offset}, {self.part.end_offset}){nobody}; try again"
        )

    def _look(self) -> None:
        """Give up at once on what is not there any more."""
        self._has_looked = True
        log = self.part.topic, self.part.topic_partition.partition
        try:
            gone = why_gone(self.consumer, self.part.settings, [log])
        except KafkaException:  # it may be back yet
            self._idle_polls += round(LOOK_SECONDS / _POLL_SECONDS)
            return
        if log in gone:
            raise gone[log]

    def _tell_outage(self, wait_seconds: float) -> None:
        """Say that nothing comes, and why, once it lasts: one of several addresses may be wrong, and another right."""
        if not self.trouble.may_explain(self.signs.known_leader):
            return
        if self._trouble_from is None:
            self._trouble_from = self._idle_polls
        if (self._idle_polls - self._trouble_from) * _POLL_SECONDS < min(_TOLD_AFTER_SECONDS, wait_seconds / 2):
            return
        self._outage_from = self.signs.times
        _logger.warning("%s; waiting for it for up to %g s", self._why_silent(self.part.there), wait_seconds)

    def _why_silent(self, doing: str) -> KeptlogError:
        """Of the leader, once it is known who that is: the others of its cluster may well answer."""
        silence, leader = no_answer().args[0], self.signs.known_leader
        return translated(silence, self.part.settings, doing, self.trouble, leader)


@contextlib.contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Python's collector would walk all messages at hand whenever some more were made, which costs as much as all else.

    They are in no cycles, and are freed without it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_broken(message: Message) -> bool:
    error = message.error()
    return error is not None and is_broken_batch(error) and not is_harmless(error)


def is_harmless(error: KafkaError) -> bool:
    """Whether it is of the group, which nobody needs."""
    return error.code() in _HARMLESS or error.str().startswith(_OF_THE_GROUP)


def _offset(message: Message) -> int:
    return cast("int", message.offset())
