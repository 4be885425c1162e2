"""A home: where the topics are, and what the broker settings say.

``KEPTLOG_HOME`` (default ``./.keptlog``) is a folder with an embedded catalog, enough for one machine. A PyIceberg
catalog named ``keptlog``, configured PyIceberg's own way, takes its place when there is one.

Broker settings are Kafka's (``log.cleaner.min.cleanable.ratio`` …), in Kafka's own form: a ``server.properties`` in the
home, or environment variables, which win: ``KEPTLOG_BROKER_LOG_CLEANER_MIN_CLEANABLE_RATIO=0.3``.

How a real broker is reached is said the same way, under librdkafka's names: a ``kafka.properties`` in the home, or
``KEPTLOG_KAFKA_SASL_PASSWORD=…``.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from keptlog.engine.tasks import Sizes
from keptlog.ingest.ingest_pass import Ingest
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.broker import BrokerConfig
from keptlog.log.setting import Origin
from keptlog.passes.clean import Cleaner
from keptlog.settings import BROKER_FILE, broker_settings, home_path, read_properties
from keptlog.spark.jobs import spark_engine
from keptlog.storage.throttle import Throttle
from keptlog.table.cache import TopicCache
from keptlog.table.catalog import open_catalog
from keptlog.table.store import LogStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAST_ROW_GROUP_BYTES = 2**20
"""In smaller row groups the headers weigh more than the records."""


@dataclass(frozen=True, slots=True)
class Home:
    """An opened home."""

    path: Path
    broker: BrokerConfig
    store: LogStore

    def cleaner(self, session: Callable[[], SparkSession] | None = None) -> Cleaner:
        """A cleaner of this home's logs; ``session`` is called when there is something to rewrite, not before.

        Planning, committing and retention need none.
        """
        engine = spark_engine(session or _no_session, self.store.files, sizes_of(self.broker), throttle_of(self.broker))
        return Cleaner(self.store, engine, self.broker, monotonic_ms)

    def ingest(self, session: Callable[[], SparkSession]) -> Ingest:
        """An ingest into this home's topics; ``session`` is called when there is something to read, not before."""
        return Ingest(self.store, spark_engine(session, self.store.files))


def open_home(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Home:
    """Open a home; nothing is created on disk before a topic is.

    Raises:
        InvalidConfig: a broker setting is unknown or out of range.
        StorageUnavailable: the catalog can't be opened.
    """
    path = path or home_path(environment)
    settings = broker_settings(path / BROKER_FILE, environment)
    store = LogStore(open_catalog(path), settings, time.sleep, new_id, TopicCache(path))
    return Home(path, BrokerConfig.of(settings), store)


def throttle_of(broker: BrokerConfig) -> Throttle | None:
    """The rate of one clean, a thread's share of ``log.cleaner.io.max.bytes.per.second``; null without a limit."""
    limit = broker.log_cleaner_io_max_bytes_per_second
    if not 0 < limit < sys.float_info.max:
        return None
    return Throttle(limit / broker.log_cleaner_threads, time.monotonic, time.sleep)


def sizes_of(broker: BrokerConfig) -> Sizes:
    """How a clean is cut: ``log.cleaner.io.buffer.size`` bounds what it gathers for a row group, if somebody set it.

    Kafka's default of 512 KiB would make row groups that every later reader pays for.
    """
    is_set = any(
        each.setting.name == "log.cleaner.io.buffer.size" and each.origin is Origin.BROKER for each in broker.resolved
    )
    share_bytes = broker.log_cleaner_io_buffer_size // broker.log_cleaner_threads
    return Sizes(row_group_bytes=max(share_bytes, _LEAST_ROW_GROUP_BYTES)) if is_set else Sizes()


def _no_session() -> NoReturn:
    raise AssertionError("only rewriting needs a Spark session")


def monotonic_ms() -> int:
    """A clock for durations; it never goes back."""
    return time.monotonic_ns() // 1_000_000


def new_id() -> str:
    """A name for one run that no other run has."""
    return uuid.uuid4().hex


def client_settings(
    home: Path, file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> ClientSettings:
    """How brokers are reached: ``kafka.properties`` in a home, or another file, and the environment, which wins.

    Raises:
        InvalidConfig: the file can't be read, or a setting is refused.
    """
    path = file or home / "kafka.properties"
    settings = read_properties(path) if file or path.is_file() else {}
    return ClientSettings.load(settings, environment, where=str(path))
