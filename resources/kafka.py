"""Kafka brokers: how they are reached, and how far behind one a topic may be before somebody asks for a run.

The client's settings are those of the command line, ``kafka.properties`` in the home and ``KEPTLOG_KAFKA_…``, read each
time a tick or a run needs them. This resource's own configuration, which Dagster stores and shows, has none of them:
some are secret. Brokers are never asked while a code location is loaded.

The other two settings work as Kafka's ``fetch.min.bytes`` and ``fetch.max.wait.ms`` do for a consumer: wait until there
is enough to be worth a run, but not for ever.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import InvalidConfig
from keptlog.home import client_settings
from keptlog.ingest.lag import LagThreshold

if TYPE_CHECKING:
    from keptlog.kafka_client.settings import ClientSettings

MIN_LAG = "KEPTLOG_INGEST_MIN_LAG"
MAX_WAIT_MS = "KEPTLOG_INGEST_MAX_WAIT_MS"


class KafkaResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Brokers that topics are ingested from. Of which home they are, whoever asks says."""

    min_lag: int | None = Field(
        default=None,
        ge=1,
        description="How many offsets a topic must be behind before the sensor asks for a run; "
        "KEPTLOG_INGEST_MIN_LAG, or 1, if it is not given.",
    )
    max_wait_ms: int | None = Field(
        default=None,
        ge=0,
        description="How long it may be behind by fewer, in ms; KEPTLOG_INGEST_MAX_WAIT_MS, or five minutes.",
    )

    @property
    def threshold(self) -> LagThreshold:
        """When a run is worth it; raises InvalidConfig if a variable is no such number."""
        return LagThreshold(
            _number(MIN_LAG, 1, minimum=1) if self.min_lag is None else self.min_lag,
            _number(MAX_WAIT_MS, 300_000, minimum=0) if self.max_wait_ms is None else self.max_wait_ms,
        )

    def settings(self, log_store: LogStoreResource) -> ClientSettings:
        """How brokers of a home's topics are reached, read anew.

        Raises:
            InvalidConfig: a setting is refused, or the file can't be read.
        """
        return client_settings(log_store.path)


def _number(variable: str, default: int, *, minimum: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < minimum:
        raise InvalidConfig(f"{variable}={text} is no whole number from {minimum} up; set one, or unset it")
    return int(text)
