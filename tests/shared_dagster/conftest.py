"""A Dagster that is shared: its storage in PostgreSQL, and webserver, daemon and two code servers as processes apart.

    webserver ──┐                              ┌── code server "lake"   catalog in PostgreSQL, files on S3
    daemon    ──┼── PostgreSQL (runs, events) ─┤
    runs      ──┘                              └── code server "disk"   a home of its own, embedded catalog

Both have a topic ``users``. The secrets of the lake are planted: texts that nothing else contains. Whatever happens,
all processes are gone afterwards.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import pytest
from sqlalchemy import NullPool, create_engine

from examples.installed import NotInstalled
from examples.lake.postgres import Postgres, postgres
from examples.lake.server_process import listens
from examples.ports import free_ports
from keptlog.home import Home, open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from tests.table.buckets import new_bucket, s3_server

ROOT = Path(__file__).parents[2]
HOUR_MS = 3_600_000
Found = TypeVar("Found")
SECRETS = {
    "the database's password": "planted-db@its-first-tail/its-second-tail",
    "the bucket's secret key": "planted-s3-secret-key",
    "the broker's password": "planted-sasl-password",
    "Spark's token": "planted-connect-token",
    "Dagster's own password": "planted-dagster-password",
}
LOCATIONS = ("lake", "disk")
LATE_TOPIC = "came-later"
"""In the home of ``disk`` since all processes run."""


@dataclass
class SharedDagster:
    """What runs, and where it keeps things."""

    folder: Path
    database: Postgres
    environments: dict[str, dict[str, str]]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    """Of the webserver and the code servers."""

    def home(self, location: str) -> Path:
        return self.folder / location

    @contextlib.contextmanager
    def opened(self, location: str) -> Iterator[Home]:
        """The home of a code location, as its code server sees it."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environments[location].items():
                patch.setenv(name, value)
            yield open_home(self.home(location))

    def instance(self) -> dg.DagsterInstance:
        return dg.DagsterInstance.from_config(str(self.folder))

    def query(self, text: str, **variables: object) -> Any:
        """Ask the webserver's GraphQL, as the UI does."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["webserver"], timeout=120)
        with contextlib.closing(connection):
            body = json.dumps({"query": text, "variables": variables})
            connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
            answer = json.load(connection.getresponse())
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def start(self, name: str, *command: str, location: str | None = None) -> None:
        environment = {**os.environ, "DAGSTER_HOME": str(self.folder), "PYTHONPATH": str(ROOT)}
        # A minute is too short for a tick where everything runs on two cores.
        environment |= dict.fromkeys(["DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS", "DAGSTER_GRPC_TIMEOUT_SECONDS"], "300")
        environment |= self.environments[location] if location else {}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", *command],
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start_daemon(self) -> None:
        self.start("daemon", "dagster._daemon", "run", "-w", "workspace.yaml")

    def kill(self, name: str) -> None:
        """``kill -9``: the process and, as a service manager does it, whatever it has started."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes.pop(name).wait(120)

    def answers(self, name: str) -> bool:
        """Whether somebody listens at the port of a webserver or code server."""
        try:
            return listens(self.ports[name])
        except OSError:
            return False

    def stop(self) -> None:
        """End all as a service manager does, and what is left of their sessions by force."""
        for process in self.processes.values():
            process.terminate()
        deadline = time.monotonic() + 15
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.1))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(120)

    def wait_for(self, what: str, find: Callable[[], Found | None], seconds: float = 600) -> Found:
        """What ``find`` finds, once it does."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not ended, f"ended: {ended}\n{self.said(ended[0])}"
            found = find()
            if found:
                return found
            time.sleep(1)
        pytest.fail(f"no {what} after {seconds} s\n" + "\n".join(self.said(name) for name in self.processes))

    def said(self, name: str) -> str:
        return f"--- {name}\n{(self.folder / f'{name}.log').read_text()[-2500:]}"


def runs_of(instance: dg.DagsterInstance, location: str, job: str) -> Sequence[dg.DagsterRun]:
    """The runs of one code location's job, newest first."""
    tags = {".dagster/repository": f"__repository__@{location}"}
    return instance.get_runs(dg.RunsFilter(job_name=job, tags=tags))


@pytest.fixture(scope="package")
def database() -> Iterator[Postgres]:
    """A PostgreSQL in which the planted roles have to give their passwords."""
    for package in ("dagster_postgres", "moto"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"a shared Dagster was not tried: {package} is not installed; pip install 'keptlog[dev]'")
    try:
        running = postgres()
        with running as started:
            _ask_for_passwords(started)
            yield started
    except NotInstalled as error:
        pytest.skip(f"a shared Dagster was not tried: {error}")


def _ask_for_passwords(database: Postgres) -> None:
    with connected(database, "postgres") as connection, contextlib.closing(connection.cursor()) as cursor:
        cursor.execute("show hba_file")
        (path,) = cursor.fetchone() or ("",)
        rules = "host all keptlog 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        cursor.execute("create temporary table rules (line text)")
        cursor.execute("insert into rules select unnest(string_to_array(%s, chr(10)))", (rules,))
        cursor.execute("copy rules to %s", (path,))
        for role, secret in (("lake", "the database's password"), ("dagster", "Dagster's own password")):
            cursor.execute(f"create role {role} login password %s", (SECRETS[secret],))
            cursor.execute(f"create database {role} owner {role}")
        cursor.execute("select pg_reload_conf()")


