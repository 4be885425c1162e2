"""Spark's server is killed and comes back at another port: cleaning goes on, also of a run that is carried out again.

Nothing but the file that holds its address has changed. After the other tests here, because it leaves runs behind.
The other processes are killed in ``tests/deploy``.
"""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from examples.ports import free_port
from tests.shared_dagster.conftest import SharedDagster, append, runs_of

_AGAIN = """mutation ($params: ReexecutionParams!) {launchRunReexecution(reexecutionParams: $params) {
    __typename ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}}}"""


def test_cleaning_goes_on_after_kill_9_of_spark_that_comes_back_elsewhere(cleaned: SharedDagster) -> None:
    start_spark(cleaned)
    first = cleaned.wait_for("Spark's address", lambda: server_in(cleaned))
    with cleaned.instance() as instance:
        known = {run.run_id for run in runs_of(instance, "disk", "clean_logs")}
        make_dirty(cleaned, "3")

        run = cleaned.wait_for("clean by itself", lambda: ended(instance, known))
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert values(cleaned) == {"a": "3", "b": "3"}

        cleaned.kill("spark")
        start_spark(cleaned)
        cleaned.wait_for("Spark's other address", lambda: server_in(cleaned) not in {None, first})
        make_dirty(cleaned, "4")
        told = cleaned.query(_AGAIN, params={"parentRunId": run.run_id, "strategy": "ALL_STEPS"})
        again = told["launchRunReexecution"]
        assert again["__typename"] == "LaunchRunSuccess", again
        known = {each.run_id for each in runs_of(instance, "disk", "clean_logs")} - {again["run"]["runId"]}

        run = cleaned.wait_for("re-execution", lambda: ended(instance, known))
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert values(cleaned) == {"a": "4", "b": "4"}
        assert first not in str(run.run_config)


def start_spark(shared: SharedDagster) -> None:
    """Start a server, at a new port each time; it answers later."""
    shared.start("spark", "keptlog", "spark-server", "--port", str(free_port()), location="disk")


def server_in(shared: SharedDagster) -> str | None:
    """Where the address file says that a server is; null if it names none."""
    file = Path(shared.environments["disk"]["KEPTLOG_SPARK_MASTER"].removeprefix("file:"))
    address = file.read_text().partition("/;")[0]
    return address if address.startswith("sc://") else None


def make_dirty(shared: SharedDagster, value: str) -> None:
    """Append more than is clean."""
    with shared.opened("disk") as home:
        for _ in range(3):
            append(home, ("a", value), ("b", value))


def values(shared: SharedDagster) -> dict[str, str]:
    """What ``users`` holds, if each key is there once."""
    with shared.opened("disk") as home:
        records = [(record.key or b"", record.value or b"") for _, record in home.read("users")]
    assert len(records) == 2, records
    return {key.decode(): value.decode() for key, value in records}


def ended(instance: dg.DagsterInstance, known: set[str]) -> dg.DagsterRun | None:
    """A clean that is not among those that were known, once it has ended."""
    new = [run for run in runs_of(instance, "disk", "clean_logs") if run.run_id not in known]
    return new[0] if new and new[0].is_finished else None
