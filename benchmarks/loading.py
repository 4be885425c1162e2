"""How long a code location of very many topics takes to load, and a run of it to begin, on a real PostgreSQL.

    python -m benchmarks.loading                      # 1,000 topics of 10 partitions: about three minutes
    python -m benchmarks.loading --topics 100

    nobody has looked     the code server reads each table
    it was looked at      it asks the catalog, and finds the rest in the home's cache
    a sensor keeps it     it reads one file; the catalog's database is not asked once, which is looked up there

A run is timed from its process to its plan. Catalog and Dagster's storage are two databases of one server. The code
server, and each run, is a process of its own, started as Dagster does it. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._grpc.client import DagsterGrpcClient
from sqlalchemy import create_engine, text

from benchmarks.many_topics import Shape, make_topics, topic_name
from examples.lake.postgres import USER, Postgres, postgres
from examples.ports import free_port
from keptlog.dagster.orchestration.loading import seen_topics
from keptlog.dagster.orchestration.state_file import StateFile
from keptlog.dagster.resources.log_store import LogStoreResource

_MODULE = "keptlog.dagster.orchestration.definitions"
_SETTINGS = """
storage:
  postgres:
    postgres_db: {{scheme: postgresql+psycopg2, hostname: 127.0.0.1, port: {port}, username: {user}, password: "", db_name: dagster}}
run_launcher: {{module: dagster, class: DefaultRunLauncher}}
telemetry: {{enabled: false}}
"""  # noqa: E501
_DEADLINE_SECONDS = 180


@contextmanager
def code_server(folder: Path) -> Iterator[tuple[int, float, float]]:
    """A code server for as long as the block lasts: its port, and the wall and CPU seconds until it answered."""
    port = free_port()
    where = ("--host", "127.0.0.1", "--port", str(port), "--location-name", "many")
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "api", "grpc", "-m", _MODULE, *where]
    begun = time.monotonic()
    with (folder / "code-server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        seconds = _answered(port, process) - begun
        yield port, seconds, _cpu_seconds(process.pid)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _answered(port: int, process: subprocess.Popen[bytes]) -> float:
    """When it did. It listens once it has loaded; gRPC asked before that waits for seconds until it asks again."""
    until = time.monotonic() + _DEADLINE_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            DagsterGrpcClient(port=port, host="127.0.0.1").list_repositories()
            return time.monotonic()
    raise SystemExit("the code server does not answer: see its log")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def seconds_to_the_plan(folder: Path, port: int) -> float:
    """Of a run of ``clean_logs``: from its process to its first step."""
    target = GrpcServerTarget(host="127.0.0.1", port=port, socket=None, location_name="many")
    with dg.DagsterInstance.from_config(str(folder)) as instance, WorkspaceProcessContext(instance, target) as process:
        context = process.create_request_context()
        location = context.get_code_location("many")
        job = location.get_repositories()["__repository__"].get_full_job("clean_logs")
        config = {"ops": {"plan": {"config": {"logs": [topic_name(1)]}}}}
        plan = location.get_execution_plan(job, config, None, None, instance)
        run = instance.create_run(
            job_name=job.name,
            run_id=None,
            run_config=config,
            status=dg.DagsterRunStatus.NOT_STARTED,
            tags={},
            root_run_id=None,
            parent_run_id=None,
            step_keys_to_execute=None,
            execution_plan_snapshot=plan.execution_plan_snapshot,
            job_snapshot=job.job_snapshot,
            parent_job_snapshot=None,
            asset_selection=None,
            asset_check_selection=None,
            resolved_op_selection=None,
            op_selection=None,
            remote_job_origin=job.get_remote_origin(),
            job_code_origin=job.get_python_origin(),
            asset_graph=location.get_repositories()["__repository__"].asset_graph,
        )
        instance.launch_run(run.run_id, context)
        until = time.monotonic() + _DEADLINE_SECONDS
        while not instance.get_run_by_id(run.run_id).is_finished and time.monotonic() < until:  # type: ignore[union-attr]
            time.sleep(0.1)
        times: dict[str, float] = {}
        for entry in instance.all_logs(run.run_id):
            if entry.dagster_event and entry.dagster_event.step_key in {None, "plan"}:
                is_begun = (entry.dagster_event.message or "").startswith("Started process for run")
                times.setdefault("process" if is_begun else entry.dagster_event.event_type_value, entry.timestamp)
    return times["STEP_START"] - times["process"]


def count_clients_alone(database: Postgres) -> None:
    """Turn off the server's own upkeep, whose transactions would be counted with those of keptlog."""
    engine = create_engine(database.uri(), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("alter system set autovacuum = off"))
        connection.execute(text("select pg_reload_conf()"))


def transactions(database: Postgres) -> int:
    """How many the catalog's database has seen; a server's own statistics, which it writes when a client leaves."""
    engine = create_engine(database.uri())
    with engine.connect() as connection:
        query = "select xact_commit + xact_rollback from pg_stat_database where datname = 'lake'"
        return int(connection.execute(text(query)).scalar_one())


def _keep() -> None:
    """Write the state file, as a tick of the sensor does."""
    log_store = LogStoreResource()
    state = StateFile.of(log_store)
    assert state
    unwritten = state.keep(seen_topics(log_store, None), time.time_ns() // 1_000_000)
    assert not unwritten, unwritten


def measure(folder: Path, database: Postgres, case: str) -> dict[str, Any]:
    """One loading, and a run."""
    before = transactions(database)
    with code_server(folder) as (port, seconds, cpu_seconds):
        asked = transactions(database) - before
        return {
            "case": case,
            "seconds_until_the_code_server_answers": round(seconds, 2),
            "cpu_seconds_until_then": round(cpu_seconds, 2),
            "transactions_of_the_catalog_until_then": asked,
            "seconds_from_a_runs_process_to_its_plan": round(seconds_to_the_plan(folder, port), 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description="Measure loading many topics.")
    parser.add_argument("--topics", type=int, default=1_000)
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="keptlog-loading-"))
    home = folder / "home"
    try:
        with postgres() as database:
            count_clients_alone(database)
            (folder / "dagster.yaml").write_text(_SETTINGS.format(port=database.port, user=USER))
            database.create("dagster")
            catalog = {"TYPE": "sql", "URI": database.create("lake"), "WAREHOUSE": f"file://{folder}/warehouse"}
            os.environ |= {f"PYICEBERG_CATALOG__KEPTLOG__{name}": value for name, value in catalog.items()}
            os.environ |= {"DAGSTER_HOME": str(folder), "KEPTLOG_HOME": str(home), "KEPTLOG_SPARK_MASTER": "local[1]"}
            make_topics(home, wanted.topics, Shape(), time.time_ns() // 1_000_000)
            shutil.rmtree(home / "cache", ignore_errors=True)
            found = [measure(folder, database, case) for case in ("nobody has looked", "it was looked at")]
            # In a process of its own: the server's statistics tell of a client when it has left.
            keeping = multiprocessing.get_context("spawn").Process(target=_keep)
            keeping.start()
            keeping.join()
            if keeping.exitcode:
                raise SystemExit("the state file could not be written: see above")
            found.append(measure(folder, database, "a sensor keeps it"))
    finally:
        shutil.rmtree(folder)
    sys.stdout.write(json.dumps({"topics": wanted.topics, "found": found}) + "\n")


if __name__ == "__main__":
    main()
