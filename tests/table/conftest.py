"""A store of objects for the tests that need one, one server for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.table.buckets import ABucket, new_bucket, s3_server


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint: str) -> ABucket:
    """A bucket that keeps versions."""
    return new_bucket(s3_endpoint)


@pytest.fixture
def bucket_with_locks(s3_endpoint: str) -> ABucket:
    return new_bucket(s3_endpoint, locks=True)
