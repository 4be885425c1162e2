"""Histories on S3 with Postgres or a REST catalog, faults in all requests: nothing lost, doubled or resurrected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from examples.lake.postgres import Postgres
from examples.lake.s3_server import S3Server
from tests.lake.histories import History
from tests.lake.stores import KINDS, ground_of


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_a_disturbed_history_ends_as_the_reference_does(
    kind: str, s3: S3Server, database: Postgres, tmp_path: Path, dice: Callable[[int], Random]
) -> None:
    with ground_of(kind, s3, database) as ground:
        history = History(ground, tmp_path, dice(1))
        history.play(rounds=2, actions=6)
        assert history.happened["batches"]
        assert history.happened["LOST_ANSWER"] + history.happened["RESET"] + history.happened["SLOW_DOWN"]
        assert not history.happened["not one line"]
