"""A topic here and the one at a broker that it is restored to, and what both hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from keptlog.home import new_id
from keptlog.log.record import Header, NewRecord
from keptlog.passes.clean import Cleaner
from keptlog.passes.restore import RestoreResult
from keptlog.table.store import LogStore
from tests.broker.broker import Broker
from tests.broker.restoring import restore_of, wall_clock_ms
from tests.in_process import in_process_engine
from tests.logs import carry_out

PARTITIONS = 2
COMPACTED = {"cleanup.policy": "compact"}
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1"}

Seen = tuple[bytes | None, bytes | None, int, tuple[Header, ...]]


@dataclass
class Twins:
    """A topic here, and the one of the same name that it is restored to."""

    broker: Broker
    home: Path
    store: LogStore
    topic: str

    def create(self, settings: Mapping[str, str] = COMPACTED, there: Mapping[str, str] = KEPT) -> None:
        """Create both, the one there so that its broker removes nothing."""
        self.store.create_topic(self.topic, PARTITIONS, settings)
        self.broker.create_topic(self.topic, PARTITIONS, there)

    def append(self, *records: NewRecord) -> None:
        self.store.append(self.topic, records, new_id(), wall_clock_ms())

    def clean(self, now_ms: int) -> None:
        cleaner = Cleaner(self.store, in_process_engine(self.store.files))
        result = carry_out(cleaner, cleaner.plan([self.topic], now_ms=now_ms, requested=True))
        assert result.committed
        assert not result.failed

    def restore(
        self,
        *,
        append_to_existing: bool = False,
        skip_lost: bool = False,
        later_ms: int = 0,
        client: Mapping[str, str] | None = None,
    ) -> RestoreResult:
        restore = replace(
            restore_of(self.store, self.broker.bootstrap, client=client), clock=lambda: wall_clock_ms() + later_ms
        )
        return restore.to_broker(self.topic, self.topic, append_to_existing=append_to_existing, skip_lost=skip_lost)

    def there(self) -> dict[int, list[Seen]]:
        found = self.broker.records(self.topic, PARTITIONS)
        return {number: [(r.key, r.value, r.timestamp_ms, r.headers) for r in some] for number, some in found.items()}

    def here(self) -> dict[int, list[Seen]]:
        found: dict[int, list[Seen]] = {number: [] for number in range(PARTITIONS)}
        for number, r in self.store.read(self.topic):
            found[number].append((r.key, r.value, r.timestamp_ms, r.headers))
        return found


def updates(*pairs: tuple[str, str | None]) -> list[NewRecord]:
    now_ms = wall_clock_ms()
    return [NewRecord(key.encode(), None if value is None else value.encode(), now_ms, 0) for key, value in pairs]
