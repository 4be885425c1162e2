"""A run in which there was nothing to do says so, and why: it ended in success without a word, as one that did all."""

from __future__ import annotations

import dagster as dg
import pytest

from tests.orchestration.conftest import World


def said(world: World, job: str, op: str, **config: list[str]) -> list[str]:
    """What a run logs that people have launched."""
    result = world.run_job(job, dg.RunRequest(run_config={"ops": {op: {"config": config}}}))
    assert result.success
    return [text for _, text in world.told(result)]


@pytest.fixture
def users(world: World) -> World:
    world.topic("users", 5)
    world.append("users", ("a", "1"))
    return world


def test_a_retention_says_why_it_left_logs_alone(users: World) -> None:
    why = "left alone: users-0, users-1, users-2 and 2 more: no segment is old"
    assert said(users, "retention", "remove_old_segments", logs=["users"]) == [why]


def test_a_purge_says_that_nothing_was_deleted(users: World) -> None:
    assert said(users, "purge", "delete_retired_files", topics=["users"]) == ["users: nothing was deleted"]
