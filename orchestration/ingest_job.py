"""The job that ingests: the topics that remember a broker, or new ones from the launchpad.

It has one op, because an ingest is one pass: look, read on Spark, commit each topic. The same library call is behind
``keptlog ingest kafka`` and behind the button on a dirty section. A run from the start reads on from the positions that
are stored, so that is what a retry does.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from keptlog.dagster.assets.ingest_report import refusing_an_ingest, run_ingest, without_broker
from keptlog.dagster.assets.mount import Mount, MountCall, Run
from keptlog.dagster.assets.outage import telling_outages
from keptlog.dagster.orchestration.ingest_failures import asked_at
from keptlog.dagster.orchestration.own_runs import INGEST_JOB_NAME
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import InvalidConfig
from keptlog.log.config import TopicConfig
from keptlog.log.lost_deletions import SeenCurrent
from keptlog.log.topic_partition import TopicPartition, valid_topic_name

if TYPE_CHECKING:
    from keptlog.ingest.plans import IngestPlans


class IngestConfig(dg.Config):
    """What to ingest; nothing at all means every topic that remembers a broker."""

    topics: list[str] = Field(
        default=[],
        description="Topics: those that are here already by their names here, new ones by their names at the broker. "
        "If nothing is named, all that remember a broker; with bootstrap those that were there, or are by their ids.",
    )
    topic_partitions: list[str] = Field(
        default=[], description="Some topic-partitions (orders-0) of topics that are here already, instead of topics."
    )
    bootstrap: str = Field(
        default="", description="Brokers to ask first, HOST:PORT; a topic remembers them, so only new ones need it."
    )
    into: str = Field(
        default="", description="The topic here, if one is named and it is to have another name than at the broker."
    )
    config: dict[str, str] = Field(
        default={}, description="Settings of topics that don't exist yet; cleanup.policy=compact without any."
    )
    broker_config: bool = Field(default=False, description="Create topics with the settings that they have there.")
    skip_lost: bool = Field(
        default=False,
        description="Go on where a log begins now, if records or deletions before that are gone at the broker.",
    )
    reconcile: bool = Field(
        default=False, description="Read all that is at the broker, and delete here the keys that are gone there."
    )
    seen_ms: dict[str, int] = Field(
        default={},
        description="When the sensor has last seen that a topic-partition (orders-0) lacked nothing, in ms since 1970. "
        "Leave it out in a run by hand.",
    )


def ingest_job(mount: Mount) -> dg.JobDefinition:
    """``ingest_kafka`` of a home."""

    @dg.op(
        name=mount.name("ingest"),
        required_resource_keys=mount.needs("log_store", "kafka", "spark", "clock"),
        description="Read what is new at the brokers on Spark, one commit a topic; fail if some of it did not come in.",
    )
    def ingest(context: dg.OpExecutionContext, config: IngestConfig) -> None:
        _ingest(MountCall(mount, context), config)

    @dg.job(
        name=mount.name(INGEST_JOB_NAME),
        executor_def=dg.in_process_executor,
        description="Ingest topics of Kafka brokers: those that are named, or all that come from one.",
    )
    def ingest_kafka() -> None:
        ingest.alias("ingest")()

    return ingest_kafka


def _ingest(run: Run, config: IngestConfig) -> None:
    from keptlog.ingest.kafka_brokers import KafkaBrokers  # noqa: PLC0415  # a run needs it, loading does not

    now_ms = run.now_ms()
    # Topics that are named may be new, and so may their home; a topic-partition that is named is there.
    needs = run.log_store if config.topic_partitions and not config.topics else None
    with telling_outages(run.context, now_ms, needs):
        # What this machine gets wrong comes first: what is refused after that is the run's own.
        settings = run.kafka.settings(run.log_store)
        ingest = run.log_store.ingest(run.spark)
        with refusing_an_ingest(run.context, now_ms):
            only = {TopicPartition.parse(name) for name in config.topic_partitions}
            source = KafkaBrokers(
                settings,
                _topics(config, only, run.log_store),
                config.bootstrap or None,
                _topic_settings(config),
                with_broker_config=config.broker_config,
                are_named=bool(config.topics or only),
            )
            plans = ingest.plan(source, skip_lost=config.skip_lost, reconcile=config.reconcile, seen=_seen(run, config))
            if not (config.topics or config.into):
                plans = plans.of_topics_here()
        run_ingest(run, ingest, _only(plans, only) if only else plans, now_ms)


def _seen(run: Run, config: IngestConfig) -> dict[str, SeenCurrent]:
    """When the sensor has seen that nothing was missing; the run's tags say at which positions."""
    positions = asked_at(run.context.run.tags)
    looks = ((name, positions.get(name), at_ms) for name, at_ms in config.seen_ms.items())
    return {name: SeenCurrent(position, at_ms) for name, position, at_ms in looks if position is not None}


def _only(plans: "IngestPlans", names: set[TopicPartition]) -> "IngestPlans":
    """What there is to do for topic-partitions that are named; a topic may have been deleted since they were."""
    gone = {name.topic for name in names} - {each.plan.topic for each in plans.topics} - plans.failed.keys()
    some = plans.only(names)
    return replace(some, failed={**some.failed, **{topic: without_broker(topic) for topic in gone}})


def _topics(config: IngestConfig, only: set[TopicPartition], log_store: LogStoreResource) -> dict[str, str]:
    """Topics here to their names at the broker; of topic-partitions those that are here, and have a broker.

    Raises:
        InvalidConfig: what is named does not fit together, or nothing is named and nothing known.
    """
    from keptlog.ingest.kafka_brokers import topics_from_brokers  # noqa: PLC0415  # as above

    if config.skip_lost and config.reconcile:
        raise InvalidConfig("skip_lost and reconcile are both given: give one of the two")
    if config.topics and only:
        raise InvalidConfig("topics and topic_partitions are both given: give one of the two")
    if config.into:
        if len(config.topics) != 1:
            raise InvalidConfig(f"into ({config.into}) takes one topic: name it in topics")
        return {valid_topic_name(config.into): config.topics[0]}
    # A run over one topic-partition must not wait for the storage of others.
    named = {name.topic for name in only} or set(config.topics)
    known = topics_from_brokers(log_store.store, named or None)
    if only:
        here = log_store.store.topics() if config.bootstrap else known
        return {name.topic: known.get(name.topic, name.topic) for name in sorted(only) if name.topic in here}
    names = config.topics or list(known)
    if not names:
        why = "no topic here remembers a broker yet: name some in topics, and the broker in bootstrap"
        raise InvalidConfig(why + log_store.perhaps_away())
    return {valid_topic_name(name): known.get(name, name) for name in names}


def _topic_settings(config: IngestConfig) -> dict[str, str]:
    """The settings of new topics, refused before a broker is asked if they are wrong."""
    TopicConfig.of(config.config)
    return config.config
