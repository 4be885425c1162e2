"""Loading a code location costs as few requests as it can: each topic is read once, and not at all by a run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.definitions.reconstruct import (
    ReconstructableRepository,
    initialize_repository_def_from_pointer,
)
from dagster._core.definitions.repository_definition import RepositoryLoadData
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._grpc.server import LoadedRepositories

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.assets.sections import clean_section
from keptlog.dagster.orchestration import topic_assets
from keptlog.dagster.orchestration.definitions import build_defs
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.passes import observer
from tests.orchestration.conftest import TOPICS, Requests, World

MODULE = "keptlog.dagster.orchestration.definitions"


def paths(repository: dg.RepositoryDefinition) -> set[str]:
    return {key.to_user_string() for key in repository.assets_defs_by_key}


def test_a_code_location_imports_what_its_runs_need_when_they_need_it() -> None:
    large = ("confluent_kafka", "pandas", "pyiceberg.table", "requests", "sqlalchemy")
    code = f"import sys, {MODULE}; print([name for name in {large} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_topic_that_nobody_has_looked_at_is_read_once(many: World, requests: Requests) -> None:
    assert len(many.defs.resolve_all_asset_keys()) == 2 * TOPICS + 2

    queries, files = requests.since()
    assert queries <= TOPICS + 8
    assert files == TOPICS


def test_what_was_looked_at_before_is_not_read_again(many: World, requests: Requests) -> None:
    first = {spec.key: spec.metadata for spec in many.defs.resolve_all_asset_specs()}
    many.reopen()
    requests.since()

    assert {spec.key: spec.metadata for spec in many.defs.resolve_all_asset_specs()} == first

    queries, files = requests.since()
    assert queries <= 5
    assert files == 0


@pytest.fixture
def load_data(many: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[RepositoryLoadData]:
    """What a code server that has loaded the home hands on to its runs; a run begins where the fixture ends."""
    monkeypatch.setenv("KEPTLOG_HOME", str(many.path))
    before = DefinitionsLoadContext._instance
    loaded = initialize_repository_def_from_pointer(ReconstructableRepository.for_module(MODULE, "defs").pointer)
    assert loaded.repository_load_data
    many.reopen()
    yield loaded.repository_load_data
    DefinitionsLoadContext._instance = before


def test_what_a_code_server_asks_for_twice_is_made_once(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(many.path))
    made: list[str] = []

    def counting(mount: Mount, topic: AssetTopic, name: str) -> dg.AssetsDefinition:
        made.append(topic.name)
        return clean_section(mount, topic, name)

    monkeypatch.setattr(topic_assets, "clean_section", counting)
    module = LoadableTargetOrigin(executable_path=sys.executable, module_name=MODULE)

    with DefinitionsLoadContext.scoped(DefinitionsLoadContext(DefinitionsLoadType.INITIALIZATION)):
        loaded = LoadedRepositories(module, container_image=None, entry_point=["dagster"], container_context=None)

    (repository,) = loaded.definitions_by_name.values()
    assert "topic-7/clean" in paths(repository)
    assert len(made) == TOPICS


def test_a_topic_that_was_altered_between_is_made_anew(many: World) -> None:
    before = len(many.defs.resolve_all_asset_specs())
    many.store.alter_topic("topic-7", {"min.compaction.lag.ms": "60000"})
    many.reopen()

    specs = {spec.key.to_user_string(): spec for spec in many.defs.resolve_all_asset_specs()}

    assert specs["topic-7/dirty"].metadata["min.compaction.lag.ms"] == 60_000
    assert len(specs) == before


def in_a_run(load_data: RepositoryLoadData) -> dg.RepositoryDefinition:
    return ReconstructableRepository.for_module(MODULE, "defs").with_repository_load_data(load_data).get_definition()


def test_a_run_asks_nothing_before_it_begins(load_data: RepositoryLoadData, requests: Requests) -> None:
    requests.since()

    repository = in_a_run(load_data)

    assert requests.since() == (0, 0)
    assert paths(repository) == {f"topic-{n}/{part}" for n in range(TOPICS) for part in ("dirty", "clean")} | {
        "erasures",
        "keptlog/health",
    }
    assert repository.has_job("clean_logs")


def test_a_run_loads_although_its_home_is_gone_by_then(
    many: World, load_data: RepositoryLoadData, requests: Requests
) -> None:
    many.path.rename(many.path.with_name("elsewhere"))

    assert "topic-7/clean" in paths(in_a_run(load_data))


def test_a_run_whose_code_server_was_of_another_version_looks_by_itself(
    load_data: RepositoryLoadData, requests: Requests
) -> None:
    ((name, value),) = load_data.reconstruction_metadata.items()
    other = load_data._replace(reconstruction_metadata={name: type(value)('{"of": "another version"}')})
    requests.since()

    assert "topic-7/clean" in paths(in_a_run(other))

    assert requests.since() > (0, 0)


def test_every_topic_is_an_asset_though_one_look_has_no_time_for_all(
    many: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "READING_MS", 5)
    looks: list[int] = []
    really = observer.Observer.look

    def look(each: observer.Observer, now_ms: int) -> observer.Overview:
        looks.append(now_ms)
        return really(each, now_ms)

    monkeypatch.setattr(observer.Observer, "look", look)

    assert len(many.defs.resolve_all_asset_keys()) == 2 * TOPICS + 2
    assert len(looks) > 1


def test_where_reading_takes_too_long_an_asset_says_how_much_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "home", dg.DagsterInstance.ephemeral())
    world.topic("users")
    world.reopen()
    monkeypatch.setattr(observer, "READING_MS", 0)
    monkeypatch.setattr(f"{MODULE.rpartition('.')[0]}.loading.LOADING_MS", 0)

    specs = build_defs(LogStoreResource(home=str(world.path))).resolve_all_asset_specs()

    (notice,) = [spec for spec in specs if spec.key == dg.AssetKey(["topics_to_be_read"])]
    assert "1 topic" in (notice.description or "")
    assert "reload" in (notice.description or "").lower()
