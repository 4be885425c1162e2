"""The name of one log: a topic and the number of one of its partitions, written ``<topic>-<N>`` as Kafka does.

Dots and hyphens are the rule in topic names (``server.schema.table``), so only the last hyphen separates the number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from keptlog.errors import InvalidConfig
from keptlog.log.given.given import text
from keptlog.log.given.plain_number import plain_number

_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MAX_NAME_LENGTH = 249
MAX_PARTITIONS = 10_000
"""Of one topic: what is done partition by partition has an end."""


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One log of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TopicPartition:
        """Read ``<topic>-<N>``.

        Raises:
            InvalidConfig: the text has no partition number or an illegal topic name.
        """
        named = cls.of_a_log(text)
        valid_topic_name(named.topic)
        return named

    @classmethod
    def of_a_log(cls, text: str) -> TopicPartition:
        """The same of a log that is there: another program may have given its table a name that no broker takes.

        Raises:
            InvalidConfig: the text has no partition number.
        """
        topic, hyphen, number = text.rpartition("-")
        partition = plain_number(number)
        if not hyphen or partition is None:
            raise InvalidConfig(f"{text!r} is not a topic-partition: write <topic>-<number>, for example orders-0")
        return cls(topic, partition)


def possible_topics(name: str) -> list[str]:
    """The topics that a name of a topic or topic-partition may be about."""
    topic, hyphen, number = name.rpartition("-")
    return [name, topic] if hyphen and number.isdecimal() else [name]


def is_topic_name(name: str) -> bool:
    """Whether Kafka would accept it (``Topic.validate``): no broker has a topic of another name."""
    is_short = len(name) <= _MAX_NAME_LENGTH
    return is_short and name not in {".", ".."} and _LEGAL_NAME.fullmatch(name) is not None


def valid_topic_name(name: str) -> str:
    """Return the name if Kafka would accept it.

    Raises:
        InvalidConfig: the name is empty, too long, ``.`` or ``..``, or holds other characters.
    """
    name = text(name, "a topic's name")
    if not is_topic_name(name):
        raise InvalidConfig(
            f"topic name {name!r} is not allowed: use 1 to {_MAX_NAME_LENGTH} letters, digits, '.', '_' or '-', "
            "and neither '.' nor '..'"
        )
    return name
