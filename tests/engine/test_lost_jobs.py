"""What ends a job is told as it is: whoever does the tasks may be lost, and watermarks are not to blame for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from keptlog.engine.engine import Engine
from keptlog.engine.jobs import Result, Task
from keptlog.log.record import Record
from keptlog.log.steps import Compact
from keptlog.log.strategy import Strategy, StrategyKind
from tests.building import Clean
from tests.in_process import SMALL_CUTS, InProcessJobs
from tests.local_log import LocalFiles, write_segments

TOPIC = Clean.topic
MANY = replace(SMALL_CUTS, watermarks_without_job_bytes=0)
"""Watermarks are always stored in a job of their own."""
BY_TIME = Strategy(StrategyKind.TIMESTAMP)


@dataclass(frozen=True)
class LostAt(InProcessJobs):
    """Jobs that are lost as a Java that is gone is: at the first that does this."""

    doing: str = ""

    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        """As ``Jobs`` says."""
        if doing.startswith(self.doing):
            raise ConnectionRefusedError(111, "Connection refused")
        return super().run(tasks, doing)


def lost_at(doing: str) -> Engine:
    return Engine(lambda run_id, told: LostAt(LocalFiles(), run_id, told, "local", doing=doing), LocalFiles(), MANY)


def a_step(folder: Path, strategy: Strategy) -> Compact:
    records = [Record(offset, b"%d" % (offset % 6), None, 1, delete_horizon_ms=5) for offset in range(6)]
    records += [Record(6 + offset, b"%d" % (offset % 6), b"1", 2) for offset in range(6)]
    settings = Clean(6, 12, strategy=strategy, watermark_retention_ms=10**6)
    return settings.step(write_segments(folder, records, 3))


@pytest.mark.parametrize(
    ("strategy", "doing"),
    [(Strategy(), "mapping"), (Strategy(), "rewriting"), (BY_TIME, "comparing"), (BY_TIME, "storing the watermarks")],
)
def test_a_job_that_is_lost_is_not_told_as_watermarks_that_can_not_be_stored(
    tmp_path: Path, strategy: Strategy, doing: str
) -> None:
    step = a_step(tmp_path / TOPIC, strategy)
    with pytest.raises(ConnectionRefusedError):
        lost_at(doing).rewrite([step], {TOPIC: str(tmp_path / TOPIC)}, "run")
    with pytest.raises(ConnectionRefusedError):
        list(lost_at(doing).rewrite_in_legs(step, str(tmp_path / TOPIC), "run"))
