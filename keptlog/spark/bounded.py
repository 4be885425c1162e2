"""The engine on Spark, bounded as the broker settings say."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from keptlog.engine.engine import Engine
from keptlog.engine.tasks import Sizes
from keptlog.log.broker import BrokerConfig
from keptlog.log.setting import Origin
from keptlog.spark.jobs import spark_engine
from keptlog.storage.files import Files
from keptlog.storage.throttle import Throttle

if TYPE_CHECKING:
    from keptlog.spark.driver import Spark

_LEAST_ROW_GROUP_BYTES = 2**20
"""In smaller row groups the headers weigh more than the records."""


def bounded_engine(
    spark: Callable[[], Spark],
    files: Files,
    broker: BrokerConfig,
    clock: tuple[Callable[[], float], Callable[[float], None]],
) -> Engine:
    """An engine; ``clock`` tells the time in seconds, and waits for some."""
    return spark_engine(spark, files, _sizes(broker), _throttle(broker, *clock))


def _throttle(broker: BrokerConfig, now: Callable[[], float], sleep: Callable[[float], None]) -> Throttle | None:
    """The rate of one clean, a thread's share of ``log.cleaner.io.max.bytes.per.second``; null without a limit."""
    limit = broker.log_cleaner_io_max_bytes_per_second
    if not 0 < limit < sys.float_info.max:
        return None
    return Throttle(limit / broker.log_cleaner_threads, now, sleep)


def _sizes(broker: BrokerConfig) -> Sizes:
    """How a clean is cut: ``log.cleaner.io.buffer.size`` bounds what it gathers for a row group, if somebody set it.

    Kafka's default of 512 KiB would make row groups that every later reader pays for.
    """
    is_set = any(
        each.setting.name == "log.cleaner.io.buffer.size" and each.origin is Origin.BROKER for each in broker.resolved
    )
    share_bytes = broker.log_cleaner_io_buffer_size // broker.log_cleaner_threads
    return Sizes(row_group_bytes=max(share_bytes, _LEAST_ROW_GROUP_BYTES)) if is_set else Sizes()
