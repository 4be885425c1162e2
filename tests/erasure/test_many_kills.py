"""Erasures end ``verified``, once and with one receipt, whoever dies by ``kill -9`` in the middle of whatever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.erasure.many_kills import ErasureRound
from tests.profiles import examples


def test_requests_of_killed_workers_end_verified_once(tmp_path: Path, dice: Callable[[int], Random]) -> None:
    round_of_kills = ErasureRound(tmp_path, dice(31))
    round_of_kills.run(examples(8))
    assert round_of_kills.happened["killed"] == examples(8)
    assert round_of_kills.happened["batches"] > 0
    assert round_of_kills.happened["looked"] > 0
