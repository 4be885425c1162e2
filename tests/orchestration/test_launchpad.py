"""The launchpad: every field of a job says what it is for, and stands there before anybody types a letter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._config.snap import ConfigFieldSnap, ConfigSchemaSnapshot
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.yaml_utils import load_run_config_yaml

from keptlog.dagster import build_defs
from tests.orchestration.conftest import World
from tests.orchestration.shipped import DEFS

FIELDS = {
    "clean_logs": {"plan": {"logs", "requested"}, "commit": {"verify"}},
    "retention": {"remove_old_segments": {"logs"}},
    "purge": {"delete_retired_files": {"topics", "orphan_grace_ms"}},
    "verify": {"verify_logs": {"logs"}},
    "ingest_kafka": {
        "ingest": {
            *("topics", "topic_partitions", "bootstrap", "into", "config", "broker_config"),
            *("skip_lost", "reconcile", "seen_ms"),
        }
    },
    "verify_erasures": {"verify_deleted": {"ids", "topics"}},
    # What has to be given is no default: "Scaffold missing config" writes it.
    "erase": {"ask_for_erasure": {"by", "reason", "here", "id"}},
}


def root_of(job: dg.JobDefinition) -> tuple[ConfigSchemaSnapshot, str]:
    """The schema of a job's configuration, and the name of its root in it."""
    snapshot = job.get_job_snapshot()
    key = snapshot.mode_def_snaps[0].root_config_key
    assert key
    return snapshot.config_schema_snapshot, key


def fields(schema: ConfigSchemaSnapshot, key: str, *path: str) -> Iterator[tuple[tuple[str, ...], ConfigFieldSnap]]:
    """All fields below a type, with their paths."""
    for field in schema.get_config_snap(key).fields or ():
        here = (*path, str(field.name))
        yield here, field
        yield from fields(schema, field.type_key, *here)


def test_there_is_a_job_here_for_every_job() -> None:
    assert {job.name for job in DEFS.get_repository_def().get_all_jobs()} == set(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_there_with_its_default(name: str) -> None:
    schema, key = root_of(DEFS.get_job_def(name))
    shown: Any = load_run_config_yaml(default_values_yaml_from_type_snap(schema, schema.get_config_snap(key)))

    assert {op: set(each["config"]) for op, each in shown["ops"].items()} == FIELDS[name]


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_says_what_it_is_for(name: str) -> None:
    schema, key = root_of(DEFS.get_job_def(name))
    ours = [(path, field) for path, field in fields(schema, key) if path[0] == "ops" and path[2:3] == ("config",)]

    asked = [(path, field) for path, field in ours if len(path) > 3]
    assert asked
    assert not [path for path, field in asked if not field.description]


def test_no_run_is_pointed_to_another_home_by_its_configuration(tmp_path: Path) -> None:
    schema, key = root_of(build_defs(tmp_path).get_job_def("purge"))

    assert not [
        path for path, _ in fields(schema, key) if path[:2] == ("resources", "log_store") and path[-1] == "home"
    ]


@pytest.mark.parametrize(
    ("now_ms", "why"),
    [(1_800_000_000, "are these seconds?"), (1_800_000_000_000_000, "is it finer than milliseconds?")],
    ids=["seconds", "microseconds"],
)
def test_a_clock_that_can_not_have_been_meant_is_refused_before_anything_is_judged(
    world: World, now_ms: int, why: str
) -> None:
    world.topic("users")
    config = {"resources": {"clock": {"config": {"now_ms": now_ms}}}}
    job = build_defs(world.log_store).get_job_def("verify")

    result = job.execute_in_process(run_config=config, instance=world.instance, raise_on_error=False)

    failure = result.failure_data_for_node("verify_logs")
    assert failure
    assert failure.error
    assert failure.error.cause
    assert why in failure.error.cause.message
    assert result.get_asset_check_evaluations() == []


def test_a_purge_with_a_grace_below_nothing_is_refused_in_one_line(world: World) -> None:
    world.topic("users")
    config = {"ops": {"delete_retired_files": {"config": {"orphan_grace_ms": -1}}}}

    failure = world.run_job("purge", dg.RunRequest(run_config=config)).failure_data_for_node("delete_retired_files")

    assert failure
    assert failure.user_failure_data, "Dagster tells an error of its own"
    assert "orphan_grace_ms is -1: " in (failure.user_failure_data.description or "")
