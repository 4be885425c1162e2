"""What a topic is called in Dagster.

Asset keys and partition keys take a topic's name as it is: ``[topic, "clean"]``, ``<topic>-<N>``. Op and group names
allow letters, digits and ``_`` only, while Kafka's topics are full of dots and hyphens. In groups a dot is a step down:
``crm.users`` is the group ``users`` in the group ``crm``. All else becomes ``_``; where that gives two topics of a
mount one name, such as ``a-b`` and ``a_b``, the one that had to change gets a suffix.

An op's name must differ from all others of its code location, or nothing of it loads. A mount with a prefix is there
because of others, which it does not see, and topics come when nobody looks. So each op of such a mount has a suffix.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from keptlog.dagster.assets.translator import AS_DELIVERED, DagsterKeptlogTranslator, Section

CLEAN_JOB = "clean_logs"
_IN_INPUTS = re.compile(r"[A-Za-z0-9_.-]+")
"""What a key may consist of that an input is called after: Dagster makes ``_`` of dots and hyphens alone."""


@dataclass(frozen=True)
class AssetKeys:
    """The asset keys of a home. There is no other way to one, so that all events of a topic reach the same assets."""

    prefix: tuple[str, ...] = ()
    translator: DagsterKeptlogTranslator = AS_DELIVERED

    def of(self, topic: str, section: Section) -> dg.AssetKey:
        """One of a topic's assets: as delivered where the translator has no name for it, which costs no other topic."""
        try:
            return self.translated(topic, section)
        except Exception:  # noqa: BLE001  # it is the project's own; who loads the definitions says so
            return AS_DELIVERED.get_asset_key(topic, section).with_prefix(self.prefix)

    def translated(self, topic: str, section: Section) -> dg.AssetKey:
        """The same; raises what the translator raises."""
        return self.translator.get_asset_key(topic, section).with_prefix(self.prefix)

    def can_be_depended_on(self, key: dg.AssetKey) -> bool:
        """Whether Dagster can call an input after it. The prefix is the project's own: that is told as it loads."""
        return all(map(_IN_INPUTS.fullmatch, key.path[len(self.prefix) :]))

    def source(self, topic: str) -> dg.AssetKey:
        """The topic of a broker that a topic here is ingested from; ``topic`` is its name here."""
        return self.of(topic, Section.SOURCE)

    def dirty(self, topic: str) -> dg.AssetKey:
        """What was appended or ingested to a topic and not cleaned yet."""
        return self.of(topic, Section.DIRTY)

    def clean(self, topic: str) -> dg.AssetKey:
        """A topic's clean section."""
        return self.of(topic, Section.CLEAN)

    @property
    def erasures(self) -> dg.AssetKey:
        """What was asked to be erased."""
        return self.notice("erasures")

    @property
    def health(self) -> dg.AssetKey:
        """How the logs stand."""
        return self.notice("keptlog", "health")

    def notice(self, *path: str) -> dg.AssetKey:
        """What is no topic's section."""
        return dg.AssetKey([*self.prefix, *path])


def names_of(topics: Iterable[str], name_prefix: str) -> dict[str, str]:
    """What the ops of each topic are called after the mount's prefix: letters, digits and ``_``, no two the same.

    With a prefix no other mount has it either: the topic ``eu.users`` of the mount ``crm`` and ``users`` of ``crm_eu``
    would join to one text.
    """
    if name_prefix:
        return {topic: f"{_readable(topic)}_{_digest(f'{name_prefix}/{topic}')}" for topic in topics}
    return _distinct({topic: _readable(topic) for topic in topics})


def groups_of(texts: Iterable[str], prefix: Sequence[str]) -> dict[str, str]:
    """A group for each text, no two the same: in the groups of a prefix, and a step down at each of its dots."""
    steps = [_readable(part) for part in prefix]
    groups = _distinct({text: ".".join(map(_readable, text.split("."))) for text in set(texts)})
    return {text: "/".join([*steps, *(step for step in group.split(".") if step)]) for text, group in groups.items()}


def _distinct(readable: Mapping[str, str]) -> dict[str, str]:
    uses = Counter(readable.values())
    return {
        text: name if name == text or uses[name] == 1 else f"{name}_{_digest(text)}" for text, name in readable.items()
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _readable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)
