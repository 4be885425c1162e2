"""A home in a Dagster: its mount. All that Dagster is to know of the home is made for its mount, and called by it.

Several homes, or several parts of one, may be in a Dagster, and a project has names of its own. So nothing here is
found by a fixed name. A mount says how the home's jobs, ops, sensors, resources and pool are called, and which keys its
assets have; whoever is called by Dagster gets the mount and what Dagster has called it with, as one ``MountCall``:

    mount                    name_prefix "crm_", key_prefix ["crm"]
    job, op, sensor          crm_clean_logs, crm_plan, crm_dirty_ratio_sensor
    resources, pool          crm_log_store, crm_spark, crm_clock, crm_kafka; crm_log_cleaner
    assets                   crm/users/dirty, crm/users/clean, crm/erasures

Without prefixes these are the names that keptlog's own definitions have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NotRequired, TypedDict, TypeVar, Unpack

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from keptlog.dagster.assets.asset_topic import AssetTopic
from keptlog.dagster.assets.names import AssetKeys, groups_of
from keptlog.dagster.assets.outage import Context
from keptlog.dagster.assets.translator import KeptlogSectionProps, Section
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.io_manager import IO_MANAGER_KEY, TOPIC_KEY
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.dagster.resources.pool import pool_name
from keptlog.dagster.resources.spark import java_ahead_of, spark_of, why_spark_is_down
from keptlog.errors import InvalidConfig
from keptlog.log.declared import is_owner
from keptlog.log.topic_partition import TopicPartition
from keptlog.spark.launch import AheadOfUse

if TYPE_CHECKING:
    from keptlog.dagster.resources.spark import SparkSource

RESOURCES = ("log_store", "spark", "clock", "kafka")
"""What a home's runs and ticks work with."""
PLACE_TAG = ".dagster/repository"
"""By which Dagster tells the runs of a repository and code location."""
TOPIC_IO_MANAGER = "topic_io_manager"
"""The resource that loads topics into assets downstream."""


class OwnAttributes(TypedDict):
    """What a section says of itself."""

    description: str
    kinds: set[str]
    deps: NotRequired[Sequence[dg.AssetKey]]
    metadata: NotRequired[Mapping[str, Any]]


Owners = Sequence[str] | Mapping[str, Sequence[str]]
GroupBy = Callable[[str], str]
AnyContext = dg.OpExecutionContext | dg.AssetExecutionContext | dg.SensorEvaluationContext
ContextT_co = TypeVar("ContextT_co", bound=AnyContext, covariant=True)


def by_name(topic: str) -> str:
    """A group for each topic, in groups by the dots of its name: the default of ``group_by``."""
    return topic


def by_prefix(topic: str) -> str:
    """One group for all topics whose names are the same up to the last dot."""
    return topic.rpartition(".")[0] or "keptlog"


@dataclass(frozen=True)
class Mount:
    """A home in a Dagster."""

    name_prefix: str = ""
    keys: AssetKeys = field(default_factory=AssetKeys)
    group_by: GroupBy = by_name
    """A topic's group, in which a dot is a step down."""
    owners: Owners = ()
    """Of all topics, or by patterns of their names."""

    def name(self, name: str) -> str:
        """How a job, op, sensor, schedule or resource is called here."""
        return self.name_prefix + name

    @cached_property
    def pool(self) -> str:
        """The pool that bounds how many cleans run at once."""
        return pool_name(self.name_prefix)

    def needs(self, *resources: str) -> set[str]:
        """The keys of some of ``RESOURCES``."""
        return {self.name(name) for name in resources}

    @property
    def group(self) -> str:
        """The group of what is no topic's section."""
        return groups_of(["keptlog"], self.keys.prefix)["keptlog"]

    def groups(self, topics: Iterable[str]) -> dict[str, str]:
        """The group of each topic."""
        texts = {topic: self.group_by(topic) for topic in topics}
        groups = groups_of(texts.values(), self.keys.prefix)
        return {topic: groups[text] for topic, text in texts.items()}

    def spec(self, topic: AssetTopic, section: Section, **own: Unpack[OwnAttributes]) -> dg.AssetSpec:
        """A section as the translator wants it shown; ``own`` is what the section says of itself.

        Raises:
            InvalidConfig: the translator has called it something else than its events are.
        """
        key, loading = self.keys.of(topic.name, section), self._loading(topic, section)
        shown = dg.AssetSpec(
            key,
            deps=own.get("deps", ()),
            description=own["description"],
            kinds=own["kinds"],
            metadata={**own.get("metadata", {}), **loading},
            group_name=topic.group or self.group,
            owners=self._owners(topic),
            partitions_def=partitions_of(topic),
            skippable=section is not Section.SOURCE,
        )
        translated = self.keys.translator.get_asset_spec(KeptlogSectionProps(topic, section, shown))
        if translated is shown:
            return shown
        if translated.key != key:
            raise InvalidConfig(
                f"the translator gives {topic.name}'s {section} section the key {translated.key.to_user_string()} in "
                f"get_asset_spec, and {key.to_user_string()} in get_asset_key: say it in get_asset_key alone"
            )
        return translated.replace_attributes(
            deps=shown.deps, partitions_def=shown.partitions_def, skippable=shown.skippable
        ).merge_attributes(metadata=loading)

    def _loading(self, topic: AssetTopic, section: Section) -> dict[str, str]:
        """What says how a section is loaded into an asset downstream, and of which topic."""
        topic_name = {TOPIC_KEY: topic.name} if section is Section.CLEAN else {}
        return {IO_MANAGER_KEY: self.name(TOPIC_IO_MANAGER), **topic_name}

    def _owners(self, topic: AssetTopic) -> Sequence[str]:
        """Those that were given for it, else those that are stored with it and are any to Dagster."""
        stored = [each for each in topic.owners if is_owner(each)]
        if not isinstance(self.owners, Mapping):
            return self.owners or stored
        fitting = (owners for pattern, owners in self.owners.items() if fnmatchcase(topic.name, pattern))
        return next(fitting, stored)


