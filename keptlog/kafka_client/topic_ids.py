"""The id of a topic, as Kafka writes it: base64 for URLs, in its tools and in the ``partition.metadata`` of its logs.

librdkafka writes plain base64, with ``+`` and ``/`` where Kafka has ``-`` and ``_``. Every second id has one of them.
"""

from __future__ import annotations

from confluent_kafka import Uuid

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a broker before Kafka 2.8 says, whose topics have no ids."""
_TO_KAFKAS = str.maketrans("+/", "-_")


def topic_id_of(uuid: Uuid) -> str:
    """The id as text that can be compared with what Kafka's files and tools say."""
    return str(uuid).translate(_TO_KAFKAS)
