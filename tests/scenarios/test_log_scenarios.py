"""The files of ``log/``: what becomes of records, on the specification and on the real log.

``KEPTLOG_REWRITE=1 pytest tests/scenarios`` writes what the specification does into the files, for a person to review.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from keptlog.spark.jobs import spark_engine
from tests.in_process import in_process_engine
from tests.logs import RealTwin, ReferenceTwin, open_store
from tests.scenarios.language import parse, play, unparse
from tests.scenarios.scenario import Scenario

FILES = sorted((Path(__file__).parent / "log").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_specification_does_what_the_scenario_says(path: Path, rewrite_scenarios: bool) -> None:
    play(path, Scenario(ReferenceTwin()).run, rewrite=rewrite_scenarios)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_real_log_does_what_the_scenario_says(path: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    play(path, Scenario(RealTwin(store, in_process_engine(store.files))).run, rewrite=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_real_log_does_the_same_on_spark(path: Path, tmp_path: Path, spark: SparkSession) -> None:
    store = open_store(tmp_path)
    engine = spark_engine(lambda: spark, store.files)
    play(path, Scenario(RealTwin(store, engine)).run, rewrite=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_file_is_written_as_it_was_read(path: Path) -> None:
    assert unparse(*parse(path.read_text())) == path.read_text()
