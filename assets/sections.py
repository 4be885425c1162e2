"""One topic's two assets: the dirty section, which Dagster observes, and the clean section, which it makes.

Both have a partition for each topic-partition, named ``<topic>-<N>``. Materializing partitions of the clean section by
hand cleans whatever is cleanable in them, due or not; what has nothing to clean is left alone and not marked.
"""

from collections.abc import Iterator

import dagster as dg
from dagster_pyspark import LazyPySparkResource

from assets.checks import check_specs
from assets.names import clean_key, dirty_key
from assets.report import checks_after, fail_if_any_failed, observe_after, report_numbers, run_id_of
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.topics import Topic
from resources.clock import ClockResource
from resources.log_store import LogStoreResource
from resources.spark import session_of

POOL = "log_cleaner"
"""How many cleans run at once is the limit of this pool, which the sensors set to ``log.cleaner.threads``."""


def partitions_of(topic: Topic) -> dg.StaticPartitionsDefinition:
    """The topic-partitions as Dagster partitions."""
    return dg.StaticPartitionsDefinition([str(TopicPartition(topic.name, n)) for n in range(topic.partitions)])


def dirty_section(topic: Topic, group: str) -> dg.AssetSpec:
    """What was appended and not cleaned yet. Nothing here makes it; the sensors observe it."""
    config = topic.config
    return dg.AssetSpec(
        dirty_key(topic.name),
        group_name=group,
        partitions_def=partitions_of(topic),
        description=f"Records of {topic.name} that were appended and not cleaned yet; observed when they change.",
        kinds={"kafka", "iceberg"},
        metadata={
            "cleanup.policy": ",".join(config.cleanup_policy),
            "min.cleanable.dirty.ratio": config.min_cleanable_dirty_ratio,
            "min.compaction.lag.ms": config.min_compaction_lag_ms,
            "max.compaction.lag.ms": config.max_compaction_lag_ms,
            "delete.retention.ms": config.delete_retention_ms,
        },
    )


def clean_section(topic: Topic, name: str) -> dg.AssetsDefinition:
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
        cleaner = log_store.cleaner(session_of(spark))
        planned = cleaner.begin(names, run_id_of(context), now_ms=clock.read_ms(), requested=True)
        committed = cleaner.commit(cleaner.stage(planned, progress=context.log.info))
        cleaned, after = observe_after(log_store.store, committed, names)
        for left_alone in cleaned.plan.left_alone.items():
            context.log.info("%s left alone: %s", *left_alone)
        report_numbers(context, log_store.store, cleaned, after)
        for _, result in checks_after(log_store.store, cleaned, after):
            yield result
        fail_if_any_failed(context, cleaned)

    return clean
