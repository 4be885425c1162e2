"""A Spark in hand: a context whose driver is this process, a session on it, or a Connect server's session.

Whoever hands tasks out needs a context, and no session: a session of Spark SQL costs two seconds when it is made, and
its first job two more. Where keptlog starts a local Spark it makes a context alone. A session is made on it
once somebody asks for a frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Spark: TypeAlias = "SparkContext | SparkSession"


def is_connect(spark: Spark) -> bool:
    """Whether it is a client's session of a Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def context_of(spark: Spark) -> SparkContext | None:
    """Its context; null of a Connect server's session, which has none."""
    return None if is_connect(spark) else cast("SparkContext", getattr(spark, "sparkContext", spark))


def local_context(spark: Spark) -> SparkContext | None:
    """Its context if its tasks run in processes of this machine that it has started itself."""
    context = context_of(spark)
    return context if context and str(context.master).startswith("local") else None


def session_on(spark: Spark) -> SparkSession:
    """The session for frames: the one in hand, or that of its context, which is made at the first call."""
    if hasattr(spark, "conf"):
        return cast("SparkSession", spark)
    from pyspark.sql import SparkSession  # noqa: PLC0415  # whoever only hands tasks out needs none

    return SparkSession.builder.getOrCreate()


def setting_of(spark: Spark, name: str, default: str) -> str:
    """A setting of Spark's as it is there."""
    # ``getConf`` copies all settings from Java, one by one: 13 ms, several times a job.
    settings: Any = spark.conf if hasattr(spark, "conf") else spark._conf  # noqa: SLF001
    return settings.get(name, default) or ""
