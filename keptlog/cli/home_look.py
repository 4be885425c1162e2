"""Everything that can be seen of a home without Dagster: what ``keptlog notify`` and ``keptlog metrics`` tell.

    logs        from the catalog, or from what was remembered of it (``keptlog.passes.observer``)
    checks      what verify has left in the home
    brokers     where topics are ingested from
    Spark       whether the server or cluster that runs use answers
    sensors     when they ticked last

Each of them may not answer, and costs only itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, first_line
from keptlog.log.told.conditions import Evidence, Matter, Sighting, Thresholds
from keptlog.notify.ticks import last_ticks
from keptlog.passes.observer import Overview
from keptlog.passes.watch import (
    home_sighting,
    ingest_evidence,
    spark_evidence,
    tick_evidence,
    unknown_evidence,
    why_nothing_is_known,
    without_catalog,
)
from keptlog.settings import require_entry, spark_master, spark_settings
from keptlog.table.catalogs.home_folder import require_home

if TYPE_CHECKING:
    from keptlog.ingest.lag import LagScan, LagScanner


class HomeSeen(NamedTuple):
    """What one look has found."""

    sighting: Sighting
    overview: Overview | None = None
    """Null if the catalog, or the storage of all topics, did not answer, no catalog is there, or settings are wrong."""
    lags: LagScan | None = None
    """Null where no topic has a broker, or nobody could ask."""
    why_unknown: str | None = None
    """Why nothing is known of the logs, where no catalog is."""
    outage: StorageUnavailable | InvalidConfig | None = None
    """What the catalog, or the storage of all topics, says instead of an answer; the sighting has it too.

    Or which settings can't be accepted: with them no log can be cleaned either.
    """


def tell_no_topics(home: Path, seen: HomeSeen) -> None:
    """Say on stderr that a home has no topic, or that nobody can tell: it may be another one that is meant."""
    overview = seen.overview
    if seen.why_unknown:
        click.echo(f"keptlog: {seen.why_unknown}", err=True)
    if overview and not (overview.locations or overview.unreadable or overview.behind):
        click.echo(f"keptlog: there is no topic in {home}: is KEPTLOG_HOME the one you mean?", err=True)


@dataclass
class Brokers:
    """The clusters that a home's topics are ingested from, asked once or again and again."""

    home: Path
    _scanner: LagScanner | None = field(default=None, init=False)

    def ask(self, now_ms: int) -> tuple[LagScan | None, Evidence]:
        """What they say of the topics, null where none can be asked; and what that shows."""
        try:
            # They take long to import, and confluent_kafka may not be there.
            from keptlog.home import client_settings, monotonic_ms, open_home  # noqa: PLC0415
            from keptlog.ingest.lag import LagScanner  # noqa: PLC0415

            if self._scanner is None:
                self._scanner = LagScanner(open_home(self.home).store, monotonic_ms)
            scan = self._scanner.scan(client_settings(self.home), now_ms)
        except (KeptlogError, ModuleNotFoundError) as error:
            why = f"whether ingests are stopped is not known: {first_line(error)}"
            return None, unknown_evidence(Matter.INGEST, why)
        return scan, ingest_evidence(scan)


@dataclass
class HomeLook:
    """Looks at a home, once or again and again; ``observe`` looks at its logs."""

    home: Path
    limits: Thresholds
    observe: Callable[[int], Overview]

    def look(self, now_ms: int) -> HomeSeen:
        """All that can be seen now; of a home that may not be entered that it can't be."""
        try:
            require_entry(self.home)
        except StorageUnavailable as error:
            return HomeSeen(without_catalog(error, now_ms), why_unknown=str(error))
        lags: LagScan | None = None

        def asked() -> Evidence:
            nonlocal lags
            lags, evidence = self._brokers.ask(now_ms)
            return evidence

        overview = why_unknown = outage = None
        try:
            overview = self._overview(now_ms)
        except (StorageUnavailable, InvalidConfig) as error:
            sighting, outage = without_catalog(error, now_ms), error
        else:
            sighting = home_sighting(self.home, overview, self.limits, asked)
            why_unknown = why_nothing_is_known(self.home, overview)
            if why_unknown:
                sighting = sighting.with_evidence(Evidence(unknown={Matter.CATALOG: why_unknown}))
        sighting = sighting.with_evidence(_spark(self.home))
        sighting = sighting.with_evidence(tick_evidence(self.home, now_ms, self.limits))
        return HomeSeen(sighting, None if why_unknown else overview, lags, why_unknown, outage)

    @cached_property
    def _brokers(self) -> Brokers:
        return Brokers(self.home)

    def _overview(self, now_ms: int) -> Overview:
        """How the logs stand. A home that is not made yet has none, and one that has lost its catalog is an outage.

        Raises:
            StorageUnavailable: the catalog does not answer, or the storage of not one topic does.
            InvalidConfig: settings with which nothing can be opened.
        """
        with contextlib.suppress(InvalidConfig):
            require_home(self.home)
        overview = self.observe(now_ms)
        if overview.outage:
            raise overview.outage
        return overview


def _spark(home: Path) -> Evidence:
    """Whether the Spark that runs use answers; one that each process starts for itself is never down.

    A home whose sensors tick has runs of Dagster. Where this process names no Spark, those may name one, and whether
    that answers is for its sensor to say.
    """
    try:
        settings = spark_settings(home)
        master = spark_master() or settings.get("spark.remote") or settings.get("spark.master")
        if master:
            from keptlog.spark.master import require_answer  # noqa: PLC0415  # it imports PySpark

            require_answer(master)
        elif _may_have_sensors(home):
            return Evidence()
    except (StorageUnavailable, InvalidConfig) as error:
        return spark_evidence(str(error))
    return spark_evidence(None)


def _may_have_sensors(home: Path) -> bool:
    try:
        return bool(last_ticks(home))
    except KeptlogError:  # which is told with the sensors
        return True
