"""What a process remembers of a home's erasures from tick to tick, so that a quiet tick asks nobody of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from keptlog.dagster.assets.shown_deadline import ToldDeadline
from keptlog.dagster.orchestration.erasure_needs import KeptErasures, KnownNeeds, PassLengths
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import KeptlogError
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.erasures.prospect import LookedLogs
from keptlog.passes.observer import Overview


@dataclass(frozen=True, slots=True)
class QuietTick:
    """A tick that had nothing to do, and from when to when another one has the same to say if no topic has changed."""

    locations: Mapping[str, str]
    from_ms: int
    until_ms: int
    cursor: str
    told: ToldDeadline | None
    """What Dagster is to show of the check of deadlines; null if nothing."""
    reason: str

    def still_holds(self, seen: Overview, cursor: str | None) -> bool:
        """Whether a tick of now would find out the same."""
        is_now = self.from_ms <= seen.now_ms < self.until_ms
        return is_now and not seen.behind and cursor == self.cursor and seen.locations == self.locations


@dataclass
class ErasureMemory:
    """Of one home."""

    looked: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Topic to the metadata location at which it was looked how far its erasures are, and when."""
    in_runs: set[str] = field(default_factory=set)
    """Of these topics, those for whose look a run was asked for that is not known to have looked."""
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    """Topic to why it is not known how far its erasures are."""
    lengths: PassLengths | None = None
    needs: KnownNeeds = field(default_factory=KnownNeeds)
    kept: KeptErasures = field(default_factory=KeptErasures)
    quiet: QuietTick | None = None
    _digests: dict[str, tuple[OpenErasures, str]] = field(default_factory=dict)

    looked_logs: dict[str, LookedLogs] = field(default_factory=dict)
    """Topic to what was there then."""

    def looks_at(self, topic: str, seen: Overview) -> None:
        """A topic is looked at now, or a run is asked for that does."""
        self.looked[topic] = (seen.locations[topic], seen.now_ms)
        logs = [each.log for each in seen.assessments if each.log.topic_partition.topic == topic]
        self.looked_logs[topic] = LookedLogs.of(logs, seen.known_erasures[topic])

    def looked_ms(self, topic: str) -> int:
        """When a topic was looked at; long ago if it was not."""
        return self.looked[topic][1] if topic in self.looked else 0

    def digest_of(self, topic: str, erasures: OpenErasures) -> str:
        """A few characters that change whenever a topic's erasures do."""
        known = self._digests.get(topic)
        if known is None or known[0] is not erasures:
            text = hashlib.sha256(f"{topic} {erasures!r}".encode()).hexdigest()[:16]
            known = self._digests[topic] = (erasures, text)
        return known[1]


def erasure_memory_of(log_store: LogStoreResource) -> ErasureMemory:
    """That of a home, one in a process."""
    return log_store.remembered(ErasureMemory, lambda _: ErasureMemory())
