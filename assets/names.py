"""What a topic is called in Dagster.

Asset keys and partition keys take a topic's name as it is: ``[topic, "clean"]``, ``<topic>-<N>``. Op and group names
allow letters, digits and ``_`` only, while Kafka's topics are full of dots and hyphens. These become ``_``; where that
gives two topics of a code location one name, such as ``a-b`` and ``a_b``, the one that had to change gets a suffix.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

import dagster as dg


def source_key(topic: str) -> dg.AssetKey:
    """The asset for a topic of a broker that a topic here is ingested from; ``topic`` is its name here."""
    return dg.AssetKey([topic, "source"])


def dirty_key(topic: str) -> dg.AssetKey:
    """The asset for what was appended or ingested to a topic and not cleaned yet."""
    return dg.AssetKey([topic, "dirty"])


def clean_key(topic: str) -> dg.AssetKey:
    """The asset for a topic's clean section."""
    return dg.AssetKey([topic, "clean"])


def names_of(topics: Iterable[str]) -> dict[str, str]:
    """A name of letters, digits and ``_`` for each topic, no two the same."""
    readable = {topic: re.sub(r"[^A-Za-z0-9_]", "_", topic) for topic in topics}
    uses = Counter(readable.values())
    return {
        topic: name if name == topic or uses[name] == 1 else f"{name}_{hashlib.sha256(topic.encode()).hexdigest()[:12]}"
        for topic, name in readable.items()
    }
