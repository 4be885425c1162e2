"""A code location loads from the file that the sensor keeps, and else asks the catalog."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from keptlog.dagster.assets.asset_topic import AssetSource, AssetTopic
from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.orchestration.seen import Seen
from keptlog.dagster.orchestration.state_file import FRESH_MS, StateFile
from keptlog.dagster.resources.log_store import LogStoreResource
from tests.orchestration.conftest import NOW_MS, TOPICS, Requests, World

NOTHING = (0, 0)
OF_HOME = 2
"""Assets that a home has, and not a topic: erasures, and how its logs stand."""


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading has the clock of the world."""
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))


@pytest.fixture
def kept(many: World, requests: Requests) -> World:
    """A home whose sensor has ticked; nobody in this process has looked at it since."""
    tick(many)
    many.reopen()
    requests.since()
    return many


def tick(world: World) -> str:
    """What the sensor of freshly loaded definitions says."""
    return world.skips(world.defs.get_repository_def().get_sensor_def("topics_sensor"))


def state_of(world: World) -> StateFile:
    state = StateFile.of(world.log_store)
    assert state
    return state


def shown(world: World) -> set[str]:
    return {key.to_user_string() for key in world.defs.resolve_all_asset_keys()}


def test_loading_asks_nothing(kept: World, requests: Requests) -> None:
    before = {spec.key: (spec.metadata, spec.description) for spec in kept.defs.resolve_all_asset_specs()}

    assert requests.since() == NOTHING
    state_of(kept).path.unlink()
    assert {spec.key: (spec.metadata, spec.description) for spec in kept.defs.resolve_all_asset_specs()} == before
    assert requests.since() != NOTHING


def test_loading_works_while_the_home_is_unreachable(kept: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogStoreResource, "_open", broken)

    assert len(shown(kept)) == 2 * TOPICS + OF_HOME


def test_without_a_file_the_home_is_looked_at(many: World, requests: Requests) -> None:
    assert not state_of(many).path.exists()

    assert len(shown(many)) == 2 * TOPICS + OF_HOME

    assert requests.since() != NOTHING
    assert not state_of(many).path.exists()  # nobody would keep it


@pytest.mark.parametrize("age_ms", [FRESH_MS + 1, -FRESH_MS - 1])
def test_a_file_that_nobody_keeps_is_not_believed(kept: World, requests: Requests, age_ms: int) -> None:
    kept.topic("new")
    at(state_of(kept).path, NOW_MS - age_ms)
    kept.reopen()

    assert "new/clean" in shown(kept)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:0],
        lambda content: content[:-40],
        lambda content: content.replace(b"topic-7", b"topic-X", 1),
        lambda content: b"\xff" + content,
    ],
)
def test_a_damaged_file_is_named_and_the_catalog_is_asked(
    kept: World, requests: Requests, caplog: pytest.LogCaptureFixture, damage: Any
) -> None:
    path = state_of(kept).path
    path.write_bytes(damage(path.read_bytes()))
    at(path, NOW_MS)

    with caplog.at_level(logging.WARNING):
        assert len(shown(kept)) == 2 * TOPICS + OF_HOME

    assert requests.since() != NOTHING
    (said,) = [record.getMessage() for record in caplog.records if "state file" in record.getMessage()]
    assert str(path) in said
    assert tick(kept)
    kept.reopen()
    requests.since()
    assert len(shown(kept)) == 2 * TOPICS + OF_HOME
    assert requests.since() == NOTHING


