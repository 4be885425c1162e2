"""The readers of docs/readers.md on a bucket, with a catalog in PostgreSQL: the page's code, each in its own process.

What the page made up, hosts and a secret, is replaced by what is here. The role in the database may only select.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest
import sqlalchemy

from examples.lake.postgres import Postgres, postgres
from examples.lake.s3_server import KEYS, S3Server, s3_server
from examples.lake.whole_lake import catalog_environment
from keptlog.home import new_id
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.lake.installed import or_skip
from tests.readers.conftest import Rows, rows_of
from tests.readers.fetched import BUILD, fetch_jars, python_with, skip_unless_asked, spark_of_the_page
from tests.readers.page import blocks, python, read_in
from tests.readers.prepared import TOPIC, play

_MOMENT = "deleted up to the middle of a clean segment"
_DUCKDB = "1.5.5"
"""The last whose httpfs a package registry has."""
_S3A_NEEDS = (
    "software.amazon.awssdk:bundle:2.35.4",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.wildfly.openssl:wildfly-openssl:2.2.5.Final",
)
"""What hadoop-aws depends on: Spark takes jars from where Maven keeps them, also if it finds only a name there."""


class Lake:
    """A topic on a bucket; ``folder`` is where its readers run."""

    def __init__(self, s3: S3Server, database: Postgres, folder: Path) -> None:
        self.s3, self.port, self.folder = s3, database.port, folder
        warehouse = f"{s3.bucket('lake')}/topics"
        own = {"type": "sql", "uri": database.create("catalog"), "warehouse": warehouse, **s3.properties}
        with mock.patch.dict(os.environ, catalog_environment(own)):
            self.store = LogStore(open_catalog(folder), {}, time.sleep, new_id)
        play(self.store, _MOMENT)
        _let_read_only(database, "reader")
        (folder / ".pyiceberg.yaml").write_text(self.rewritten(blocks()["yaml", "pyiceberg-lake"]))

    def rewritten(self, text: str) -> str:
        """A text of the page with what is here."""
        host = self.s3.endpoint.removeprefix("http://")
        for made_up, here in (
            ("https://s3.example.org", self.s3.endpoint),
            ("'s3.example.org', URL_STYLE 'path'", f"'{host}', URL_STYLE 'path', USE_SSL false"),
            ("db.example.org:5432", f"127.0.0.1:{self.port}"),
        ):
            text = text.replace(made_up, here)
        assert "example.org" not in text
        return text

    @property
    def environment(self) -> dict[str, str]:
        """A reader's: the store's keys where AWS's clients look for them, and its configuration of PyIceberg."""
        bins = f"{Path(sys.executable).parent}:{BUILD / f'duckdb-{_DUCKDB}' / 'bin'}"
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KEPTLOG_"))},
            "PATH": f"{bins}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PYICEBERG_HOME": str(self.folder),
            "POLARS_ICEBERG_PLANNER": "pyiceberg",
            "AWS_ACCESS_KEY_ID": KEYS["s3.access-key-id"],
            "AWS_SECRET_ACCESS_KEY": KEYS["s3.secret-access-key"],
        }

    def read_by(self, engine: str, *names: str, interpreter: str | Path = sys.executable) -> tuple[Rows, Rows]:
        """What an engine reads with these blocks: all records, and the latest of each key."""
        told = read_in(Path(interpreter), engine, *names, rewritten=self.rewritten, environment=self.environment)
        return rows_of(told["users"]), rows_of(told["latest"])

    @property
    def right(self) -> tuple[Rows, Rows]:
        return list(self.store.read(TOPIC)), list(self.store.read(TOPIC, latest=True))


def _let_read_only(database: Postgres, role: str) -> None:
    engine = sqlalchemy.create_engine(database.uri("catalog"), poolclass=sqlalchemy.NullPool)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"create role {role} login"))
        connection.execute(sqlalchemy.text(f"grant select on all tables in schema public to {role}"))


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[S3Server, Postgres]]:
    with ExitStack() as opened:
        yield opened.enter_context(or_skip(s3_server())), opened.enter_context(or_skip(postgres()))


