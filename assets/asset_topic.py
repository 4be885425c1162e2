"""What the asset graph shows of a topic. It is little, and goes through JSON: a run is handed it by its code server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keptlog.log.config import TopicConfig
from keptlog.log.words.units import LONG_MAX


@dataclass(frozen=True, slots=True)
class AssetSource:
    """A broker's topic that a topic is ingested from."""

    topic: str
    bootstrap: str


@dataclass(frozen=True, slots=True)
class AssetTopic:
    """One topic. Of one that is in no asset graph yet, only the name is known."""

    name: str
    partitions: int = 1
    location: str = ""
    """The folder of its table."""
    settings: Mapping[str, str | float] = field(default_factory=dict)
    """Those that say when it is cleaned, under Kafka's names."""
    source: AssetSource | None = None
    """Null if it has none, or one that nobody goes back to by himself, such as a log directory."""
    description: str = ""
    """What is told of it to people, and stored with it."""
    owners: tuple[str, ...] = ()
    group: str = ""
    """In which it is shown; found when all topics are known."""

    @property
    def cleanup_policy(self) -> list[str]:
        """As Kafka's setting has it; ``compact`` where it is not known."""
        return str(self.settings.get("cleanup.policy", "compact")).split(",")


def shown_settings(config: TopicConfig) -> dict[str, str | float]:
    """The settings that say when a log is cleaned."""
    lag_ms = config.max_compaction_lag_ms
    return {
        "cleanup.policy": ",".join(config.cleanup_policy),
        "min.cleanable.dirty.ratio": config.min_cleanable_dirty_ratio,
        "min.compaction.lag.ms": config.min_compaction_lag_ms,
        "max.compaction.lag.ms": "none" if lag_ms == LONG_MAX else lag_ms,
        "delete.retention.ms": config.delete_retention_ms,
    }
