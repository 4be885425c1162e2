"""What is wrong or broken does not count, and says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.generated_log import Expect
from benchmarks.peers import Setup, Work
from benchmarks.report import as_text
from benchmarks.run import Measurement
from benchmarks.workers import Outcome, RunFailed, Worker
from tests.benchmarks.here import CASES, Peers

W2 = CASES["W2"]


@dataclass(frozen=True)
class BrokenWorker:
    """Starts, and breaks down."""

    start_s: float = 0.0

    def run(self, _: Work) -> Outcome:
        raise RunFailed("out of memory")

    def close(self) -> None:
        pass


def test_a_log_that_is_not_the_expected_one_ends_the_measurement(peers: Peers, tmp_path: Path) -> None:
    floor = next(each for each in W2.contenders if each.name == "floor")
    case = replace(W2, contenders=(replace(floor, expect=Expect.LATEST_BY_OFFSET),))
    result = Measurement("W2", case, 400, 1, tmp_path, peers.worker).measured()
    assert result.unequal == "floor left a wrong log"
    assert not result.last_line()["equal"]
    assert result.last_line()["wall_s"] == {}


@pytest.mark.parametrize(("broken", "is_good"), [("polars_lazy", True), ("keptlog_clean", False)])
def test_who_breaks_down_is_left_out(broken: str, is_good: bool, peers: Peers, tmp_path: Path) -> None:
    def start(setup: Setup) -> Worker:
        return BrokenWorker() if setup.peer == broken else peers.worker(setup)

    case = replace(W2, contenders=tuple(each for each in W2.contenders if each.name in {"keptlog", "copy", "polars"}))
    result = Measurement("W2", case, 400, 1, tmp_path, start, warms_up=False).measured()
    assert list(result.absent.values()) == ["out of memory"]
    assert result.last_line()["equal"] is is_good
    assert len(result.last_line()["wall_s"]) == 2


def test_a_goal_that_keptlog_did_not_live_to_see_is_not_met(tmp_path: Path) -> None:
    case = replace(W2, contenders=tuple(each for each in W2.contenders if each.name == "keptlog"))
    result = Measurement("W2", case, 400, 1, tmp_path, lambda _: BrokenWorker()).measured()
    assert as_text(result.to_dict()).count("| failed | **not met** |") == len(W2.goals)
