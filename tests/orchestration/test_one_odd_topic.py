"""What is odd about one topic, as Kafka and other programs allow it, costs that topic alone."""

from __future__ import annotations

import dagster as dg
import pytest

from keptlog.dagster.assets.long_tags import as_tags, tag_text
from keptlog.passes.observer import observe
from keptlog.passes.watch import without_brokers
from tests.orchestration.conftest import World, logs_of
from tests.orchestration.shipped import dirty_ratio_sensor


def _dirty(world: World, *topics: str) -> None:
    for topic in topics:
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))


def _specs(world: World) -> dict[str, dg.AssetSpec]:
    dg.Definitions.validate_loadable(world.defs)
    return {spec.key.to_user_string(): spec for spec in world.defs.resolve_all_asset_specs()}


def _alter(world: World, topic: str, **properties: str) -> None:
    names = {name.replace("__", "."): text for name, text in properties.items()}
    world.store.load_table(topic).transaction().set_properties(names).commit_transaction()
    world.reopen()


def test_a_topic_whose_name_dagster_takes_for_no_partition_has_no_assets_and_is_cleaned(world: World) -> None:
    _dirty(world, "a...b", "users")
    specs = _specs(world)
    assert set(specs) == {"users/dirty", "users/clean", "a...b/no_assets", "erasures", "keptlog/health"}
    assert "looked after all the same" in (specs["a...b/no_assets"].description or "")
    (request,) = world.requests(dirty_ratio_sensor)
    assert sorted(logs_of(request)) == ["a...b-0", "users-0"]


@pytest.mark.parametrize("owners", ["bob", "team:", "a@b@c", "bob, ada@example.com"])
def test_an_owner_that_is_none_to_dagster_is_left_out(world: World, owners: str) -> None:
    _dirty(world, "users")
    _alter(world, "users", keptlog__owners=owners)
    assert list(_specs(world)["users/clean"].owners) == (["ada@example.com"] if "ada" in owners else [])


@pytest.mark.parametrize("stored", ["{broken", "5", '"x"', "[]"])
def test_brokers_of_others_are_asked_where_a_topics_source_is_damaged(world: World, stored: str) -> None:
    _dirty(world, "odd", "users")
    _alter(world, "odd", log__source=stored)
    told = without_brokers(observe(world.store, now_ms=world.now_ms))
    assert told is not None
    assert told.judged == {}
    _alter(world, "users", log__source='{"topic": "users", "bootstrap": "127.0.0.1:1"}')
    assert without_brokers(observe(world.store, now_ms=world.now_ms)) is None


@pytest.mark.parametrize("number", ["0", "2024"])
def test_an_unreadable_topic_that_is_called_like_a_log_of_another_one_is_told_as_itself(
    world: World, number: str
) -> None:
    _dirty(world, "events", f"events-{number}")
    _alter(world, f"events-{number}", **{"log__p0__log-end-offset": "many"})
    assert not world.run_job("verify", dg.RunRequest()).success
    found = {}
    for topic in ("events", f"events-{number}"):
        check = dg.AssetCheckKey(dg.AssetKey([topic, "clean"]), "cleaned")
        records = world.instance.event_log_storage.get_asset_check_execution_history(check, limit=1)
        found[topic] = [record.status.value for record in records]
    assert found == {"events": ["SUCCEEDED"], f"events-{number}": ["FAILED"]}


def test_a_long_text_is_kept_in_tags_that_a_database_takes() -> None:
    text = ",".join(f"a-topic-with-a-long-name-{number}-0" for number in range(1000))
    tags = as_tags("keptlog/failed", text) | {"keptlog/other": "1"}
    assert max(map(len, tags.values())) <= 2000
    assert tag_text(tags, "keptlog/failed") == text
    assert as_tags("keptlog/failed", "users-0") == {"keptlog/failed": "users-0"}
    assert tag_text({"keptlog/failed.1": "x"}, "keptlog/failed") is None
