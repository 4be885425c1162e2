"""Messages of librdkafka as tables, byte for byte: null is not empty, and headers keep order, doubles and nulls.

A million messages are a million Python objects, and what is done to each of them decides how fast a broker is read. So
a table is built column by column, each with a loop that runs in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from keptlog.errors import InvalidRecord
from keptlog.log.record import TimestampType
from keptlog.log.topic_partition import TopicPartition
from keptlog.sources.kafka_broker.remedies import delete_there
from keptlog.storage.schema import LARGEST_STORABLE_MS, SCHEMA, US_PER_MS

_HEADERS = SCHEMA.field("headers").type
_NO_HEADERS = pa.array([], _HEADERS.value_type)
_TIMESTAMP = SCHEMA.field("timestamp").type


def table_of(messages: Sequence[Message], where: TopicPartition) -> pa.Table:
    """Messages, at least one and none of them an error, as a table of ``SCHEMA`` with the partition of ``where``.

    Raises:
        InvalidRecord: a record can't be kept as it is; names its offset, below which another one may be.
    """
    count = len(messages)
    kinds, times_ms = zip(*map(Message.timestamp, messages), strict=True)
    return pa.Table.from_arrays(
        [
            pa.repeat(pa.scalar(where.partition, pa.int32()), count),
            pa.array(_offsets(messages)),
            _timestamps(messages, kinds, times_ms, where),
            _timestamp_types(kinds),
            pa.array(list(map(Message.key, messages)), pa.binary()),
            pa.array(list(map(Message.value, messages)), pa.binary()),
            _header_lists(messages, where),
            pa.nulls(count, _TIMESTAMP),
        ],
        schema=SCHEMA,
    )


def _unfit(where: TopicPartition, message: Message, what: str) -> InvalidRecord:
    offset = cast("int", message.offset())
    return InvalidRecord(
        f"{where}: the record at offset {offset} {what}: mend its producer, then "
        f"{delete_there(f'before offset {offset + 1}')}"
    ).from_offset(offset)


def _offsets(messages: Sequence[Message]) -> npt.NDArray[np.int64]:
    first, last = cast("int", messages[0].offset()), cast("int", messages[-1].offset())
    if last - first == len(messages) - 1:  # they rise, so there is no gap: nobody needs to be asked
        return np.arange(first, last + 1, dtype=np.int64)
    return np.array(list(map(Message.offset, messages)), np.int64)


def _timestamps(
    messages: Sequence[Message], kinds: Sequence[int], times_ms: Sequence[int], where: TopicPartition
) -> pa.Array:
    times = np.array(times_ms, np.int64)
    if TIMESTAMP_NOT_AVAILABLE in kinds:
        times[np.array(kinds) == TIMESTAMP_NOT_AVAILABLE] = -1
    for extreme in (int(times.argmin()), int(times.argmax())):
        if not -LARGEST_STORABLE_MS <= times[extreme] <= LARGEST_STORABLE_MS:
            raise _unfit(where, messages[extreme], f"has the timestamp {times[extreme]} ms, which no table can hold")
    return pa.array(times * US_PER_MS).view(_TIMESTAMP)


def _timestamp_types(kinds: Sequence[int]) -> pa.Array:
    is_append_time = np.array(kinds) == TIMESTAMP_LOG_APPEND_TIME
    return pa.array(is_append_time.astype(np.int32) * np.int32(TimestampType.LOG_APPEND_TIME))


def _header_lists(messages: Sequence[Message], where: TopicPartition) -> pa.Array:
    lists: list[Any] = []
    try:
        lists.extend(map(Message.headers, messages))
    except (SystemError, UnicodeDecodeError):
        # It is told once only, by the message that has it.
        raise _unfit(where, messages[len(lists)], "has a header whose name is not UTF-8, as Kafka demands") from None
    starts = np.zeros(len(lists) + 1, np.int32)
    if not any(lists):
        return pa.ListArray.from_arrays(pa.array(starts), _NO_HEADERS, type=_HEADERS)
    np.cumsum([len(each) if each else 0 for each in lists], out=starts[1:])
    pairs = [pair for each in lists if each for pair in each]
    names = pa.array([name for name, _ in pairs], pa.string())
    values = pa.array([value for _, value in pairs], pa.binary())
    structs = pa.StructArray.from_arrays([names, values], fields=list(_HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(starts), structs, type=_HEADERS)
