"""The component: found, scaffolded and loaded by Dagster's own machinery, and the same as ``build_defs``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.component_scaffolding import scaffold_object
from dagster.components.core.package_entry import discover_package_objects
from dagster.components.testing.utils import DefsFolderSandbox, create_defs_folder_sandbox
from dagster_shared.yaml_utils import load_run_config_yaml

from keptlog.dagster import KeptlogComponent
from tests.orchestration.conftest import World
from tests.orchestration.test_mounts import spec_of, ticked

TYPE = "keptlog.dagster.KeptlogComponent"


@pytest.fixture
def sandbox() -> Iterator[DefsFolderSandbox]:
    with create_defs_folder_sandbox() as made:
        yield made


def written(sandbox: DefsFolderSandbox, attributes: str) -> Path:
    """A component's folder, with its ``defs.yaml`` as somebody writes it."""
    folder = sandbox.defs_folder_path / "topics"
    folder.mkdir()
    (folder / "defs.yaml").write_text(f"type: {TYPE}\nattributes:\n{attributes}")
    return folder


def test_it_is_what_dg_finds_in_the_package() -> None:
    found = {f"{key.namespace}.{key.name}": each for key, each in discover_package_objects(["keptlog.dagster"]).items()}

    assert found[TYPE] is KeptlogComponent
    model = KeptlogComponent.get_model_cls()
    assert model
    names = model.model_fields
    assert {"home", "topics", "key_prefix", "name_prefix", "group_by", "intervals", "sensors_on", "translation"} <= set(
        names
    )
    assert all(field.description for field in names.values())


def test_what_is_scaffolded_loads_as_it_is(
    sandbox: DefsFolderSandbox, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    monkeypatch.setenv("KEPTLOG_HOME", str(world.path))
    folder = sandbox.defs_folder_path / "topics"

    scaffold_object(folder, TYPE, '{"name_prefix": "crm"}', "yaml", sandbox.project_root)

    shown: Any = load_run_config_yaml((folder / "defs.yaml").read_text())
    assert shown == {"type": TYPE, "attributes": {"home": "{{ env.KEPTLOG_HOME }}", "name_prefix": "crm"}}
    with sandbox.load_component_and_build_defs(folder) as (_, defs):
        assert spec_of(defs, "users", "clean")
        assert defs.get_job_def("crm_purge")


def test_its_translation_is_heeded_by_assets_and_by_events(sandbox: DefsFolderSandbox, world: World) -> None:
    world.topic("crm.users")
    world.topic("sales.users")
    folder = written(
        sandbox,
        f"""\
  home: "{world.path}"
  topics: ["crm.*"]
  name_prefix: crm
  group_by: prefix
  intervals: {{dirty_ratio_sensor: 300}}
  sensors_on: [dirty_ratio_sensor]
  translation:
    key: "lake/{{{{ props.topic.name }}}}/{{{{ props.section }}}}"
    owners: ["team:crm"]
    tags: {{section: "{{{{ props.section }}}}"}}
""",
    )

    with sandbox.load_component_and_build_defs(folder) as (_, defs):
        clean = spec_of(defs, "lake", "crm.users", "clean")
        told = ticked(defs, "crm_dirty_ratio_sensor", world.instance).asset_events

        assert (list(clean.owners), clean.tags["section"], clean.group_name) == (["team:crm"], "clean", "crm")
        assert [dep.asset_key for dep in clean.deps] == [dg.AssetKey(["lake", "crm.users", "dirty"])]
        assert {event.asset_key for event in told if not isinstance(event, dg.AssetCheckEvaluation)} == {
            dg.AssetKey(["lake", "crm.users", section]) for section in ("dirty", "clean")
        }
        assert defs.get_repository_def().get_sensor_def("crm_dirty_ratio_sensor").minimum_interval_seconds == 300
        assert not [key for key in defs.resolve_all_asset_keys() if "sales.users" in key.path]


def test_its_translation_knows_the_settings_of_a_topic(sandbox: DefsFolderSandbox, world: World) -> None:
    world.topic("users")
    folder = written(
        sandbox,
        f"""\
  home: "{world.path}"
  translation:
    key_prefix: lake
    tags: {{policy: "{{{{ props.topic.settings['cleanup.policy'] }}}}"}}
    description: "{{{{ 'all' if 'all_logs' in props.spec.metadata else 'dirty' }}}} of {{{{ props.topic.name }}}}"
""",
    )
    with sandbox.load_component_and_build_defs(folder) as (_, defs):
        assert spec_of(defs, "lake", "users", "clean").tags["policy"] == "compact"
        assert spec_of(defs, "lake", "users", "clean").description == "all of users"
        assert ticked(defs, "dirty_ratio_sensor", world.instance)


def test_a_misspelt_attribute_is_told_with_its_file(sandbox: DefsFolderSandbox, world: World) -> None:
    folder = written(sandbox, f'  home: "{world.path}"\n  key_prefx: [crm]\n')

    with pytest.raises(Exception, match=r"defs\.yaml") as error, sandbox.load_component_and_build_defs(folder):
        pytest.fail("it was taken")

    told = str(error.value.__cause__)
    assert "key_prefx" in told
    assert "defs.yaml:4" in told


def test_two_components_and_a_projects_own_definitions_load_together(sandbox: DefsFolderSandbox, world: World) -> None:
    world.topic("users")
    for name in ("crm", "sales"):
        folder = sandbox.defs_folder_path / name
        folder.mkdir()
        attributes = f'  home: "{world.path}"\n  name_prefix: {name}\n  key_prefix: [{name}]\n'
        (folder / "defs.yaml").write_text(f"type: {TYPE}\nattributes:\n{attributes}")

    with sandbox.build_all_defs() as defs:
        dg.Definitions.validate_loadable(defs)
        assert {key.path[0] for key in defs.resolve_all_asset_keys()} == {"crm", "sales"}


def test_a_home_that_an_unset_variable_is_to_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the home of KEPTLOG_HOME would take its place, whoever's that is."""
    for variable in ("CRM_HOME", "KEPTLOG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(Exception, match=r"home: \{\{ env.CRM_HOME \}\} says nothing: set that variable"):
        KeptlogComponent.resolve_from_yaml('home: "{{ env.CRM_HOME }}"')
    assert KeptlogComponent.resolve_from_yaml('home: "{{ env.KEPTLOG_HOME }}"').home is None
    monkeypatch.setenv("CRM_HOME", "/srv/crm")
    assert KeptlogComponent.resolve_from_yaml('home: "{{ env.CRM_HOME }}"').home == "/srv/crm"
