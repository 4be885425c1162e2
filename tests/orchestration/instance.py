"""A Dagster instance for a test, with databases of its own.

Dagster makes and migrates three databases for each, a third of a second of CPU. So they are made once a process, and
copied. It makes one more for each run, for which it reads its history of schemas, 50 modules, twice; and for each event
it makes an engine, which has compiled no statement yet. Both are kept: they were a third of what a run costs.

A signal that ends the tests ends them also in a run. Dagster takes it for the run's own failure, and the test would go
on: one that expects a failure then stumbles over what the run has not told, and nothing says that it was stopped.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import dagster as dg
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.events import DagsterEvent, DagsterEventType, RunFailureReason
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy import Engine, create_engine

_STORAGES = (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage)
_read_schemas = ScriptDirectory.from_config


@contextmanager
def fresh_instance() -> Iterator[dg.DagsterInstance]:
    """An instance that knows of nothing; it is gone with the block."""
    with tempfile.TemporaryDirectory(prefix="keptlog-dagster-") as folder:
        shutil.copytree(_template().name, folder, dirs_exist_ok=True)
        with (
            _schemas_and_engines_are_kept(),
            _signals_end_the_test(),
            dg.instance_for_test(temp_dir=folder) as instance,
        ):
            yield instance


def begin(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Let a run have begun, as its process says first; one that fails before that has tried nothing."""
    instance.report_dagster_event(DagsterEvent(DagsterEventType.PIPELINE_START.value, run.job_name), run.run_id)


def fail(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str | None = None) -> None:
    """Let a run have begun, and fail."""
    begin(instance, run)
    instance.report_run_failed(run, why)


@lru_cache(maxsize=1)
def _template() -> tempfile.TemporaryDirectory[str]:
    """A folder with the databases of an instance; it is gone with the process."""
    made = tempfile.TemporaryDirectory(prefix="keptlog-dagster-")
    with dg.instance_for_test(temp_dir=made.name) as instance:
        # Each question makes the database that it is asked of.
        assert instance.get_runs_count() == 0
        assert instance.event_log_storage.get_maximum_record_id() is None
        assert not instance.all_instigator_state()
    return made


@contextmanager
def _schemas_and_engines_are_kept() -> Iterator[None]:
    engines: dict[str, Engine] = {}

    def engine_of(database: str, **settings: Any) -> Engine:
        return engines.get(database) or engines.setdefault(database, create_engine(database, **settings))

    with ExitStack() as patched:
        patched.enter_context(patch.object(ScriptDirectory, "from_config", _schemas_of))
        for storage in _STORAGES:
            patched.enter_context(patch.object(storage, "create_engine", engine_of))
        yield


@contextmanager
def _signals_end_the_test() -> Iterator[None]:
    told = DagsterEvent.job_failure

    def failure(*given: Any, **named: Any) -> DagsterEvent:
        if named["failure_reason"] is RunFailureReason.UNEXPECTED_TERMINATION:
            raise KeyboardInterrupt
        return told(*given, **named)

    with patch.object(DagsterEvent, "job_failure", staticmethod(failure)):
        yield


def _schemas_of(config: Config) -> ScriptDirectory:
    place = config.get_main_option("script_location")
    return _read.get(place) or _read.setdefault(place, _read_schemas(config))


_read: dict[str | None, ScriptDirectory] = {}
