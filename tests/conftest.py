"""One Spark session for all tests of a process: starting one takes longer than most of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from keptlog.spark.session import start_session

MASTER = "local[2,3]"
"""Two cores, and a task may fail twice before its job does."""

os.environ["KEPTLOG_SPARK_MASTER"] = MASTER


# How long an example takes says something about the machine, nothing about the code.
settings.register_profile("keptlog", deadline=None)
settings.load_profile("keptlog")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session(MASTER)
    if session.sparkContext.master != MASTER:  # another test came first, with a master of its own
        session.stop()
        session = start_session(MASTER)
    yield session
    session.stop()
