"""The Spark session, brought by dagster-pyspark: one a run process, started when a run has something to rewrite.

The settings are keptlog's own, the same as on the command line. ``KEPTLOG_SPARK_MASTER`` says where Spark runs
(``local[*]`` without it); for any other setting give ``build_defs`` a resource of your own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from dagster_pyspark import LazyPySparkResource

from keptlog.errors import StorageUnavailable
from keptlog.spark.session import answering, require_server, session_settings, starting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_resource(master: str | None = None) -> LazyPySparkResource:
    """A Spark resource with keptlog's settings; no session is started before one is used."""
    return LazyPySparkResource(spark_config=session_settings(master or os.environ.get("KEPTLOG_SPARK_MASTER")))


def why_spark_is_down(spark: LazyPySparkResource) -> str | None:
    """Why the Spark server that runs use can't be reached; null if it answers, or if each run starts its own Spark."""
    try:
        require_server(spark.spark_config.get("spark.remote"))
    except StorageUnavailable as error:
        return str(error)
    return None


def session_of(spark: LazyPySparkResource) -> Callable[[], SparkSession]:
    """The resource's session, as ``LogStoreResource.cleaner`` takes it."""

    def session() -> SparkSession:
        require_server(spark.spark_config.get("spark.remote"))
        with starting():
            return answering(spark.spark_session)

    return session
