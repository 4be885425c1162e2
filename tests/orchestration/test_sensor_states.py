"""Whether a sensor is on is told as Dagster's daemon sees it: by what somebody clicked, else by the code."""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.execution.build_resources import wrap_resources_for_execution
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData

from keptlog.dagster.assets.mount import Mount
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.health_sensor import SHARED_MS, health_sensor
from keptlog.dagster.orchestration.jobs import HomeJobs
from keptlog.dagster.resources.spark import spark_resource
from keptlog.log.source import SourceIdentity
from tests.orchestration.conftest import World

PLACE = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__")
TICKED_MS = 3 * 86_400_000
"""Before now."""


def stored(world: World, status: InstigatorStatus) -> None:
    """What the instance knows of the dirty ratio sensor."""
    data = SensorInstigatorData(last_tick_timestamp=(world.now_ms - TICKED_MS) / 1000)
    origin = PLACE.get_instigator_origin("dirty_ratio_sensor")
    world.instance.add_instigator_state(InstigatorState(origin, InstigatorType.SENSOR, status, data))


def told(world: World, on: bool | Collection[str] | None) -> dict[str, object]:
    """The numbers and texts of the health of a mount whose sensors are on or off by its code."""
    mount = Mount()
    sensor = health_sensor(Automation(mount, HomeJobs.of(mount), on=on))
    # ``build_sensor_context`` gives none a place.
    context = dg.SensorEvaluationContext(
        instance_ref=None,
        instance=world.instance,
        repository_name=PLACE.repository_name,
        code_location_origin=PLACE.code_location_origin,
        resources=wrap_resources_for_execution(
            {"log_store": world.log_store, "spark": spark_resource(), **world.resources}
        ),
    )
    with context:
        result: object = sensor._raw_fn(context)
    assert isinstance(result, dg.SensorResult)
    (event,) = result.asset_events
    return {name: value.value for name, value in event.metadata.items()}


@pytest.mark.parametrize(
    ("on", "status", "shown"),
    [
        (None, InstigatorStatus.DECLARED_IN_CODE, "on, ticked 3 d ago"),
        (None, InstigatorStatus.STOPPED, "off, ticked 3 d ago"),
        (None, None, "on, never ticked"),
        (["health_sensor"], InstigatorStatus.DECLARED_IN_CODE, "off, ticked 3 d ago"),
        (["health_sensor"], InstigatorStatus.RUNNING, "on, ticked 3 d ago"),
        (["health_sensor"], None, "off, never ticked"),
    ],
    ids=[
        "on by the code",
        "turned off by hand",
        "just installed",
        "was on by the code before",
        "turned on by hand",
        "never on",
    ],
)
def test_a_sensor_is_on_as_somebody_has_clicked_and_as_the_code_says_where_nobody_has(
    world: World, on: Collection[str] | None, status: InstigatorStatus | None, shown: str
) -> None:
    if status:
        stored(world, status)
    metadata = told(world, on)
    assert f"* dirty_ratio_sensor: {shown}" in str(metadata["sensors"]).splitlines()
    age_ms = TICKED_MS if status and shown.startswith("on") else None
    assert metadata.get("last_tick_age_ms") == age_ms


@pytest.mark.parametrize("status", [InstigatorStatus.DECLARED_IN_CODE, None])
def test_a_due_log_whose_sensor_is_off_says_so(world: World, status: InstigatorStatus | None) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    if status:
        stored(world, status)
    assert "dirty_ratio_sensor is off" in str(told(world, ["health_sensor"])["worst"]).replace("\\", "")


def test_a_lag_that_nobody_has_asked_for_says_whether_the_sensor_that_asks_is_off(world: World) -> None:
    """It said that the sensor has not asked lately, and in the list below it when it had ticked: in another process."""
    world.topic("users")
    world.store.ingest("users", [], SourceIdentity("users", None, "127.0.0.1:9"), 1, "knows")

    off, on = told(world, ["health_sensor"]), told(world, None)

    assert off["not_looked_at"] == "* the consumer lag of 1 ingested topic: ingest_lag_sensor is off"
    why = "ingest_lag_sensor has asked no broker in this process of Dagster within 5 min; its next tick does, or says"
    assert why in str(on["not_looked_at"])


def test_of_a_topic_without_a_broker_no_lag_is_waited_for(world: World) -> None:
    """As `import kafka-logs` makes them: the page said for ever that a lag was not looked at, and there is none."""
    world.topic("users")
    world.store.ingest("users", [], SourceIdentity("users"), 1, "imported")

    assert told(world, None)["not_looked_at"] == "nothing"

    world.topic("orders")
    world.store.ingest("orders", [], SourceIdentity("orders", None, "127.0.0.1:9"), 1, "knows")
    world.now_ms += 2 * SHARED_MS
    assert "the consumer lag of 1 ingested topic: " in str(told(world, None)["not_looked_at"])
