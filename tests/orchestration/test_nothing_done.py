"""A run in which there was nothing to do says so, and why: it ended in success without a word, as one that did all."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.dagster.orchestration.retention_job import _left_alone_lines
from keptlog.passes.retain import BEING_CLEANED
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import DELETING, NAMESPACE
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


def test_what_waits_for_a_clean_is_told_though_very_many_others_have_reasons_of_their_own() -> None:
    """The pass names it last, and each topic without stored settings has a line, so that it was cut off."""
    others = {f"t{number}-0": f"keptlog topic alter t{number}" for number in range(99)}

    lines = _left_alone_lines(others | {"users-0": BEING_CLEANED})

    assert lines[0] == f"left alone: users-0: {BEING_CLEANED}"
    assert lines[-1] == "and 50 more"


def test_a_purge_that_ends_a_deletion_does_not_say_of_its_name_that_nothing_was_deleted(users: World) -> None:
    """Of a topic that was made anew before a purge came to what is left of the earlier one, it said both."""
    catalog = open_catalog(users.path)
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, "users"), (DELETING, "users"))
    old = catalog.load_table((DELETING, "users"))
    elsewhere = f"{old.location()}-anew"
    catalog.create_table((NAMESPACE, "users"), old.schema(), elsewhere, properties=old.properties)

    lines = said(users, "purge", "delete_retired_files", topics=["users"])

    assert "of the deleted topic deleted" in lines[0]
    assert "users: nothing was deleted" not in lines
