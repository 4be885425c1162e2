"""Two homes with equal topics in one code location, beside what a project has of its own: none disturbs another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from keptlog.dagster import DagsterKeptlogTranslator, KeptlogSectionProps, LogStoreResource, Section, build_defs
from keptlog.dagster.orchestration.definitions import MountOptions
from keptlog.dagster.resources.clock import ClockResource
from keptlog.errors import InvalidConfig
from keptlog.home import open_home
from tests.orchestration.conftest import HOUR_MS, World, logs_of
from tests.orchestration.ingesting import InProcessSpark
from tests.orchestration.instance import fresh_instance

HOMES = ("crm", "sales")


class TablesOnly(dg.IOManager):
    """A project's IO manager that knows nothing but tables."""

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        raise TypeError(f"{context.name} is no table: {type(obj).__name__}")

    def load_input(self, context: dg.InputContext) -> object:
        raise TypeError(f"there is no table {context.name}")


@dg.asset
def orders() -> None:
    """What the project makes itself."""


@dg.op(name="plan")
def projects_plan() -> int:
    return 1


@dg.job
def purge() -> None:
    """The project's own, with an op that is called like one of keptlog's."""
    projects_plan()


@dataclass
class Project:
    """A project that has merged two homes."""

    worlds: dict[str, World]

    @property
    def defs(self) -> dg.Definitions:
        own = dg.Definitions(
            assets=[orders],
            jobs=[purge],
            resources={
                "spark": "ours",
                "clock": "ours",
                "kafka": "ours",
                "log_store": "ours",
                "io_manager": TablesOnly(),
            },
            executor=dg.multiprocess_executor,
        )
        return dg.Definitions.merge(own, *(self.of(name) for name in HOMES))

    def of(self, name: str) -> dg.Definitions:
        world = self.worlds[name]
        resources = {"spark": InProcessSpark(spark_config={}), "clock": ClockResource(now_ms=world.now_ms)}
        return build_defs(world.path, resources, name_prefix=name, key_prefix=name)

    def tick(self, sensor: str) -> dg.SensorResult:
        """Let a sensor of the merged definitions judge, in the repository that they make."""
        return ticked(self.defs, sensor, self.worlds["crm"].instance)

    def run(self, job: str, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        found = self.defs.resolve_job_def(job)
        return found.execute_in_process(
            run_config=request.run_config, instance=self.worlds["crm"].instance, raise_on_error=False
        )


def ticked(defs: dg.Definitions, sensor: str, instance: dg.DagsterInstance) -> dg.SensorResult:
    """What a sensor of some definitions finds, as the daemon would have it look."""
    definition = defs.get_repository_def().get_sensor_def(sensor)
    with dg.build_sensor_context(instance=instance, resources=defs.resources, sensor_name=sensor) as context:
        data = definition.evaluate_tick(context)
    return dg.SensorResult(
        run_requests=data.run_requests, skip_reason=data.skip_message, asset_events=list(data.asset_events)
    )


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with fresh_instance() as instance:
        made = Project({name: World(tmp_path / name, instance) for name in HOMES})
        for world in made.worlds.values():
            world.topic("users")
            world.append("users", ("a", "1"), ("a", "2"))
        yield made


def test_they_load_beside_a_project_with_the_same_names(project: Project) -> None:
    dg.Definitions.validate_loadable(project.defs)

    keys = {key.to_user_string() for key in project.defs.resolve_all_asset_keys()}
    assert keys == {"orders"} | {
        f"{home}/{each}" for home in HOMES for each in ("users/dirty", "users/clean", "erasures", "keptlog/health")
    }
    jobs = {job.name for job in project.defs.get_repository_def().get_all_jobs()}
    assert {"purge", "crm_purge", "sales_purge", "crm_clean_logs", "sales_clean_logs"} <= jobs
    for home in HOMES:
        assert f"{home}_log_cleaner" in project.defs.resolve_job_def(f"{home}_clean_logs").graph.pools


def test_no_topic_has_a_name_that_keeps_another_home_or_an_asset_of_the_project_from_loading(tmp_path: Path) -> None:
    """Ops of one name keep a whole code location from loading, and topics come when nobody looks."""
    with fresh_instance() as instance:
        for home, topics in {"crm": ("eu.users", "eu-users"), "crm_eu": ("users",)}.items():
            for topic in topics:
                World(tmp_path / home, instance).topic(topic)
    homes = [build_defs(tmp_path / home, name_prefix=home, key_prefix=home) for home in ("crm", "crm_eu")]

    @dg.asset
    def crm_eu_users__clean() -> None:
        """One as dbt names it."""

    @dg.asset(key=["crm_eu_users", "clean"])
    def of_the_project() -> None:
        """Its op is called like the other's, so only one of them is in a code location."""

    for own in (crm_eu_users__clean, of_the_project):
        defs = dg.Definitions.merge(dg.Definitions([own]), *homes)
        defs.get_repository_def().load_all_definitions()
        keys = {key.to_user_string() for key in defs.resolve_all_asset_keys()}
        assert {"crm/eu.users/clean", "crm/eu-users/clean", "crm_eu/users/clean", own.key.to_user_string()} <= keys


def test_each_sensor_has_its_own_home_cleaned_and_tells_of_its_own_assets(project: Project) -> None:
    (request,) = project.tick("crm_dirty_ratio_sensor").run_requests or ()
    assert logs_of(request) == ["users-0"]

    assert project.run("crm_clean_logs", request).success

    assert project.worlds["crm"].records("users") == [(1, b"a", b"2")]
    assert len(project.worlds["sales"].records("users")) == 2
    instance = project.worlds["crm"].instance
    assert instance.get_materialized_partitions(dg.AssetKey(["crm", "users", "clean"])) == {"users-0"}
    assert not instance.get_materialized_partitions(dg.AssetKey(["sales", "users", "clean"]))
    assert [pool.name for pool in instance.event_log_storage.get_pool_limits()] == ["crm_log_cleaner"]
    told = project.tick("sales_dirty_ratio_sensor").asset_events
    assert [event.asset_key.path for event in told] == [["sales", "users", "dirty"], ["sales", "users", "clean"]]


@pytest.mark.parametrize("kind", ["job", "materialization"])
def test_a_clean_of_one_home_keeps_nothing_waiting_in_the_other(project: Project, kind: str) -> None:
    instance = project.worlds["crm"].instance
    if kind == "job":
        instance.create_run_for_job(project.defs.resolve_job_def("crm_clean_logs"), status=dg.DagsterRunStatus.STARTED)
    else:
        everything = project.defs.resolve_implicit_global_asset_job_def()
        selected = everything.get_subset(asset_selection={dg.AssetKey(["crm", "users", "clean"])})
        instance.create_run_for_job(
            selected, status=dg.DagsterRunStatus.STARTED, asset_selection=frozenset(selected.asset_selection or ())
        )

    assert "users-0 is being cleaned" in _why(project.tick("crm_dirty_ratio_sensor"))
    assert project.tick("sales_dirty_ratio_sensor").run_requests


def test_a_run_of_the_projects_own_job_of_a_name_is_none_of_ours(project: Project) -> None:
    instance = project.worlds["crm"].instance
    instance.create_run_for_job(purge, status=dg.DagsterRunStatus.STARTED)

    assert project.run("crm_purge", dg.RunRequest()).success
    assert project.tick("crm_dirty_ratio_sensor").run_requests


def _why(result: dg.SensorResult) -> str:
    reason = result.skip_reason
    return (reason.skip_message if isinstance(reason, dg.SkipReason) else reason) or ""


def test_a_resource_that_is_given_is_the_one_that_is_used_everywhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEPTLOG_SPARK_MASTER", raising=False)
    world.topic("users")
    (world.path / "kafka.properties").write_text("bootstrap.servers=there:9092\n")
    (world.path / "spark.properties").write_text("spark.remote=sc://127.0.0.1:1\n")
    world.append("users", ("a", "1"), ("a", "2"))
    given = world.log_store

    defs = build_defs(resources={"log_store": given, "clock": ClockResource(now_ms=world.now_ms)})

    assert dg.AssetKey(["users", "clean"]) in defs.resolve_all_asset_keys()
    resources = defs.resources or {}
    assert resources["kafka"].settings(given).names == ("bootstrap.servers",)
    assert "no Spark Connect server answers at 127.0.0.1:1" in _why(ticked(defs, "dirty_ratio_sensor", world.instance))
    assert defs.get_job_def("purge").execute_in_process(instance=world.instance).success


def test_patterns_choose_the_topics_of_assets_sensors_and_jobs(world: World) -> None:
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    for topic in ("crm.users", "sales.users"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
    defs = build_defs(world.path, world.resources, topics="crm.*")

    assert {key.path[0] for key in defs.resolve_all_asset_keys()} == {"crm.users", "erasures", "keptlog"}
    (request,) = ticked(defs, "dirty_ratio_sensor", world.instance).run_requests or ()
    assert logs_of(request) == ["crm.users-0"]
    assert defs.get_job_def("clean_logs").execute_in_process(instance=world.instance).success
    assert [len(world.records(topic)) for topic in ("crm.users", "sales.users")] == [1, 2]
    named = {"ops": {"plan": {"config": {"logs": ["sales.users"]}}}}
    result = defs.get_job_def("clean_logs").execute_in_process(named, instance=world.instance, raise_on_error=False)
    assert not result.success


class OurTranslator(DagsterKeptlogTranslator):
    def get_asset_key(self, topic: str, section: Section) -> dg.AssetKey:
        return dg.AssetKey([section.value, *topic.split(".")])

    def get_asset_spec(self, props: KeptlogSectionProps) -> dg.AssetSpec:
        spec = super().get_asset_spec(props)
        return spec.replace_attributes(owners=["team:lake"]).merge_attributes(tags={"section": props.section.value})


def spec_of(defs: dg.Definitions, *path: str) -> dg.AssetSpec:
    return next(spec for spec in defs.resolve_all_asset_specs() if spec.key == dg.AssetKey(list(path)))


def test_a_translator_decides_what_is_shown_and_all_events_follow(world: World) -> None:
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("crm.users")
    world.append("crm.users", ("a", "1"), ("a", "2"))
    defs = build_defs(world.path, world.resources, translator=OurTranslator(), key_prefix="lake")
    clean = spec_of(defs, "lake", "clean", "crm", "users")

    assert (clean.owners, clean.tags["section"]) == (["team:lake"], "clean")
    assert [dep.asset_key for dep in clean.deps] == [dg.AssetKey(["lake", "dirty", "crm", "users"])]
    result = defs.get_job_def("clean_logs").execute_in_process(instance=world.instance)
    assert {event.asset_key for event in result.get_asset_materialization_events()} == {clean.key}
    assert {each.asset_key for each in result.get_asset_check_evaluations()} == {clean.key}


def test_a_translator_that_contradicts_itself_is_refused(world: World) -> None:
    class Contrary(DagsterKeptlogTranslator):
        def get_asset_spec(self, props: KeptlogSectionProps) -> dg.AssetSpec:
            return props.spec.replace_attributes(key="elsewhere")

    world.topic("users")
    with pytest.raises(Exception, match="say it in get_asset_key alone"):
        build_defs(world.path, translator=Contrary())


def test_groups_are_a_hierarchy_and_owners_are_by_pattern(world: World) -> None:
    for topic in ("crm.users", "users"):
        world.topic(topic)
    owners = {"crm.*": ["team:crm"], "*": ["lake@example.org"]}

    by_name = build_defs(world.path, owners=owners)
    by_prefix = build_defs(world.path, group_by="prefix", key_prefix="lake")

    assert spec_of(by_name, "crm.users", "clean").group_name == "crm/users"
    assert spec_of(by_name, "users", "clean").group_name == "users"
    assert spec_of(by_prefix, "lake", "crm.users", "dirty").group_name == "lake/crm"
    assert spec_of(by_prefix, "lake", "users", "dirty").group_name == "lake/keptlog"
    assert list(spec_of(by_name, "crm.users", "clean").owners) == ["team:crm"]
    assert list(spec_of(by_name, "users", "dirty").owners) == ["lake@example.org"]


def test_what_is_stored_with_a_topic_is_shown_unless_the_project_says_otherwise(world: World, tmp_path: Path) -> None:
    declared = tmp_path / "topics.yaml"
    declared.write_text(
        "topics:\n  users:\n    description: One for each <user>.\n    owners: [team:crm]\n"
        "    config: {cleanup.policy: compact}\n"
    )
    open_home(world.path).apply(declared)

    clean = spec_of(build_defs(world.path), "users", "clean")
    of_ours = spec_of(build_defs(world.path, owners=["team:ours"]), "users", "clean")

    assert list(clean.owners) == ["team:crm"]
    assert (clean.description or "").startswith("One for each \\<user>.\n\nThe latest record")
    assert list(of_ours.owners) == ["team:ours"]


def test_intervals_and_what_runs_from_the_start(world: World) -> None:
    intervals: dict[str, int | str] = {"dirty_ratio_sensor": 300, "purge_schedule": "0 * * * *"}
    defs = build_defs(world.path, name_prefix="crm_", intervals=intervals, sensors_on=["purge_schedule"])

    repository = defs.get_repository_def()

    assert repository.get_sensor_def("crm_dirty_ratio_sensor").minimum_interval_seconds == 300
    assert repository.get_schedule_def("crm_purge_schedule").cron_schedule == "0 * * * *"
    assert repository.get_schedule_def("crm_purge_schedule").default_status is dg.DefaultScheduleStatus.RUNNING
    assert {sensor.default_status for sensor in repository.sensor_defs} == {dg.DefaultSensorStatus.STOPPED}


WRONG: dict[str, tuple[MountOptions, str]] = {
    "a misspelt parameter": ({"topic": "crm.*"}, "build_defs knows no 'topic': did you mean topics?"),  # type: ignore[typeddict-unknown-key]
    "a misspelt sensor": ({"intervals": {"dirty_sensor": 5}}, "did you mean dirty_ratio_sensor?"),
    "a time that is none": ({"intervals": {"dirty_ratio_sensor": "often"}}, "give a sensor whole seconds"),
    "no key prefix": ({"key_prefix": ""}, "key_prefix has the part ''"),
    "a key prefix with a slash": ({"key_prefix": ["crm/eu"]}, "key_prefix has the part 'crm/eu'"),
    "one name and no list": ({"sensors_on": "purge_schedule"}, "sensors_on='purge_schedule': give a list of names"),
    "a time that Dagster can't show": ({"intervals": {"dirty_ratio_sensor": 2**31}}, "from 1 to 2147483647"),
    "a cron that is a number": ({"intervals": {"purge_schedule": 5}}, "give a schedule a cron expression"),
    "a name that Dagster refuses": ({"name_prefix": "crm-"}, "letters, digits and _ only"),
    "an unknown grouping": ({"group_by": "prefixes"}, "did you mean prefix?"),  # type: ignore[typeddict-item]
    "a sensor that is none": ({"sensors_on": ["purge"]}, "there is max_compaction_lag_sensor, dirty_ratio_sensor"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_one_line_that_says_what_to_do(tmp_path: Path, what: str) -> None:
    shown, told = WRONG[what]
    with pytest.raises(Exception, match=_escaped(told)) as error:
        build_defs(tmp_path, **shown)
    assert "\n" not in str(error.value)


def test_a_home_without_a_name_is_not_taken_for_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a variable of a program gives it that was never set."""
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path))
    with pytest.raises(Exception, match="home='' names no folder: give one, or leave it out for that of KEPTLOG_HOME"):
        build_defs("")


def test_resources_that_are_unknown_or_contradict_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="did you mean spark"):
        build_defs(tmp_path, {"sprak": 1})
    with pytest.raises(Exception, match="give one of the two"):
        build_defs(tmp_path, {"log_store": LogStoreResource()})


def _escaped(text: str) -> str:
    return text.replace("?", r"\?").replace("*", r"\*").replace("(", r"\(")


def test_a_home_may_be_named_by_a_variable(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topic("users")
    monkeypatch.setenv("CRM_HOME", str(world.path))

    defs = build_defs(LogStoreResource(home=dg.EnvVar("CRM_HOME")))

    assert dg.AssetKey(["users", "clean"]) in defs.resolve_all_asset_keys()
    assert defs.get_job_def("purge").execute_in_process(instance=world.instance).success


def test_a_home_named_by_a_variable_that_is_not_set_is_refused_and_no_other_takes_its_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")
    monkeypatch.setenv("KEPTLOG_HOME", str(world.path))
    monkeypatch.delenv("CRM_HOME", raising=False)
    with pytest.raises(InvalidConfig, match="variable CRM_HOME says, and that is not set"):
        build_defs(LogStoreResource(home=dg.EnvVar("CRM_HOME")))


def test_the_clean_section_is_a_table_to_dagster(world: World) -> None:
    world.more_resources["spark"] = InProcessSpark(spark_config={})
    world.topic("users", 2, min_cleanable_dirty_ratio="0")
    for partition in (0, 1):
        world.append("users", ("a", "1"), ("a", "2"), partition=partition, age_ms=2 * HOUR_MS)
    metadata = spec_of(world.defs, "users", "clean").metadata

    assert metadata["dagster/table_name"] == "keptlog.users"
    assert str(world.path) in metadata["dagster/uri"]
    meaning = {column.name: column.description for column in metadata["dagster/column_schema"].schema.columns}
    assert meaning.keys() >= {"partition", "offset", "key"}
    assert all(meaning.values()), "a newcomer reads what the columns are where they stand"
    assert "LogAppendTime" in str(meaning["timestamp_type"])
    result = world.clean("users-0")
    (event,) = [
        each for each in result.get_asset_materialization_events() if "records_in" in each.materialization.metadata
    ]
    numbers = event.materialization.metadata
    assert numbers["dagster/partition_row_count"].value == 1
    assert numbers["dagster/row_count"].value == 3
