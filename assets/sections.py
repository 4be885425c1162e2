"""One topic's assets: the dirty section, and the clean section that is made from it; a topic of a broker before them.

    appended    dirty (observed) ──> clean
    ingested    source (observed) ──> dirty ──> clean

All have a partition for each topic-partition, named ``<topic>-<N>``. Materializing partitions of the clean section by
hand cleans whatever is cleanable in them, due or not; materializing those of a dirty section that has a source ingests
what is new there. What has nothing to do is left alone and not marked.
"""

from collections.abc import Iterator, Sequence

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from keptlog.dagster.assets.asset_topic import AssetSource, AssetTopic
from keptlog.dagster.assets.checks import check_specs, gone_results
from keptlog.dagster.assets.ingest_report import run_ingest
from keptlog.dagster.assets.names import clean_key, dirty_key, source_key
from keptlog.dagster.assets.outage import telling_outages
from keptlog.dagster.assets.report import (
    checks_after,
    erasures_after,
    fail_if_any_failed,
    observe_after,
    report_numbers,
    run_id_of,
)
from keptlog.dagster.resources.clock import ClockResource
from keptlog.dagster.resources.kafka import KafkaResource
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.dagster.resources.pool import POOL
from keptlog.dagster.resources.spark import session_of
from keptlog.ingest.kafka_brokers import KafkaBrokers
from keptlog.log.topic_partition import TopicPartition


def partitions_of(topic: AssetTopic) -> dg.StaticPartitionsDefinition:
    """The topic-partitions as Dagster partitions."""
    return dg.StaticPartitionsDefinition([str(TopicPartition(topic.name, n)) for n in range(topic.partitions)])


def dirty_section(
    topic: AssetTopic, group: str, description: str = "", deps: Sequence[dg.AssetKey] = ()
) -> dg.AssetSpec:
    """What was appended and not cleaned yet. Nothing here makes it; the sensors observe it."""
    return dg.AssetSpec(
        dirty_key(topic.name),
        deps=deps,
        group_name=group,
        partitions_def=partitions_of(topic),
        skippable=True,
        description=description
        or f"Records of {topic.name} that were appended and not cleaned yet; observed when they change.",
        kinds={"kafka", "iceberg"},
        metadata=topic.settings,
    )


def source_section(topic: AssetTopic, group: str, source: AssetSource) -> dg.AssetSpec:
    """The broker's topic that a topic is ingested from; the sensor on consumer lag observes it."""
    return dg.AssetSpec(
        source_key(topic.name),
        group_name=group,
        partitions_def=partitions_of(topic),
        description=f"Topic {source.topic} at {source.bootstrap}; observed with what it is ahead of {topic.name}.",
        kinds={"kafka"},
    )


def ingested_section(topic: AssetTopic, name: str, source: AssetSource) -> dg.AssetsDefinition:
    """The dirty section of a topic that has a broker's topic as its source. ``name`` makes op and group."""
    description = (
        f"Records of {topic.name} that were ingested from {source.topic} at {source.bootstrap} and not cleaned yet. "
        "The sensor ingests what is new; materialize partitions to do it now. All of them also brings in partitions "
        "that are new there."
    )
    spec = dirty_section(topic, name, description, [source_key(topic.name)])

    @dg.multi_asset(name=f"{name}__dirty", specs=[spec], backfill_policy=dg.BackfillPolicy.single_run())
    def ingest(
        context: dg.AssetExecutionContext, kafka: KafkaResource, spark: LazyPySparkResource, clock: ClockResource
    ) -> None:
        names = {TopicPartition.parse(key) for key in context.partition_keys}
        if not names:
            raise dg.Failure("no topic-partition is selected: the range of partitions is empty", allow_retries=False)
        now_ms = clock.read_ms()
        with telling_outages(context, now_ms):
            stored = kafka.log_store.store.source_of(topic.name)
            known = {TopicPartition(topic.name, number) for number in range(len(stored.positions))}
            there = stored.source.topic if stored.source else source.topic
            ingest = kafka.log_store.ingest(session_of(spark))
            plans = ingest.plan(KafkaBrokers(kafka.settings, {topic.name: there}))
            run_ingest(context, ingest, plans if names >= known else plans.only(names), now_ms)

    return ingest


def clean_section(topic: AssetTopic, name: str) -> dg.AssetsDefinition:
    """The latest record of every key. ``name`` makes op and group."""
    spec = dg.AssetSpec(
        clean_key(topic.name),
        deps=[dirty_key(topic.name)],
        group_name=name,
        partitions_def=partitions_of(topic),
        skippable=True,
        description=(
            f"The latest record of every key of {topic.name}, in order, at their own offsets. The sensors clean it "
            "when it is due; materialize partitions to clean them now."
        ),
        kinds={"spark", "iceberg"},
        metadata={"location": dg.MetadataValue.path(topic.location)},
    )

    @dg.multi_asset(
        name=f"{name}__clean",
        specs=[spec],
        check_specs=check_specs(topic.name),
        pool=POOL,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def clean(
        context: dg.AssetExecutionContext,
        log_store: LogStoreResource,
        spark: LazyPySparkResource,
        clock: ClockResource,
    ) -> Iterator[dg.AssetCheckResult]:
        names = context.partition_keys
        if not names:
            raise dg.Failure("no topic-partition is selected: the range of partitions is empty", allow_retries=False)
        now_ms = clock.read_ms()
        with telling_outages(context, now_ms):
            cleaner = log_store.cleaner(session_of(spark))
            planned = cleaner.begin(names, run_id_of(context), now_ms=now_ms, requested=True)
            committed = cleaner.commit(cleaner.stage(planned, progress=context.log.info))
        cleaned, after = observe_after(log_store.store, committed, names)
        for left_alone in cleaned.plan.left_alone.items():
            context.log.info("%s left alone: %s", *left_alone)
        report_numbers(context, cleaned, after)
        yield from checks_after(context.instance, log_store.store, cleaned, after)
        # An asset gives all of its checks; the job leaves this one to those that verify and purge.
        yield from gone_results(context.instance, log_store.store, topic.name, now_ms)
        erasures_after(context, log_store, after, clock.read_ms())
        fail_if_any_failed(context, cleaned, names)

    return clean
