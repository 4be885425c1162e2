"""Whether a mount's sensors are on, and when each ticked last, as the instance knows it: no restart loses that."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.selector import RepositorySelector
from dagster._core.scheduler.instigation import SensorInstigatorData

from keptlog.dagster.assets.mount import Tick


@dataclass(frozen=True)
class SensorState:
    """Of one sensor; its name has no prefix."""

    name: str
    is_on: bool
    last_tick_ms: int | None
    """When its last tick ended; null if none ever did."""


def sensor_states(tick: Tick, names: Collection[str]) -> list[SensorState]:
    """Those of these sensors that the daemon has ever seen; none where a tick does not know its place, as in a test."""
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
    found = [(name, by_name.get(tick.mount.name(name))) for name in names]
    return [SensorState(name, state.is_running, _last_tick_ms(state.instigator_data)) for name, state in found if state]


def _last_tick_ms(data: object) -> int | None:
    if not isinstance(data, SensorInstigatorData) or data.last_tick_timestamp is None:
        return None
    return round(1000 * data.last_tick_timestamp)
