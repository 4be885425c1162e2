"""A world for each test, on the disk or in a bucket, and one store of objects for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.erasure.bucket_world import BucketWorld
from tests.erasure.world import World
from tests.table.buckets import new_bucket
from tests.table.conftest import s3_endpoint

__all__ = ["s3_endpoint"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


@pytest.fixture
def world_in_a_bucket(tmp_path: Path, s3_endpoint: str) -> BucketWorld:
    (tmp_path / "home").mkdir()
    return BucketWorld(tmp_path / "home", bucket=new_bucket(s3_endpoint))
