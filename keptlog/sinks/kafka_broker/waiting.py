"""A call of librdkafka, for so long and no longer.

Its calls take a timeout, and sometimes forget it: one that was made when a broker went may wait for that broker for
ever, also after it came back. So such a call is made in a thread of its own, and given up when its time is over. A
thread that was given up stays until its call ends or the process does; the client it waits in is used no more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, Queue
from typing import TypeVar, cast

from confluent_kafka import KafkaException

from keptlog.kafka_client.errors import no_answer

Result = TypeVar("Result")


def in_time(call: Callable[[], Result], seconds: float) -> Result:
    """What a call gives, if it ends in time.

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