def partitions_of(topic: AssetTopic) -> dg.StaticPartitionsDefinition:
    """The topic-partitions as Dagster partitions."""
    return dg.StaticPartitionsDefinition([str(TopicPartition(topic.name, n)) for n in range(topic.partitions)])


def place_of(run: dg.DagsterRun) -> str | None:
    """``<repository>@<code location>`` of a run's job, which Dagster stores, and which may not be among its tags."""
    return run.tags_for_storage().get(PLACE_TAG)


@dataclass(frozen=True)
class MountCall(Generic[ContextT_co]):
    """A run or a tick of a mount, as Dagster calls it; it has those of the resources that it said it needs."""

    mount: Mount
    context: ContextT_co

    @property
    def keys(self) -> AssetKeys:
        return self.mount.keys

    @property
    def log_store(self) -> LogStoreResource:
        store: LogStoreResource = self._resource("log_store")
        return store

    @property
    def kafka(self) -> KafkaResource:
        kafka: KafkaResource = self._resource("kafka")
        return kafka

    @property
    def place(self) -> tuple[str, str] | None:
        """Repository and code location; null where that is not known, as in a test."""
        context = self.context
        if isinstance(context, dg.SensorEvaluationContext):
            origin = context.code_location_origin
            return (context.repository_name, origin.location_name) if origin and context.repository_name else None
        job = context.dagster_run.remote_job_origin if context.dagster_run else None
        return (job.repository_origin.repository_name, job.location_name) if job else None

    @property
    def place_label(self) -> str | None:
        """The same as Dagster stores it with a run (``place_of``)."""
        return "@".join(self.place) if self.place else None

    @cached_property
    def clock(self) -> ClockResource:
        """The clock; a tick's log says so if it is another one than the wall's."""
        clock: ClockResource = self._resource("clock")
        told = clock.told() if isinstance(self.context, dg.SensorEvaluationContext) else None
        if told:
            self.context.log.warning(told)
        return clock

    def now_ms(self) -> int:
        """The time now."""
        return self.clock.read_ms()

    @property
    def spark(self) -> SparkSource:
        """What gives the Spark that does the tasks, once it is needed."""
        return spark_of(self._spark, self.log_store.path)

    def java_ahead(self, names: Sequence[str]) -> AbstractContextManager[AheadOfUse]:
        """Around what is to clean the logs of these names: if there are some, Java starts at once.

        Who names logs, a person or a sensor, knows that they are due. It starts where each run starts its own Spark.
        """
        return java_ahead_of(self._spark, self.log_store.path) if names else nullcontext(AheadOfUse())

    def why_spark_is_down(self) -> str | None:
        """Why the Spark server that runs use can't be reached; null if it answers, or each run starts its own."""
        return why_spark_is_down(self._spark, self.log_store.path)

    @property
    def _spark(self) -> LazyPySparkResource:
        spark: LazyPySparkResource = self._resource("spark")
        return spark

    def _resource(self, name: str) -> Any:
        return getattr(self.context.resources, self.mount.name(name))


Run = MountCall[Context]
Tick = MountCall[dg.SensorEvaluationContext]
AssetRun = MountCall[dg.AssetExecutionContext]
