"""A topic as it is declared: what it is to be, or what it is, in the same words, and what lies between the two.

    in the home                          declared                              differences
    partitions 2                         partitions 4                          partitions: 2 -> 4
    segment.ms=3600000                   -                                     segment.ms: 3600000 -> the default
    retention.ms=604800000               retention.ms: 604800000               -

What a topic sets itself is declared in full: a setting that is left out goes back to its default, and so do description
and owners. A topic has other things beside, which nobody declares: its records, and how far they were read and cleaned.
So two parts that stand on these are only ever added to. **Partitions** never become fewer, and where none are
declared there are as many as there were. A **source** that was learnt from an ingest stays, and another one can't take
its place, because the log end offset is the position at the first one (ADR 23).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from keptlog.errors import InvalidConfig
from keptlog.log.config import parse_setting
from keptlog.log.source import SourceIdentity
from keptlog.log.words.counted import counted

MAX_DESCRIPTION_LENGTH = 10_000
"""Of characters: it is in each metadata file that a commit writes."""
_OWNER = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}|team:[^\s,]+")
"""What Dagster takes for an owner."""


@dataclass(frozen=True, slots=True)
class About:
    """What is told of a topic to people; it decides nothing."""

    description: str | None = None
    owners: tuple[str, ...] = ()
    """Each an email address, or ``team:NAME``."""


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """What of a topic can be declared."""

    name: str
    partitions: int | None = None
    """Null for as many as there are, one if it is new, or as many as its source has."""
    config: Mapping[str, str] = field(default_factory=dict)
    """What it sets itself, under Kafka's names."""
    about: About = field(default_factory=About)
    source: SourceIdentity | None = None
    """Null for the one it has, if it has one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What of a topic is to change; a setting under its name. Null where there is nothing."""

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class TopicChange:
    """What brings a topic to what is declared of it."""

    before: DeclaredTopic | None
    """Null if it is to be created."""
    after: DeclaredTopic
    """With everything that stays as it is."""

    @property
    def name(self) -> str:
        return self.after.name

    @property
    def to_set(self) -> dict[str, str]:
        """Settings that it gets, or of which the value changes."""
        config = self.before.config if self.before else {}
        return {name: value for name, value in self.after.config.items() if config.get(name) != value}

    @property
    def unset(self) -> tuple[str, ...]:
        """Settings that go back to their defaults."""
        return tuple(name for name in (self.before.config if self.before else {}) if name not in self.after.config)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What changes, settings last; none if the topic is as it is to be."""
        before, after = _parts(self.before or DeclaredTopic(self.name)), _parts(self.after)
        names = dict.fromkeys((*before, *after))
        both = [Difference(name, before.get(name), after.get(name)) for name in names]
        return tuple(each for each in both if each.before != each.after)


def change_to(before: DeclaredTopic | None, declared: DeclaredTopic, positions: Sequence[int | None]) -> TopicChange:
    """What brings a topic to what is declared; ``positions`` are the log end offsets of the one that is there.

    Raises:
        InvalidConfig: it can't be brought there, because of what it holds.
    """
    there = before or DeclaredTopic(declared.name)
    source = source_after(there.source, declared.source, positions)
    if source and declared.partitions is not None and declared.partitions != there.partitions:
        raise InvalidConfig(f"it has the partitions of its source, {source}: leave partitions out")
    partitions = there.partitions or 1 if declared.partitions is None else declared.partitions
    if partitions < (there.partitions or 0):
        raise InvalidConfig(
            f"it has {counted(there.partitions or 0, 'partition')}, and can't have fewer ({partitions}): their records "
            "would be lost; leave partitions as they are, or make another topic"
        )
    config = {name: _kept_text(name, there.config.get(name), value) for name, value in declared.config.items()}
    return TopicChange(before, replace(declared, partitions=partitions, config=config, source=source))


def source_after(
    there: SourceIdentity | None, declared: SourceIdentity | None, positions: Sequence[int | None]
) -> SourceIdentity | None:
    """The source of a topic that has one there, or none, and those log end offsets, once one is declared.

    Raises:
        InvalidConfig: its records are not of that source.
    """
    if declared is None:
        return there
    if there is None:
        if any(position is not None for position in positions):
            raise InvalidConfig(
                f"it has records of its own, whose offsets are not those of {declared}: leave source out, or make "
                "another topic for it"
            )
        return declared
    if there.topic != declared.topic:
        raise InvalidConfig(f"its records come from {there}, not from {declared}: make another topic for that")
    return there.updated(declared)


def is_owner(owner: str) -> bool:
    """Whether it is an email address or a team."""
    return _OWNER.fullmatch(owner) is not None


def valid_owner(owner: str) -> str:
    """Return the owner if it is one.

    Raises:
        InvalidConfig: it is neither an email address nor a team.
    """
    if not is_owner(owner):
        raise InvalidConfig(f"owner {owner!r} is not known: write an email address, or team:NAME")
    return owner


def _kept_text(name: str, before: str | None, declared: str) -> str:
    """The text that is there already, if it means the same: 0.50 is no other ratio than 0.5."""
    if before is None or before == declared:
        return declared
    try:
        return before if parse_setting(name, before) == parse_setting(name, declared) else declared
    except InvalidConfig:
        return declared


def _parts(topic: DeclaredTopic) -> dict[str, str]:
    """Everything that is declared, as text. A setting may be empty: with no ``cleanup.policy`` nothing ever goes."""
    parts = {
        "description": topic.about.description,
        "owners": ", ".join(topic.about.owners),
        "partitions": str(topic.partitions or ""),
        "source": str(topic.source or ""),
    }
    return {name: text for name, text in parts.items() if text} | dict(topic.config)
