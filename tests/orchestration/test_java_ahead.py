"""A run that is to clean named logs starts its Java before it plans, and leaves none that nobody needs.

Each runs in a process of its own, as a run does: this one may have a Spark already. Those on foreign masters share one:
they start no Spark, and most of what each would take is its imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord

_RUN = """
import json, os, sys
import dagster as dg
from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.passes.clean import Cleaner
from keptlog.spark.java import StartingJava
from tests.processes import descendants

happened = []
def telling(kind, name, word):
    really = getattr(kind, name)
    def told(*given, **named):
        happened.append(word)
        return really(*given, **named)
    setattr(kind, name, told)
telling(StartingJava, "__init__", "java")
telling(StartingJava, "end", "ended")
telling(Cleaner, "begin", "planned")

logs, asset, masters = json.loads(sys.argv[1])
for master in masters:
    os.environ["KEPTLOG_SPARK_MASTER"] = master
    definitions = build_defs()
    if asset:
        job = definitions.resolve_implicit_global_asset_job_def()
        chosen = {"asset_selection": [dg.AssetKey(["users", "clean"])], "partition_key": "users-0"}
    else:
        job = definitions.resolve_job_def("clean_logs")
        chosen = {"run_config": {"ops": {"plan": {"config": {"logs": logs, "requested": bool(logs)}}}}}
    happened.clear()
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance, raise_on_error=False, **chosen)
    left = sum("SparkSubmit" in each.command for each in descendants(os.getpid()))
    print(json.dumps([happened, done.success, left]))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A topic that has something to clean, and one that has nothing."""
    store = open_home(tmp_path).store
    for name in ("users", "empty"):
        store.create_topic(name, 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1", "segment.ms": "1"})
    records = [NewRecord(b"a", value, 1_700_000_000_000, 0) for value in (b"1", b"2")]
    store.append("users", records, "first", 1_700_000_000_000)
    return tmp_path


def ran(home: Path, *logs: str, asset: bool = False) -> tuple[list[str], bool, int]:
    """What happened in which order, whether the run has succeeded, and how many Javas are left of it."""
    (told,) = ran_on(["local[1]"], home, *logs, asset=asset)
    return told


def ran_on(masters: Sequence[str], home: Path, *logs: str, asset: bool = False) -> list[tuple[list[str], bool, int]]:
    """The same of a run on each of some masters, one after the other in one process."""
    environment = {**os.environ, "KEPTLOG_HOME": str(home)}
    command = [sys.executable, "-W", "ignore", "-c", _RUN, json.dumps([logs, asset, masters])]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    told: list[Any] = [json.loads(line) for line in done.stdout.splitlines()[-len(masters) :]]
    return [(happened, succeeded, left) for happened, succeeded, left in told]


def test_java_starts_before_named_logs_are_planned_and_is_the_one_that_cleans(home: Path) -> None:
    happened, succeeded, left = ran(home, "users")
    assert succeeded
    assert happened == ["java", "planned"]
    assert left == 1  # the Spark of this process, for its next run


def test_an_asset_that_is_materialized_does_the_same(home: Path) -> None:
    assert ran(home, asset=True) == (["java", "planned"], True, 1)


def test_a_java_is_ended_if_nothing_is_to_be_cleaned(home: Path) -> None:
    assert ran(home, "empty") == (["java", "planned", "ended"], True, 0)


def test_a_run_over_all_logs_starts_none_before_something_is_due(home: Path) -> None:
    assert ran(home) == (["planned"], True, 0)


def test_where_others_have_the_spark_and_where_a_setting_is_wrong_none_is_started_ahead(home: Path) -> None:
    masters = ["sc://127.0.0.1:1", "spark://127.0.0.1:1", "no master"]
    assert dict(zip(masters, ran_on(masters, home, "empty"), strict=True)) == dict.fromkeys(
        masters, (["planned"], True, 0)
    )
