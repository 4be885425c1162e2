"""Workers that die by ``kill -9`` and wake up as zombies lose nothing, double nothing and revive nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.crash.many_kills import Round
from tests.profiles import examples


def test_workers_killed_beside_each_other_leave_the_log_as_one_undisturbed_clean_would(
    tmp_path: Path, dice: Callable[[int], Random]
) -> None:
    round_of_kills = Round(tmp_path, dice(30))
    round_of_kills.run(examples(15))
    assert round_of_kills.happened["killed"] == examples(15)
    assert round_of_kills.happened["batches appended"] > 0
    assert round_of_kills.happened["read"] > 0
