"""Dagster's Spark: settings go over keptlog's one by one, and no secret is in what Dagster stores and shows."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_pyspark import LazyPySparkResource

from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.resources.spark import SparkResource, spark_resource, why_spark_is_down
from keptlog.errors import InvalidConfig
from keptlog.spark.settings import session_settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path))
    monkeypatch.setenv("KEPTLOG_SPARK_MASTER", "spark://host:7077")
    return tmp_path


def test_spark_config_goes_over_spark_properties_which_go_over_keptlogs_own(home: Path) -> None:
    (home / "spark.properties").write_text("spark.driver.memory=2g\nspark.executor.memory=2g")
    resource = SparkResource(spark_config={"spark": {"executor": {"memory": "3g"}}, "spark.task.cpus": 1})
    own = session_settings("spark://host:7077")
    over = {"spark.driver.memory": "2g", "spark.executor.memory": "3g", "spark.task.cpus": "1"}
    assert resource.settings() == own | over


def test_secrets_are_read_when_a_session_starts_and_are_in_nothing_that_dagster_shows(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_SPARK_MASTER", "sc://127.0.0.1:1/;token=planted")
    (home / "spark.properties").write_text("spark.hadoop.fs.s3a.secret.key=planted")
    definitions = build_defs(home)
    spark = definitions.resources["spark"]  # type: ignore[index]
    shown = dg.serialize_value(RepositorySnap.from_def(definitions.get_repository_def()))
    assert "spark_config" in shown
    assert "planted" not in shown
    assert spark.settings()["spark.remote"] == "sc://127.0.0.1:1/;token=planted"
    said = why_spark_is_down(spark, home)
    assert said
    assert "no Spark Connect server answers at 127.0.0.1:1" in said
    assert "planted" not in said


def test_an_address_with_a_token_is_not_taken_into_the_configuration() -> None:
    with pytest.raises(InvalidConfig, match="no token may be in it: give the address by KEPTLOG_SPARK_MASTER") as error:
        spark_resource("sc://host/;token=planted")
    assert "planted" not in str(error.value)


def test_what_dagster_pysparks_own_resource_is_given_goes_over_keptlogs_settings_too(home: Path) -> None:
    said = why_spark_is_down(LazyPySparkResource(spark_config={"spark.remote": "sc://127.0.0.1:1"}), home)
    assert said
    assert "no Spark Connect server answers at 127.0.0.1:1" in said


def test_an_address_in_a_file_is_read_each_time_and_is_in_no_configuration(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "run" / "spark"
    monkeypatch.setenv("KEPTLOG_SPARK_MASTER", f"file:{file}")
    definitions = build_defs(home)
    spark = definitions.resources["spark"]  # type: ignore[index]
    said = why_spark_is_down(spark, home)
    assert said
    assert f"keptlog spark-server --address-file {file}" in said
    file.parent.mkdir()

    for port in (1, 2):
        file.write_text(f"sc://127.0.0.1:{port}/;token=planted\n")
        assert spark.settings()["spark.remote"] == f"sc://127.0.0.1:{port}/;token=planted"
        said = why_spark_is_down(spark, home)
        assert said
        assert f"no Spark Connect server answers at 127.0.0.1:{port}" in said

    shown = dg.serialize_value(RepositorySnap.from_def(definitions.get_repository_def()))
    assert "127.0.0.1" not in shown
    assert "planted" not in shown


def test_an_empty_file_is_no_address(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "spark").write_text("\n")
    monkeypatch.setenv("KEPTLOG_SPARK_MASTER", f"file://{home / 'spark'}")
    with pytest.raises(InvalidConfig, match="is empty"):
        SparkResource().settings()
