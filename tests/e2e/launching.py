"""Launches runs as the UI's launchpad does."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import DagsterDev

_LAUNCH = """
mutation ($params: ExecutionParams!) {
  launchPipelineExecution(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}
"""
_SELECTOR = {"repositoryLocationName": "keptlog", "repositoryName": "__repository__"}


def launch(dev: DagsterDev, job: str, config: dict[str, Any]) -> str:
    """Launch a run; gives its id."""
    answer = _answer(dev, job, config)
    assert answer["__typename"] == "LaunchRunSuccess", answer
    return str(answer["run"]["runId"])


def refused_launch(dev: DagsterDev, job: str, config: dict[str, Any]) -> str:
    """Try to launch a run of a configuration that is refused; gives what is said of it."""
    answer = _answer(dev, job, config)
    assert answer["__typename"] != "LaunchRunSuccess", answer
    return str(answer)


def _answer(dev: DagsterDev, job: str, config: dict[str, Any]) -> Any:
    params = {"selector": _SELECTOR | {"pipelineName": job}, "runConfigData": config, "mode": "default"}
    return dev.query(_LAUNCH, params=params)["launchPipelineExecution"]