@pytest.fixture(scope="module")
def prepared_lake(servers: tuple[S3Server, Postgres], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(*servers, tmp_path_factory.mktemp("lake"))


@pytest.fixture
def lake(prepared_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.chdir(prepared_lake.folder)
    return prepared_lake


@pytest.mark.parametrize(
    ("engine", "name"), [("arrow", "pyiceberg"), ("polars", "polars"), ("polars", "polars-expressions")]
)
def test_pyiceberg_and_polars_read_a_bucket_with_the_keys_of_the_environment(
    lake: Lake, engine: str, name: str
) -> None:
    assert lake.read_by(engine, "catalog-lake", "table", name) == lake.right


def test_an_earlier_snapshot_is_read_from_a_bucket(lake: Lake) -> None:
    code = lake.rewritten(python("catalog-lake", "table", "time-travel"))
    told = "\nprint(as_it_was.num_rows, in_polars.collect().height)"
    shown = subprocess.run(
        [sys.executable, "-c", code + told], env=lake.environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == ["20", "20"]


@pytest.fixture(scope="module")
def duckdb_python(pytestconfig: pytest.Config, prepared_lake: Lake) -> Path:
    """DuckDB with its httpfs, from a package: where it loads extensions from by itself, there may be no way to."""
    skip_unless_asked(pytestconfig, "DuckDB on a bucket")
    packages = [f"{name}=={_DUCKDB}" for name in ("duckdb", "duckdb-cli", "duckdb-extension-httpfs")]
    interpreter = python_with(f"duckdb-{_DUCKDB}", [*packages, "pyarrow", "pytz"])
    (extension,) = interpreter.parents[1].rglob("httpfs.duckdb_extension")
    install = f"import duckdb; duckdb.execute(\"INSTALL '{extension}'\")"
    subprocess.run([interpreter, "-c", install], env=prepared_lake.environment, check=True)
    return interpreter


def test_duckdb_reads_a_bucket_with_its_httpfs(lake: Lake, duckdb_python: Path) -> None:
    secret = lake.rewritten(blocks()["sql", "duckdb-lake"])
    connect = "connection = duckdb.connect()\n"
    code = python("duckdb")
    assert connect in code

    def with_secret(text: str) -> str:
        return text.replace(connect, f"{connect}connection.execute({secret!r})\n")

    told = read_in(duckdb_python, "duckdb", "duckdb", rewritten=with_secret, environment=lake.environment)
    assert (rows_of(told["users"]), rows_of(told["latest"])) == lake.right

    (lake.folder / "secret.sql").write_text(secret)
    command = blocks()["sh", "duckdb-lake"].replace("| duckdb", "| duckdb -csv")
    shown = subprocess.run(["sh", "-c", command], env=lake.environment, capture_output=True, text=True, check=False)
    assert shown.stdout.split()[-1:] == [str(len(lake.right[0]))], shown.stderr


def test_spark_sql_reads_a_bucket_with_icebergs_runtime(lake: Lake, pytestconfig: pytest.Config) -> None:
    skip_unless_asked(pytestconfig, "Spark SQL on a bucket")
    fetch_jars(python("spark-sql-lake"))
    found = lake.read_by("spark", "spark-sql-lake", "spark-sql-users", interpreter=spark_of_the_page())
    assert found == lake.right


def test_spark_reads_the_files_of_a_bucket_with_hadoops_s3a(lake: Lake, pytestconfig: pytest.Config) -> None:
    skip_unless_asked(pytestconfig, "Spark with S3A on a bucket")
    fetch_jars(python("spark-lake"), _S3A_NEEDS)
    assert lake.read_by("spark", "catalog-lake", "table", "spark-lake", "spark-files") == lake.right
