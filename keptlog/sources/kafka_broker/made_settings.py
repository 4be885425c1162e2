"""What a broker says of the settings of a topic: which of them were made, and whether its cleaner works there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import ConfigSource

from keptlog.errors import InvalidConfig
from keptlog.log.config import DECIDING, NOT_APPLICABLE, SETTINGS, parse_setting

_KNOWN_SETTINGS = {setting.name for setting in SETTINGS}
_OF_KAFKA = {"compaction.strategy": "offset"}
"""What decides which records go, and goes without saying at a broker: Kafka has no other strategy."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """A topic's settings at its broker: what was made there, for it or for all topics, and what decides what goes."""

    config: dict[str, str]
    """Under Kafka's names; those that keptlog has too."""
    left_out: dict[str, str]
    """Settings that mean nothing here, or can't have the value that they have there, with the reason."""


def made_settings(entries: Iterable[Any]) -> TopicSettings:
    """The settings that somebody made, for the topic or for all topics of the broker, and all that decide what goes.

    Of these a default counts too: where one is missing, this home's settings would decide (ADR 30).
    """
    said = [entry for entry in entries if entry.value is not None]
    made = {entry.name: entry.value for entry in said if ConfigSource(entry.source) is not ConfigSource.DEFAULT_CONFIG}
    deciding = {entry.name: entry.value for entry in said if entry.name in DECIDING}
    left_out = {name: why for name, value in made.items() if (why := _why_left_out(name, value))}
    known = {name: value for name, value in made.items() if name not in left_out}
    return TopicSettings(_OF_KAFKA | known | deciding, left_out)


def _why_left_out(name: str, value: str) -> str | None:
    """Why a topic here can't have it; null if it can.

    Ranges are those of Kafka 4, and wider at older brokers. What decides nothing is not worth the topic.
    """
    if name not in _KNOWN_SETTINGS:
        return NOT_APPLICABLE.get(name, "keptlog has no such setting")
    if name in DECIDING:
        return None
    try:
        parse_setting(name, value)
    except InvalidConfig as error:
        return str(error)
    return None


def is_compacted(entries: Mapping[str, Any]) -> bool | None:
    """Whether a topic is compacted there, by all its settings; null if that is not said.

    Not every broker that speaks Kafka's protocol has all of its settings. One without ``cleanup.policy`` may compact.
    """
    policy = entries["cleanup.policy"].value if "cleanup.policy" in entries else None
    return None if policy is None else "compact" in {each.strip() for each in policy.split(",")}
