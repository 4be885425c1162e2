"""A log to which others do what they should not, beside the specification, to which nobody does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.repair import Repairer, RepairProposal
from keptlog.passes.verify import verify_log
from tests.in_process import in_process_engine
from tests.logs import RealTwin, ReferenceTwin, open_store
from tests.table.foreign import (
    current_id,
    roll_back,
)

T = "t"
LOG = TopicPartition(T, 0)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 1_700_000_000_000
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1000", "delete.retention.ms": str(DAY_MS)}


@dataclass
class Story:
    """One log, as it really is and as the specification has it; what others do happens to the real one alone."""

    home: Path
    settings: dict[str, str]
    reference: ReferenceTwin = field(default_factory=ReferenceTwin)
    now_ms: int = START_MS

    def __post_init__(self) -> None:
        for twin in (self.real, self.reference):
            twin.create(self.settings)

    @property
    def real(self) -> RealTwin:
        store = open_store(self.home)
        return RealTwin(store, in_process_engine(store.files), T)

    def append(self, *pairs: tuple[str, str | None], at_ms: int | None = None) -> int:
        """Gives the snapshot."""
        self.now_ms += HOUR_MS
        new = [NewRecord(k.encode(), v.encode() if v else None, at_ms or self.now_ms, 0) for k, v in pairs]
        for twin in (self.real, self.reference):
            twin.append(new, self.now_ms)
        return current_id(self.home, T)

    def clean(self, after_ms: int = HOUR_MS) -> int:
        self.now_ms += after_ms
        for twin in (self.real, self.reference):
            twin.clean(self.now_ms)
        return current_id(self.home, T)

    def roll_back(self, snapshot_id: int) -> None:
        roll_back(self.home, snapshot_id, T)

    def propose(self, *, adopt: bool = False) -> RepairProposal | None:
        return Repairer(self.real.store).propose(T, is_adoption=adopt, now_ms=self.now_ms)

    def repair(self, *, adopt: bool = False) -> RepairProposal:
        proposal = self.propose(adopt=adopt)
        assert proposal
        results = Repairer(self.real.store).repair(proposal, new_id(), now_ms=self.now_ms)
        assert [each for each in results["t-0"] if not each.passed and each.name != "max_compaction_lag"] == []
        assert self.propose(adopt=adopt) is None
        return proposal

    def require_same(self) -> None:
        """The real log is what the specification says, and goes on as it does."""
        assert self.real.records() == self.reference.records()
        self.append(("a", "later"), ("new", "1"), ("b", None))
        self.clean()
        self.clean(after_ms=2 * DAY_MS)
        assert self.real.records() == self.reference.records()
        assert self.real.positions(self.now_ms) == self.reference.positions(self.now_ms)
        results = verify_log(self.real.store, self.real.log, self.now_ms)
        assert [each.name for each in results if not each.passed] == []