@contextlib.contextmanager
def connected(database: Postgres, name: str) -> Iterator[Any]:
    """A connection of the server's owner to one of its databases; each statement is a transaction of its own."""
    engine = create_engine(database.uri(name), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with contextlib.closing(engine.raw_connection()) as connection:
        yield connection.driver_connection


def lake_uri(database: Postgres, password: str = "planted-db%40its-first-tail%2Fits-second-tail") -> str:  # noqa: S107
    return f"postgresql+psycopg2://lake:{password}@127.0.0.1:{database.port}/lake"


@pytest.fixture(scope="package")
def lake(database: Postgres) -> Iterator[dict[str, str]]:
    """Where the lake is, as a service manager gives it to a process: by environment variables."""
    with s3_server() as endpoint:
        bucket = new_bucket(endpoint, None)
        yield {
            "PYICEBERG_CATALOG__KEPTLOG__TYPE": "sql",
            "PYICEBERG_CATALOG__KEPTLOG__URI": lake_uri(database),
            "PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE": f"s3://{bucket.name}/warehouse",
            "PYICEBERG_CATALOG__KEPTLOG__S3__ENDPOINT": endpoint,
            "PYICEBERG_CATALOG__KEPTLOG__S3__ACCESS_KEY_ID": "someone",
            "PYICEBERG_CATALOG__KEPTLOG__S3__SECRET_ACCESS_KEY": SECRETS["the bucket's secret key"],
            "PYICEBERG_CATALOG__KEPTLOG__S3__REGION": "us-east-1",
            "KEPTLOG_KAFKA_SASL_PASSWORD": SECRETS["the broker's password"],
            "KEPTLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        }


@pytest.fixture(scope="package")
def shared(
    database: Postgres, lake: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedDagster]:
    folder = tmp_path_factory.mktemp("shared-dagster")
    address = tmp_path_factory.mktemp("spark") / "address"
    address.write_text("local[1]")
    address.chmod(0o600)
    common = {"KEPTLOG_SPARK_MASTER": f"file:{address}", "SPARK_CONNECT_AUTHENTICATE_TOKEN": SECRETS["Spark's token"]}
    environments = {
        name: {**common, "KEPTLOG_HOME": str(folder / name), "KEPTLOG_POOL": f"cleaner_{name}"} for name in LOCATIONS
    }
    environments["lake"] |= lake
    made = SharedDagster(folder, database, environments)
    _write_settings(folder, database)
    for name in LOCATIONS:
        made.home(name).mkdir()
        (made.home(name) / "server.properties").write_text(f"log.cleaner.threads={1 + LOCATIONS.index(name)}\n")
        with made.opened(name) as home:
            home.create_topic("users", 1, {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)})
            append(home, ("a", "1"), ("b", "1"), ("a", "2"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_PG_PASSWORD", SECRETS["Dagster's own password"])
        try:
            with made.instance():
                _start(made)
            with made.opened("disk") as home:
                home.create_topic(LATE_TOPIC, 2, {"cleanup.policy": "compact"})
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="package")
def cleaned(shared: SharedDagster) -> SharedDagster:
    """After both locations' sensors have had their ``users`` cleaned."""
    with shared.instance() as instance:
        for location in LOCATIONS:

            def finished(location: str = location) -> dg.DagsterRun | None:
                runs = runs_of(instance, location, "clean_logs")
                failed = [run for run in runs if run.status is dg.DagsterRunStatus.FAILURE]
                assert not failed, [
                    str(event.dagster_event)[:1500]
                    for event in instance.all_logs(failed[0].run_id)
                    if event.dagster_event and event.dagster_event.is_failure
                ]
                return next((run for run in runs if run.status is dg.DagsterRunStatus.SUCCESS), None)

            shared.wait_for(f"clean of {location}", finished)
    return shared


def append(home: Home, *records: tuple[str, str | None], topic: str = "users") -> None:
    """Append key-value pairs as one segment that has left the active one by its age."""
    now_ms = wall_clock_ms()
    home.append(topic, [NewRecord(k.encode(), v.encode() if v else None, now_ms - 2 * HOUR_MS, 0) for k, v in records])


def _write_settings(folder: Path, database: Postgres) -> None:
    shutil.copy(ROOT / "dagster.yaml", folder)
    storage = f"""
storage:
  postgres:
    postgres_db:
      scheme: postgresql+psycopg2
      hostname: 127.0.0.1
      port: {database.port}
      username: dagster
      password: {{env: DAGSTER_PG_PASSWORD}}
      db_name: dagster
"""
    with (folder / "dagster.yaml").open("a") as settings:
        settings.write(storage)


def _start(made: SharedDagster) -> None:
    ports = made.ports = dict(zip([*LOCATIONS, "webserver"], free_ports(3), strict=True))
    servers = "".join(
        f"  - grpc_server: {{host: 127.0.0.1, port: {ports[name]}, location_name: {name}}}\n" for name in LOCATIONS
    )
    (made.folder / "workspace.yaml").write_text(f"load_from:\n{servers}")
    for name in LOCATIONS:
        module = "keptlog.dagster.orchestration.definitions"
        where = ("--host", "127.0.0.1", "--port", str(ports[name]), "--location-name", name)
        made.start(name, "dagster", "code-server", "start", "-m", module, *where, location=name)
    for name in LOCATIONS:
        made.wait_for(f"answer of code server {name}", lambda name=name: made.answers(name))  # type: ignore[misc]
    made.start_daemon()
    web = ("-h", "127.0.0.1", "-p", str(ports["webserver"]), "-w", "workspace.yaml")
    made.start("webserver", "dagster_webserver", *web)
    made.wait_for("answer of the webserver", lambda: made.answers("webserver"))
