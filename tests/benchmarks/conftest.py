"""The peers, opened once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.benchmarks.here import Peers


@pytest.fixture(scope="session")
def peers() -> Iterator[Peers]:
    peers = Peers()
    yield peers
    for name, peer in peers.opened.items():
        if name != "spark_sql":  # its session belongs to all tests
            peer.close()
