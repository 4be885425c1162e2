"""A sensor that stands on the pages of the assets that it looks after.

Dagster lists a sensor on an asset's page where it asks for runs that materialize the asset's own selection, or an asset
job. Ours ask for runs of jobs that clean any logs, and so a page said "No automations found for this asset". What
Dagster's webserver is handed of a sensor has both, the jobs and a selection of assets (``SensorSnap``), and the page
goes by the selection. ``tests/orchestration/test_pages.py`` pins what is relied upon of Dagster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from dagster._core.definitions.target import ExecutableDefinition
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition


class SensorOfAssets(dg.SensorDefinition):
    """A sensor, and the assets on whose pages it is listed; what it asks for are runs of its jobs all the same."""

    def __init__(self, assets: Sequence[dg.AssetKey], **given: Any) -> None:
        super().__init__(**given)
        self._given = given
        self._keys = tuple(assets)

    @property
    def has_anonymous_job(self) -> bool:
        """Whether a selection of assets goes with the jobs."""
        return bool(self._keys)

    @property
    def job(self) -> UnresolvedAssetJobDefinition:
        """What the selection is read from; it is no job of the sensor's."""
        return dg.define_asset_job(f"{self.name}_assets", selection=dg.AssetSelection.assets(*self._keys))

    def with_attributes(
        self, *, jobs: Sequence[ExecutableDefinition] | None = None, metadata: Any = None
    ) -> SensorOfAssets:
        """A copy that has other jobs."""
        given = {**self._given, **({"metadata": metadata} if metadata is not None else {})}
        if jobs is not None:
            given = {**{name: each for name, each in given.items() if name != "job"}, "jobs": list(jobs)}
        return SensorOfAssets(self._keys, **given)
