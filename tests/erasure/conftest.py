"""A world for each test, and one store of objects for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.erasure.world import World
from tests.table.buckets import s3_server


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Where a store of objects listens."""
    with s3_server() as where:
        yield where
