"""After runs and ticks that fail at every server, no secret is in what a Dagster on SQLite stores or shows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value

from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.home import new_id, open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from tests.security.searching import found_in, found_in_database, found_in_files
from tests.table.buckets import new_bucket, s3_server

TOKEN = "planted-connect-token"  # noqa: S105  # nobody's
SECRETS = {
    "the database's password": "planted-db-password",
    "the bucket's secret key": "planted-s3-secret-key",
    "the broker's password": "planted-sasl-password",
    "the erasure secret": "5ec4e7" * 11,
    "Spark's token": TOKEN,
    "the token in an address": "planted-address-token",
    "the path of a webhook": "planted-hook-path",
}
CATALOG = "PYICEBERG_CATALOG__KEPTLOG__"
HOUR_MS = 3_600_000
BROKEN = ("clean_logs", "purge")
SENSORS = {"max_compaction_lag_sensor", "dirty_ratio_sensor", "ingest_lag_sensor", "notify_sensor"}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Path]:
    """A home in a bucket, with a log that is due; Spark's server and the broker are not there."""
    with s3_server() as endpoint, pytest.MonkeyPatch.context() as patch:
        bucket = new_bucket(endpoint, None)
        values = {
            "KEPTLOG_HOME": str(tmp_path / "home"),
            "KEPTLOG_KAFKA_SASL_PASSWORD": SECRETS["the broker's password"],
            "KEPTLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "KEPTLOG_SPARK_MASTER": f"sc://127.0.0.1:1/;token={SECRETS['the token in an address']}",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": TOKEN,
            "KEPTLOG_NOTIFY_WEBHOOK_URL": f"http://127.0.0.1:1/{SECRETS['the path of a webhook']}",
            "KEPTLOG_NOTIFY_SETTLE": "0s",
            "KEPTLOG_ERASURE_SECRET": SECRETS["the erasure secret"],
            f"{CATALOG}TYPE": "sql",
            f"{CATALOG}URI": f"sqlite:///{tmp_path / 'catalog.db'}",
            f"{CATALOG}WAREHOUSE": f"s3://{bucket.name}/warehouse",
            f"{CATALOG}S3__ENDPOINT": endpoint,
            f"{CATALOG}S3__ACCESS_KEY_ID": "someone",
            f"{CATALOG}S3__SECRET_ACCESS_KEY": SECRETS["the bucket's secret key"],
            f"{CATALOG}S3__REGION": "us-east-1",
        }
        for name, value in values.items():
            patch.setenv(name, value)
        home = open_home()
        home.create_topic("users", 1, {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)})
        for content in (b"1", b"2"):
            record = NewRecord(b"k", content, wall_clock_ms() - 2 * HOUR_MS, 0)
            home.append("users", [record], now_ms=wall_clock_ms(), run_id=new_id())
        yield tmp_path


def elsewhere(folder: Path, variables: Mapping[str, str], jobs: tuple[str, ...], instance: dg.DagsterInstance) -> str:
    """Runs of a code location whose environment has these variables besides; gives what sensors told."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setenv("KEPTLOG_HOME", str(folder))
        (folder).mkdir(exist_ok=True)
        defs = build_defs(LogStoreResource(home=str(folder)))
        told = [serialize_value(RepositorySnap.from_def(defs.get_repository_def()))]
        for job in jobs:
            defs.get_job_def(job).execute_in_process(instance=instance, raise_on_error=False)
        told += [said_by(sensor, defs, instance) for sensor in defs.sensors or () if sensor.name in SENSORS]
    return "\n".join(told)


def said_by(sensor: object, defs: dg.Definitions, instance: dg.DagsterInstance) -> str:
    """What a tick says, or fails with."""
    assert isinstance(sensor, dg.SensorDefinition)
    needed = {name: (defs.resources or {})[name] for name in sensor.required_resource_keys}
    try:
        with dg.build_sensor_context(instance=instance, resources=needed) as context:
            return str(sensor.evaluate_tick(context))
    except Exception as error:  # noqa: BLE001  # whatever it is: it would be stored
        return repr(error)


def test_nothing_is_stored_or_shown(lake: Path) -> None:
    storage = lake / "dagster"
    storage.mkdir()
    no_store = {f"{CATALOG}S3__ENDPOINT": "http://127.0.0.1:1"}
    password = SECRETS["the database's password"]
    no_database = {f"{CATALOG}URI": f"postgresql+psycopg2://someone:{password}@127.0.0.1:1/lake"}
    with dg.DagsterInstance.local_temp(str(storage)) as instance:
        told = elsewhere(lake / "home", {}, (*BROKEN, "ingest_kafka", "verify", "verify_erasures"), instance)
        told += elsewhere(lake / "second", no_store, BROKEN, instance)
        told += elsewhere(lake / "third", no_database, BROKEN, instance)
        failed = [run.job_name for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))]

        assert [failed.count(job) for job in ("clean_logs", "purge", "ingest_kafka")] == [3, 2, 1]
        assert "log_store" in told
        assert told.count("not delivered by webhook") == 3
        for home in ("home", "second", "third"):
            assert found_in_files(lake / home / "notify", SECRETS) == []
        assert found_in(told, SECRETS) == []
        assert found_in_files(storage, SECRETS) == []
        assert in_databases(storage) == []
        # And it would be found.
        instance.add_run_tags(instance.get_runs()[0].run_id, {"planted": TOKEN})
        assert set(in_databases(storage)) >= {"Spark's token in run_tags.value"}


def in_databases(storage: Path) -> list[str]:
    """Where secrets stand in the databases there."""
    found: list[str] = []
    for path in storage.rglob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            found += found_in_database(connection, SECRETS)
    return found
