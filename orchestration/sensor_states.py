"""Whether a mount's sensors are on, and when each ticked last, as the instance knows it: no restart loses that.

The instance stores a state once somebody has turned a sensor on or off, or once it has ticked because its code says so.
What the code says may have changed since, and of a sensor that was never on nothing is stored. So a sensor that nobody
has turned on or off is as its code says now, which is how Dagster's daemon takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.selector import RepositorySelector
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData

from keptlog.dagster.assets.mount import Tick


@dataclass(frozen=True)
class SensorState:
    """Of one sensor; its name has no prefix."""

    name: str
    is_on: bool
    last_tick_ms: int | None
    """When its last tick ended; null if none ever did."""


def sensor_states(tick: Tick, by_code: Mapping[str, dg.DefaultSensorStatus]) -> list[SensorState]:
    """Of these sensors, by what their code says; none where a tick does not know its place, as in a test."""
    context = tick.context
    if context.code_location_origin is None or context.repository_name is None:
        return []
    place = RepositorySelector(
        location_name=context.code_location_origin.location_name, repository_name=context.repository_name
    )
    states = context.instance.all_instigator_state(
        repository_selector_id=place.selector_id, instigator_type=InstigatorType.SENSOR
    )
    by_name = {state.instigator_name: state for state in states}
    found = [(name, default, by_name.get(tick.mount.name(name))) for name, default in by_code.items()]
    return [SensorState(name, _is_on(state, default), _last_tick_ms(state)) for name, default, state in found]


def _is_on(state: InstigatorState | None, by_code: dg.DefaultSensorStatus) -> bool:
    if state is None or state.status is InstigatorStatus.DECLARED_IN_CODE:
        return by_code is dg.DefaultSensorStatus.RUNNING
    return state.status is InstigatorStatus.RUNNING


def _last_tick_ms(state: InstigatorState | None) -> int | None:
    data = state.instigator_data if state else None
    if not isinstance(data, SensorInstigatorData) or data.last_tick_timestamp is None:
        return None
    return round(1000 * data.last_tick_timestamp)
