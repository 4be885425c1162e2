"""What somebody types into the launchpad, and an op refuses: nothing was wrong with the logs that the run names."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from keptlog.dagster.resources.spark import SparkResource
from tests.orchestration.conftest import World
from tests.orchestration.shipped import dirty_ratio_sensor
from tests.orchestration.test_untried_runs import fails, users

__all__ = ["users"]

NULL: Any = None
"""What an empty line of YAML says. Dagster lets it through."""
USERS: dict[str, Any] = {"logs": ["users-0"]}


@pytest.mark.parametrize(
    "ops",
    [
        {"plan": {"config": USERS | {"requested": NULL}}},
        {"plan": {"config": USERS}, "commit": {"config": {"verify": NULL}}},
    ],
    ids=["plan", "commit"],
)
def test_a_run_with_null_where_an_op_takes_none_marks_no_log_however_often(users: World, ops: dict[str, Any]) -> None:
    for _ in range(5):
        said = fails(users, dg.RunRequest(run_config={"ops": ops}))

    assert "Input should be a valid boolean" in said
    assert "that is no log's fault, nothing is marked for it" in said
    assert users.store.logs("users")[0].uncleanable is None
    assert users.requests(dirty_ratio_sensor)


def test_a_run_whose_spark_was_given_null_for_its_settings_is_no_outage_and_marks_no_log_however_often(
    users: World,
) -> None:
    users.more_resources["spark"] = SparkResource()
    typed = {"ops": {"plan": {"config": USERS}}, "resources": {"spark": {"config": {"spark_config": NULL}}}}
    for _ in range(5):
        said = fails(users, dg.RunRequest(run_config=typed))

    assert "the configuration of its resources was refused" in said
    assert "Input should be a valid dictionary" in said
    assert users.store.logs("users")[0].uncleanable is None
    assert users.requests(dirty_ratio_sensor)
