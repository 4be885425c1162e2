"""What one tick of the sensor of erasures works with."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from keptlog.dagster.assets.mount import Tick
from keptlog.dagster.assets.shown_deadline import Teller, ToldDeadline
from keptlog.dagster.orchestration.erasure_memory import ErasureMemory
from keptlog.errors import KeptlogError
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.passes.observer import Overview


@dataclass(frozen=True)
class ErasureTick:
    """Of one home."""

    mounted: Tick
    memory: ErasureMemory
    seen: Overview
    teller: Teller
    shown: ToldDeadline | None = None
    """What Dagster shows of the check of deadlines."""
    looked: set[str] = field(default_factory=set)
    """The topics at which this tick has looked itself."""

    @property
    def failed(self) -> dict[str, KeptlogError]:
        """Topic to why it is not known how far its erasures are: what was told of it last, or what was seen here."""
        told = self.shown.still_failed(self.seen, self.looked) if self.shown else {}
        return told | {topic: why for topic, why in self.memory.failed.items() if topic in self.workable}

    def has_failed(self, topic: str) -> bool:
        """Whether it is one of these, if it can be read."""
        is_told = self.shown is not None and topic in self.shown.unlooked
        return topic in self.memory.failed or (is_told and topic not in self.looked)

    @cached_property
    def workable(self) -> dict[str, OpenErasures]:
        """The open erasures of topics that can be read: no run brings others on."""
        return {topic: each for topic, each in self.seen.open_erasures.items() if topic not in self.seen.unreadable}

    @cached_property
    def kept(self) -> AbstractSet[str]:
        """Of these topics, those whose erasures no look brings on yet."""
        return self.memory.kept.of(self.seen, self.workable, self.memory.looked_logs)
