"""Dagster says what holds superseded bytes: in the check G8, in the dirty section, in ticks, and in failed runs."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.dagster.assets.numbers import dirty_materialization, held_numbers
from keptlog.dagster.orchestration.clean_sensors import why_nothing
from keptlog.dagster.orchestration.requests import DueLogs
from keptlog.log.assessment import Trigger
from keptlog.log.holder import Held, HolderKind, Holdings, Terms
from keptlog.passes.observer import observe
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.shipped import KEYS
from tests.table.foreign import table_of


@pytest.fixture
def users(world: World) -> World:
    """A topic with a tag from before its clean; the clock is weeks ahead of the storage's, and no purge has come."""
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    table = table_of(world.path, "users")
    table.manage_snapshots().create_tag(table.metadata.snapshots[-1].snapshot_id, "audit").commit()
    assert world.clean().success
    return world


def gone(world: World) -> tuple[bool, str] | None:
    """Whether the check G8 passed last, and what it says."""
    key = dg.AssetCheckKey(KEYS.clean("users"), "G8_gone_in_time")
    record = world.instance.get_latest_asset_check_evaluation_record(key)
    if not (record and record.event and record.event.dagster_event):
        return None
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    return evaluation.passed, evaluation.description or ""


def purge(world: World) -> None:
    assert world.defs.get_job_def("purge").execute_in_process(instance=world.instance).success


def drop_tag(world: World) -> None:
    table_of(world.path, "users").manage_snapshots().remove_tag("audit").commit()


def test_g8_is_red_over_a_tag_that_keeps_superseded_bytes_and_green_once_it_is_dropped_and_purged(users: World) -> None:
    assert gone(users) is None, "a clean does not look at the storage"
    verified = users.run_job("verify", dg.RunRequest())
    assert not verified.success
    purge(users)
    found = gone(users)
    assert found
    assert found[0] is False
    assert "users-0: tag audit of users-0 keeps 1 retired segment, past its deadline" in found[1]
    assert r"ALTER TABLE \<catalog>.keptlog.\`users\` DROP TAG \`audit\`" in found[1], "a page shows it as it is"
    drop_tag(users)
    purge(users)
    assert gone(users) == (True, "")
    assert users.run_job("verify", dg.RunRequest()).success


def test_what_is_not_counted_is_no_zero() -> None:
    uncounted = Held(HolderKind.TAG, 0, files=None, name="audit")
    counted = Held(HolderKind.RETIRED, 0, bytes=5)
    numbers = held_numbers(Holdings("users", Terms(0), (uncounted, counted)), 1)
    assert {"held_files", "held_bytes"}.isdisjoint(numbers)
    assert "tag audit of users keeps retired segments" in str(numbers["holders"])


def test_the_dirty_section_and_the_tick_name_what_holds(users: World) -> None:
    seen = observe(users.store, now_ms=users.now_ms)
    [assessment] = seen.assessments
    held = held_numbers(seen.holdings["users"], users.now_ms)
    metadata = dirty_materialization(KEYS, assessment, None, held).metadata
    assert "tag audit of users keeps 1 retired segment" in str(metadata["holders"].value)
    assert metadata["held_files_late"].value == metadata["held_files"].value == 1
    assert "held_deadline" in metadata
    assert "tag audit of users" in why_nothing(Trigger.DIRTY_RATIO, seen, DueLogs())
    drop_tag(users)
    purge(users)
    seen = observe(users.store, now_ms=users.now_ms)
    assert held_numbers(seen.holdings["users"], users.now_ms) == {
        "held_files": 0,
        "held_bytes": 0,
        "held_files_late": 0,
    }
    assert "audit" not in why_nothing(Trigger.DIRTY_RATIO, seen, DueLogs())
