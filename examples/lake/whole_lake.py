"""All servers of a lake at once, and what a process is to have in its environment to use them.

    S3  <── data and metadata ──┐
    REST catalog  ──rows──> Postgres <── runs, events, ticks ── Dagster
    Spark: a master, two workers of one core

The same variables lead to a real lake: docs/lake.md.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples.installed import java
from examples.lake.postgres import Postgres, postgres
from examples.lake.rest_catalog import RestCatalog, rest_catalog, rest_classpath
from examples.lake.s3_server import S3Server, s3_server
from examples.lake.server_process import held_folder
from examples.lake.spark_cluster import WHAT, SparkCluster, spark_cluster

BUCKET = "lake"
DAGSTER_DATABASE = "dagster"
_DAGSTER = """\
storage:
  postgres:
    postgres_db:
      scheme: postgresql+psycopg2
      hostname: 127.0.0.1
      port: {port}
      username: {user}
      password: ""
      db_name: {database}
telemetry:
  enabled: false
"""


@dataclass(frozen=True)
class Lake:
    """A lake. ``folder`` is the home and Dagster's, and goes with it."""

    s3: S3Server
    database: Postgres
    catalog: RestCatalog
    cluster: SparkCluster
    folder: Path

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        """What PyIceberg is to be told."""
        return {"type": "rest", "uri": self.catalog.uri, **self.s3.properties}

    @property
    def environment(self) -> Mapping[str, str]:
        """For keptlog, PyIceberg, Spark's driver and Dagster."""
        return {
            **catalog_environment(self.catalog_properties),
            "KEPTLOG_HOME": str(self.folder / "home"),
            "KEPTLOG_SPARK_MASTER": self.cluster.master,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.folder / "spark"),
            "DAGSTER_HOME": str(self.folder / "dagster"),
        }


def catalog_environment(properties: Mapping[str, str]) -> dict[str, str]:
    """A catalog's properties as variables: ``s3.access-key-id`` is ``…__S3__ACCESS_KEY_ID``."""
    prefix = "PYICEBERG_CATALOG__KEPTLOG__"
    return {prefix + name.upper().replace(".", "__").replace("-", "_"): value for name, value in properties.items()}


@contextmanager
def whole_lake(say: Callable[[str], None]) -> Iterator[Lake]:
    """Start all of it; when the block ends, no process and no folder of it is there.

    Raises:
        NotInstalled: something is missing on this machine; nothing was started.
        StorageUnavailable: a server does not start.
    """
    java(WHAT)
    rest_classpath(say)
    with ExitStack() as opened:
        folder = opened.enter_context(held_folder("keptlog-lake-"))
        folder.chmod(0o711)  # PostgreSQL may run as somebody else
        opened.enter_context(_temporary_files_in(folder))
        database = opened.enter_context(postgres())
        s3 = opened.enter_context(s3_server())
        say(f"  S3        {s3.endpoint}, bucket {BUCKET}")
        say(f"  Postgres  127.0.0.1:{database.port}")
        warehouse = s3.bucket(BUCKET)
        catalog = opened.enter_context(rest_catalog(warehouse, s3.properties, database.create("catalog")))
        say(f"  catalog   {catalog.uri}, Iceberg REST, its rows in Postgres, its tables in {warehouse}")
        cluster = opened.enter_context(spark_cluster(workers=2))
        say(f"  Spark     {cluster.master}, {cluster.alive_workers()} workers of one core; {cluster.web}")
        _write_dagster_home(folder / "dagster", database)
        yield Lake(s3, database, catalog, cluster, folder)


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """All that the servers and this process put aside lies in one folder, so that all of it goes with it."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _write_dagster_home(folder: Path, database: Postgres) -> None:
    database.create(DAGSTER_DATABASE)
    folder.mkdir()
    user = database.uri().partition("//")[2].partition("@")[0]
    (folder / "dagster.yaml").write_text(
        _DAGSTER.format(port=database.port, user=json.dumps(user), database=DAGSTER_DATABASE)
    )
