"""The servers that all tests of the lake share: each is started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.lake.kept_s3_server import kept_s3_server
from examples.lake.postgres import Postgres, postgres
from examples.lake.s3_server import S3Server, s3_server
from examples.lake.spark_cluster import SparkCluster, spark_cluster
from tests.lake.installed import or_skip


@pytest.fixture(scope="package")
def s3() -> Iterator[S3Server]:
    with or_skip(s3_server()) as started:
        yield started


@pytest.fixture(scope="package")
def kept_s3() -> Iterator[S3Server]:
    """One that may be killed."""
    with or_skip(kept_s3_server()) as started:
        yield started


@pytest.fixture(scope="package")
def database() -> Iterator[Postgres]:
    with or_skip(postgres()) as started:
        yield started


@pytest.fixture(scope="package")
def cluster() -> Iterator[SparkCluster]:
    with or_skip(spark_cluster(workers=2)) as started:
        yield started
