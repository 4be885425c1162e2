"""``kill -9`` of an executor, a worker, the driver, Postgres or S3, and a deaf S3, in the middle of a clean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from examples.lake.postgres import Postgres
from examples.lake.s3_server import S3Server
from examples.lake.spark_cluster import SparkCluster
from tests.lake.kills import KILLED, kills_on


def test_whatever_dies_in_a_clean_the_log_ends_as_if_nothing_had(
    kept_s3: S3Server, database: Postgres, cluster: SparkCluster, tmp_path: Path, dice: Callable[[int], Random]
) -> None:
    with kills_on(kept_s3, database, cluster, tmp_path, dice(3)) as kills:
        for what in KILLED:
            kills.kill(what)
        kills.require_the_end()
        assert {what: kills.happened[what] for what in KILLED} == dict.fromkeys(KILLED, 1)
        assert kills.happened["executor was there"]