def test_a_file_of_another_keptlog_counts_as_none(
    kept: World, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keptlog.dagster.orchestration.seen._VERSION", 99)

    assert len(shown(kept)) == 2 * TOPICS + OF_HOME

    assert requests.since() != NOTHING


def test_a_copied_home_and_another_selection_find_nothing_of_theirs(
    kept: World, tmp_path: Path, requests: Requests
) -> None:
    shutil.copytree(kept.path / "dagster", tmp_path / "copy" / "dagster", copy_function=shutil.copy2)
    copied = build_defs(tmp_path / "copy").resolve_all_asset_keys()
    few = build_defs(LogStoreResource(home=str(kept.path), topics=["topic-7"])).resolve_all_asset_keys()

    assert {key.to_user_string() for key in copied} == {"no_topics_yet"}
    assert {key.to_user_string() for key in few} == {"topic-7/clean", "topic-7/dirty", "erasures", "keptlog/health"}


def test_a_file_under_the_name_of_another_is_not_believed(
    kept: World, requests: Requests, caplog: pytest.LogCaptureFixture
) -> None:
    few = LogStoreResource(home=str(kept.path), topics=["topic-7"])
    theirs = StateFile.of(few)
    assert theirs
    shutil.copy2(state_of(kept).path, theirs.path)

    assert len(build_defs(few).resolve_all_asset_keys()) == 2 + OF_HOME

    assert "is not used" in caplog.text


def test_it_knows_the_configured_catalog_but_no_secret_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = state_of(world)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", "postgresql+psycopg2://lake:planted@db/lake?password=planted")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", "s3://bucket/warehouse")
    configured = state_of(world)

    assert configured.path != embedded.path
    assert "db/lake s3://bucket/warehouse" in configured.whose
    assert "planted" not in configured.whose


@pytest.mark.parametrize("password", ["planted#1", "planted/1", "planted?1", "planted[1", "1[]#planted"])
def test_it_has_no_part_of_a_password_whatever_is_in_that(
    world: World, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"postgresql+psycopg2://lake:{password}@db:1/lake")

    assert state_of(world).whose.endswith(" sql postgresql+psycopg2://db:1/lake")


def test_two_databases_that_differ_behind_a_hash_are_two(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PYICEBERG_CATALOG__KEPTLOG__URI", "postgresql+psycopg2://lake:planted@db/la#ke?password=planted"
    )

    assert state_of(world).whose.endswith(" sql postgresql+psycopg2://db/la#ke")

    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", "postgresql+psycopg2://db/lake#password=planted")

    assert "planted" not in state_of(world).whose

    # That of SQLite has no password, and its whole path tells it from others.
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", "sqlite:////la#ke=a/catalog.db?timeout=9")

    assert state_of(world).whose.endswith(" sql sqlite:////la#ke=a/catalog.db")


@pytest.mark.parametrize("uri", ["postgresql+psycopg2://lake:planted@[db/lake", "https://[catalog/"])
def test_there_is_none_of_a_catalog_whose_address_can_not_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", uri)

    assert StateFile.of(world.log_store) is None


def test_an_unreachable_home_is_shown_as_it_was(kept: World, monkeypatch: pytest.MonkeyPatch) -> None:
    at(state_of(kept).path, NOW_MS - 10 * FRESH_MS)
    monkeypatch.setattr(LogStoreResource, "_open", broken)

    specs = {spec.key.to_user_string(): spec for spec in kept.defs.resolve_all_asset_specs()}

    assert len(specs) == 2 * TOPICS + OF_HOME + 1
    assert "the disk is gone" in (specs["home_unreachable"].description or "")
    assert "as they were at" in (specs["home_unreachable"].description or "")
    monkeypatch.undo()
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
    kept.reopen()
    assert "home_unreachable" not in shown(kept)


def test_where_it_cannot_be_written_the_tick_goes_on(many: World) -> None:
    (many.path / "dagster").write_text("a file where the folder would be")

    assert "the asset graph is as the home is" in tick(many)
    assert len(shown(many)) == 2 * TOPICS + OF_HOME


def test_what_is_written_is_what_is_read(world: World) -> None:
    source = AssetSource("crm.users", "broker:9092")
    users = AssetTopic("users", 3, "s3://b/users", {"min.cleanable.dirty.ratio": 0.5}, source, "ü", ("team:crm",))
    seen = Seen((users, AssetTopic("orders")), {"broken": "why"}, 2, "gone")

    assert state_of(world).keep(seen, NOW_MS) is None

    stored = state_of(world).read()
    assert stored
    assert (stored.seen, stored.kept_ms) == (seen, NOW_MS)


def at(path: Path, time_ms: int) -> None:
    os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


def broken(self: LogStoreResource, *, is_tick: bool = False) -> Any:  # as what it stands for
    raise OSError("the disk is gone")


def test_a_fixed_time_that_is_none_is_told_by_an_asset_and_hides_no_topic(
    kept: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPTLOG_NOW_MS", "yesterday")

    specs = {spec.key.to_user_string(): spec for spec in kept.defs.resolve_all_asset_specs()}

    assert "KEPTLOG_NOW_MS='yesterday' is not a whole number" in (specs["home_unreachable"].description or "")
    assert len(specs) == 2 * TOPICS + OF_HOME + 1
