"""The Spark session, brought by dagster-pyspark: one a run process, started when a run has something to rewrite.

The settings are keptlog's own, the same as on the command line: over them go those of ``spark.properties`` in the home,
and over these the resource's ``spark_config``, one by one. Where Spark runs is said by ``KEPTLOG_SPARK_MASTER``
(``local[*]`` without it). All of it is read when a run starts its session, and when a sensor asks whether a server
answers: so a server that was started again at another address is found, if ``KEPTLOG_SPARK_MASTER`` names the file in
which it says where it is.

Dagster stores and shows a resource's configuration. So what keptlog adds to it, or reads elsewhere, is no part of it:
the address of a Connect server may hold a token, a setting a password. Secrets belong in ``spark.properties``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable
from keptlog.settings import SPARK_FILE, SPARK_MASTER, home_path, spark_master, spark_settings
from keptlog.spark.launch import AheadOfUse, java_ahead
from keptlog.spark.master import require_answer, without_secrets
from keptlog.spark.session import start_session, start_spark, starting
from keptlog.spark.settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from keptlog.spark.driver import Spark

    SessionSource: TypeAlias = Callable[[], SparkSession]
    SparkSource: TypeAlias = Callable[[], Spark]


class SparkResource(LazyPySparkResource):
    """Spark with keptlog's settings; ``spark_config`` goes over them, and is shown in Dagster."""

    spark_config: dict[str, Any] = Field(
        default_factory=dict, description="Spark's settings by their names; no secrets, because Dagster shows them."
    )
    home: str | None = Field(
        default=None,
        description="The home whose spark.properties counts; that of the topics that are cleaned, if it is not given.",
    )

    def settings(self) -> dict[str, str]:
        """All settings of the session, read anew. They may hold secrets.

        Raises:
            InvalidConfig: one is refused, or can't be read.
        """
        return _settings(self.spark_config, Path(self.home).absolute() if self.home else home_path())

    def _init_session(self) -> None:
        if self._spark_session is None:
            self._spark_session = start_session(extra=self.settings())


def spark_resource(master: str | None = None) -> SparkResource:
    """A Spark resource with keptlog's settings; no session is started before one is used.

    Raises:
        InvalidConfig: Dagster would show a token.
    """
    if master and without_secrets(master, {}) != master:
        raise InvalidConfig(
            "Dagster shows a resource's configuration, so no token may be in it: give the address by "
            f"{SPARK_MASTER}, or {SPARK_FILE} in the home"
        )
    return SparkResource(spark_config={"spark.master": master} if master else {})


def why_spark_is_down(spark: LazyPySparkResource, home: Path) -> str | None:
    """Why the Spark that runs use can't be had; null if its address answers, or if each run starts its own Spark."""
    try:
        settings = _with_home(spark, home).settings()
        require_answer(settings.get("spark.remote") or settings["spark.master"])
    except (StorageUnavailable, InvalidConfig) as error:
        return str(error)
    return None


def spark_of(spark: LazyPySparkResource, home: Path) -> SparkSource:
    """The resource's Spark, as ``LogStoreResource.cleaner`` takes it; one in a process, as Spark has it.

    A session that somebody else's resource brings is taken as it is; of ours one is made only where frames are.
    """
    if not _is_plain(spark):
        return session_of(spark, home)
    return lambda: start_spark(extra=_with_home(spark, home).settings())


@contextmanager
def java_ahead_of(spark: LazyPySparkResource, home: Path) -> Iterator[AheadOfUse]:
    """Around what will need the resource's Spark soon: where it is a local one of ours, its Java starts at once.

    It is ended if nobody has asked for it by the end of the block. Whatever is wrong is told when Spark is needed.
    """
    with ExitStack() as ahead:
        use = AheadOfUse()
        if _is_plain(spark) and home.is_dir():
            with suppress(KeptlogError):
                settings = _with_home(spark, home).settings()
                use = ahead.enter_context(java_ahead(None, settings))
        yield use


def session_of(spark: LazyPySparkResource, home: Path) -> SessionSource:
    """The resource's session, for frames.

    What a resource of dagster-pyspark's own was given goes over keptlog's settings too.
    """
    bringer = _with_home(spark, home) if _is_plain(spark) else spark

    def session() -> SparkSession:
        with starting({}):
            brought: SparkSession = bringer.spark_session
        return brought

    return session


def _is_plain(spark: LazyPySparkResource) -> bool:
    return type(spark) in {LazyPySparkResource, SparkResource}


def _with_home(spark: LazyPySparkResource, home: Path) -> SparkResource:
    """The same, with a home's ``spark.properties`` where it has none of its own."""
    if isinstance(spark, SparkResource) and (spark.home or home == home_path()):
        return spark
    return SparkResource(spark_config=spark.spark_config, home=str(home))


def _settings(config: Mapping[str, Any], home: Path) -> dict[str, str]:
    given = {name: str(value) for name, value in _flat(config)}
    chosen = given.get("spark.remote") or given.get("spark.master") or spark_master()
    return session_settings(chosen, spark_settings(home) | given)


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their whole names; Dagster's users may nest them at the dots."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
