"""An offset of a topic-partition, as its leader told it.

librdkafka has an answer of its own where none came: if the connection breaks, or the time is over, its admin client
gives the offset -1001, and no error.
"""

from __future__ import annotations

from concurrent.futures import Future

from confluent_kafka.admin import ListOffsetsResultInfo

from keptlog.kafka_client.errors import no_answer


def told_offset(asked: Future[ListOffsetsResultInfo]) -> ListOffsetsResultInfo:
    """What the leader told when it was asked for where its log begins or ends.

    Raises:
        KafkaException: it told nothing, or an error.
    """
    told = asked.result()
    if told.offset < 0:  # where a log begins or ends is none
        raise no_answer()
    return told
