"""``kill -9`` at any moment of erase, clean, purge and verify: ``python -m tests.erasure.many_kills --kills 100``.

    a round     a new home, three workers (``tests.erasure.traffic``), killed and put to sleep as ``tests.crash`` does
      a kill    by the clock, at any moment; another worker takes the place
      a look    between two kills, beside all workers: who is acknowledged as asked for is in the register, once; no
                state is lost that was reached; the chain of receipts is sound
    its end     what was begun is asked again under its id; cleans and purges; then every request is ``verified``, each
                has one receipt, the chain is sound, one tombstone a request was appended, and no byte of home and
                warehouse is of a person who was erased

What is random here is when a signal hits, so a seed does not bring the same moments again.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from typing_extensions import override

from keptlog.errors import StalePlan, StorageUnavailable
from keptlog.home import Home, open_home
from keptlog.log.erasures.erasure import ErasureState
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.erasures.erasure_request import ErasureRow
from keptlog.table.store import LogStore
from tests.crash.many_kills import Round, run_rounds
from tests.crash.traffic import Journal, journals_in
from tests.crash.workload import TOPIC, wall_clock_ms
from tests.erasure import traffic
from tests.erasure.byte_search import files_with

_TRIES = 12
_STATES = [each.value for each in ErasureState]


@dataclass
class ErasureRound(Round):
    """Some kills on one home."""

    reached: dict[str, list[str]] = field(default_factory=dict)
    """By request, the states that it had at the last look."""

    work = staticmethod(traffic.work_until_killed)
    longest_seconds: ClassVar[float] = 1.5
    kills_a_round: ClassVar[int] = 25

    @property
    def home(self) -> Home:
        return open_home(self.folder / "home", {})

    @override
    def _read(self, store: LogStore) -> None:
        """Beside all workers."""
        home, asked = self.home, traffic.said_by_all(self.folder, "asked")
        try:
            found = traffic.eraser_of(home).list(now_ms=wall_clock_ms())
            traffic.raise_first(found.failed.values())
        except traffic.MAY_HAPPEN:
            self.happened["looked again, others were faster"] += 1
            return
        ids = [row.id for row in found.rows]
        assert len(ids) == len(set(ids)), f"in the register twice: {ids}"
        missing = {traffic.request_id(number) for number in asked} - set(ids)
        assert not missing, f"acknowledged, but not in the register: {missing}"
        for row in found.rows:
            states = [str(each.state) for each in row.erasure.reached]
            before = self.reached.get(row.id, [])
            assert states[: len(before)] == before, f"{row.id} was {before}, and is {states}"
            assert states == _STATES[: len(states)], f"{row.id} has come over {states}"
            self.reached[row.id] = states
        self.happened["verified beside workers"] = max(
            self.happened["verified beside workers"], sum(states[-1] == _STATES[-1] for states in self.reached.values())
        )
        self._require_sound(home)
        self.happened["looked"] += 1

    @override
    def _require_the_end(self, store: LogStore) -> None:
        self._require_unbroken()
        home, journal = self.home, Journal(self.folder / "worker-last")
        began, asking = (traffic.said_by_all(self.folder, word) for word in ("began", "asking"))
        for number in began:
            traffic.append(home, journal, number)
        for number in asking:
            traffic.erase(home, journal, number)
        self._bring_to_its_end(home)
        rows = traffic.eraser_of(home).list(now_ms=wall_clock_ms()).rows
        wanted = sorted(map(traffic.request_id, asking))
        assert sorted(row.id for row in rows) == wanted
        assert {row.erasure.state for row in rows} <= {ErasureState.VERIFIED}
        receipts = [receipt for receipt in home.receipts.list() if receipt.kind == "erasure"]
        sealed = Counter(_request_in(receipt.content) for receipt in receipts)
        assert sealed == Counter(wanted), sealed
        self._require_sound(home)
        end_offset = home.store.logs(TOPIC)[0].log_end_offset
        assert end_offset == len(began) * traffic.BATCH_RECORDS + len(asking), "something was appended twice, or never"
        self._require_gone(began, asking)
        self._count(began, asking, journals_in(self.folder))
        self.happened["receipt in the chain"] += sum(1 for _ in home.receipts.list())

    def _bring_to_its_end(self, home: Home) -> None:
        """What a schedule would do, now that nobody dies any more."""
        rows: Sequence[ErasureRow] = ()
        for _ in range(_TRIES):
            time.sleep(0.05)  # tombstones expire, and snapshots grow older than no time at all
            traffic.clean(home)
            traffic.purge(home, 0)
            rows = traffic.verify(home).rows
            if not any(row.erasure.is_open for row in rows):
                return
        told = [f"{row.id} {row.erasure.state} {row.blocked} {iso_time(row.next_ms or 0)}" for row in rows]
        raise AssertionError(f"still open: {[each for each in told if 'verified' not in each]}")

    def _require_gone(self, began: Sequence[int], asking: Sequence[int]) -> None:
        left = sorted(set(began) - set(asking))
        if left:
            there = files_with([self.folder / "home"], [traffic.person(left[0])])
            assert there, "the search finds nothing, not even who was not erased"
        needles = [needle for number in asking for needle in (traffic.person(number), traffic.secret(number))]
        found = files_with([self.folder / "home"], needles)
        assert not found, found

    def _require_sound(self, home: Home) -> None:
        for tries_left in reversed(range(5)):
            try:
                found = home.receipts.verify()
                break
            except (StalePlan, StorageUnavailable):
                if not tries_left:
                    raise
        assert found.is_sound, [each.text for each in found.findings]

    def _count(self, began: Sequence[int], asking: Sequence[int], journals: Sequence[Journal]) -> None:
        self.happened["requests verified once"] += len(asking)
        self.happened["batches"] += len(began)
        self.happened["refused"] += sum(len(journal.said("refused")) for journal in journals)
        for journal in journals:
            for what in journal.said("did"):
                self.happened[f"{what} ended"] += 1


def _request_in(content: object) -> str:
    """Which request a receipt is of."""
    assert isinstance(content, dict)
    return str(content["request"])


if __name__ == "__main__":
    sys.exit(run_rounds(ErasureRound, 100, None))
