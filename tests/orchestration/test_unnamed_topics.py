"""A topic that a project's translator has no asset key of its own for costs its own assets, and nothing else."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.dagster.assets.translator import DagsterKeptlogTranslator, Section
from keptlog.dagster.orchestration.definitions import build_defs
from tests.orchestration.conftest import World
from tests.orchestration.test_mounts import spec_of, ticked


class ByTeam(DagsterKeptlogTranslator):
    def get_asset_key(self, topic: str, section: Section) -> dg.AssetKey:
        team, name = topic.split(".", 1)
        return dg.AssetKey([team, name.replace("-", "_"), section.value])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scratch", "scratch has no assets, and is looked after all the same: the translator raises ValueError"),
        ("crm.new_users", "the translator gives it an asset key of crm.new-users"),
    ],
)
def test_a_topic_that_a_translator_has_no_name_for_costs_no_other_one(world: World, name: str, why: str) -> None:
    world.topic("crm.new-users")
    defs = build_defs(world.path, translator=ByTeam())
    world.topic(name)

    assert ticked(defs, "dirty_ratio_sensor", world.instance).asset_events
    assert ticked(defs, "health_sensor", world.instance).asset_events

    later = build_defs(world.path, translator=ByTeam())
    dg.Definitions.validate_loadable(later)
    assert spec_of(later, "crm", "new_users", "clean")
    assert why in str(spec_of(later, name, "no_assets").description)


def test_a_translator_need_not_name_the_source_of_a_topic_that_has_none(world: World) -> None:
    class OfSections(DagsterKeptlogTranslator):
        def get_asset_key(self, topic: str, section: Section) -> dg.AssetKey:
            return dg.AssetKey([topic, {Section.DIRTY: "new", Section.CLEAN: "done"}[section]])

    world.topic("users")
    assert spec_of(build_defs(world.path, translator=OfSections()), "users", "done")


def test_a_translator_that_has_a_name_for_no_topic_is_wrong(world: World) -> None:
    world.topic("scratch")
    with pytest.raises(ValueError, match="not enough values"):
        build_defs(world.path, translator=ByTeam())
