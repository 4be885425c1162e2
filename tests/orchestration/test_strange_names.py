"""A topic whose table another program has given a name that no broker takes costs that topic's assets alone."""

from __future__ import annotations

import contextlib
import sqlite3

import dagster as dg
import pytest

from keptlog.dagster.assets.translator import DagsterKeptlogTranslator, Section
from keptlog.dagster.orchestration.definitions import build_defs
from tests.orchestration.conftest import World, logs_of
from tests.orchestration.shipped import dirty_ratio_sensor, health_sensor


def _with_one_called(world: World, name: str) -> None:
    """A home with users, and with a topic that was renamed in the catalog; both are due."""
    for topic in ("users", "plain"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    with contextlib.closing(sqlite3.connect(world.path / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute("update iceberg_tables set table_name = ? where table_name = 'plain'", (name,))
    world.reopen()


def _specs(defs: dg.Definitions) -> dict[str, dg.AssetSpec]:
    dg.Definitions.validate_loadable(defs)
    return {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}


@pytest.mark.parametrize("name", ["my table", "a/b", "größe", "a:b"])
def test_the_definitions_load_and_name_it(world: World, name: str) -> None:
    """Nothing of the code location loaded: no sensor of it ran, and no log of the home was cleaned."""
    _with_one_called(world, name)
    specs = _specs(world.defs)
    assert set(specs) == {"users/dirty", "users/clean", f"{name}/no_assets", "erasures", "keptlog/health"}
    assert "no asset can depend on one of that name" in (specs[f"{name}/no_assets"].description or "")


@pytest.mark.parametrize("name", ["my table", ".."])
def test_it_and_the_others_are_looked_after(world: World, name: str) -> None:
    _with_one_called(world, name)
    (request,) = world.requests(dirty_ratio_sensor)
    assert sorted(logs_of(request)) == sorted([f"{name}-0", "users-0"])
    assert world.launch(request).success
    assert [world.store.logs(topic)[0].checkpoint for topic in ("users", name)] == [2, 2]
    assert world.clean("users-0", f"{name}-0", requested=True).success
    world.tick(health_sensor)


@pytest.mark.parametrize("job", ["verify", "purge"])
def test_jobs_over_all_topics_go_on(world: World, job: str) -> None:
    _with_one_called(world, "my table")
    assert world.run_job(job, dg.RunRequest()).success


def test_a_key_of_a_projects_own_that_no_asset_can_depend_on_costs_its_topic_alone(world: World) -> None:
    class Shouting(DagsterKeptlogTranslator):
        def get_asset_key(self, topic: str, section: Section) -> dg.AssetKey:
            return dg.AssetKey([f"{topic}!" if topic == "plain" else topic, section.value])

    for topic in ("users", "plain"):
        world.topic(topic)
    specs = _specs(build_defs(world.path, translator=Shouting()))
    assert {"users/clean", "plain/no_assets"} <= set(specs)
    assert "plain!/clean" not in specs
