"""One topic's assets: the dirty section, and the clean section that is made from it; a topic of a broker before them.

    appended    dirty (observed) ──> clean
    ingested    source (observed) ──> dirty ──> clean

All have a partition for each topic-partition, named ``<topic>-<N>``. Materializing partitions of the clean section by
hand cleans whatever is cleanable in them, due or not; materializing those of a dirty section that has a source ingests
what is new there. A log that has nothing to be cleaned is left alone, and counts as materialized if it is as it should
be: it was looked at. What is damaged, failed, or not cleaned because the cleaner is off, fails the run.
"""

from collections.abc import Iterable, Iterator

import dagster as dg

from keptlog.dagster.assets.asset_topic import AssetSource, AssetTopic
from keptlog.dagster.assets.attempts import begin_attempts
from keptlog.dagster.assets.checks import TopicFindings, check_results, check_specs, gone_results
from keptlog.dagster.assets.ingest_report import run_ingest, without_broker
from keptlog.dagster.assets.markdown import as_markdown
from keptlog.dagster.assets.mount import AssetRun, Mount, MountCall
from keptlog.dagster.assets.outage import telling_outages
from keptlog.dagster.assets.report import (
    erasures_after,
    fail_if_any_failed,
    look_after,
    not_looked_at,
    observe_after,
    run_id_of,
    why_uncleaned,
    wrong_among,
)
from keptlog.dagster.assets.results import own_checks, own_part, results, tell_checks, tell_what_landed
from keptlog.dagster.assets.siblings import end_siblings, take_over
from keptlog.dagster.assets.table_metadata import table_metadata
from keptlog.dagster.assets.translator import Section
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.holders import GONE_IN_TIME


def dirty_section(mount: Mount, topic: AssetTopic) -> dg.AssetSpec:
    """What was appended and not cleaned yet. Nothing here makes it; the sensors observe it."""
    description = f"Records of {topic.name} that were appended and not cleaned yet; told when they change."
    if "compact" not in topic.cleanup_policy:
        description += " No clean comes to them: the topic is not compacted."
    return _dirty_spec(mount, topic, description)


def source_section(mount: Mount, topic: AssetTopic, source: AssetSource) -> dg.AssetSpec:
    """The broker's topic that a topic is ingested from; the sensor on consumer lag observes it."""
    description = f"Topic {source.topic} at {source.bootstrap}; observed with what it is ahead of {topic.name}."
    return mount.spec(topic, Section.SOURCE, description=description, kinds={"kafka"})


def ingested_section(mount: Mount, topic: AssetTopic, name: str, source: AssetSource) -> dg.AssetsDefinition:
    """The dirty section of a topic that has a broker's topic as its source. ``name`` makes the op."""
    description = (
        f"Records of {topic.name} that were ingested from {source.topic} at {source.bootstrap} and not cleaned yet. "
        "The sensor ingests what is new; materialize partitions to do it now. All of them also brings in partitions "
        "that are new there."
    )

    @dg.multi_asset(
        name=mount.name(f"{name}__dirty"),
        specs=[_dirty_spec(mount, topic, description, mount.keys.source(topic.name))],
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys=mount.needs("log_store", "kafka", "spark", "clock"),
    )
    def ingest(context: dg.AssetExecutionContext) -> None:
        from keptlog.ingest.kafka_brokers import KafkaBrokers  # noqa: PLC0415  # a run needs it, loading does not

        names = {TopicPartition.of_a_log(key) for key in _selected(context, topic.name)}
        run = MountCall(mount, context)
        now_ms = run.now_ms()
        with telling_outages(context, now_ms, run.log_store):
            stored = run.log_store.store.source_of(topic.name)
            known = {TopicPartition(topic.name, number) for number in range(len(stored.positions))}
            if stored.source is None:
                # It was made anew since the asset graph was loaded. What was deleted with it is not to come back.
                raise without_broker(topic.name)
            ingest = run.log_store.ingest(run.spark)
            plans = ingest.plan(KafkaBrokers(run.kafka.settings(run.log_store), {topic.name: stored.source.topic}))
            plans = plans.of_topics_here()
            run_ingest(run, ingest, plans if names >= known else plans.only(names), now_ms)

    return ingest


def clean_section(mount: Mount, topic: AssetTopic, name: str) -> dg.AssetsDefinition:
    """The latest record of every key. ``name`` makes the op."""
    spec = mount.spec(
        topic,
        Section.CLEAN,
        deps=[mount.keys.dirty(topic.name)],
        description=_told_of(topic) + _kept_of(topic),
        kinds={"spark", "iceberg"},
        metadata={
            **table_metadata(topic),
            "what_waits_now": dg.MetadataValue.asset(mount.keys.dirty(topic.name)),
            "all_logs": dg.MetadataValue.asset(mount.keys.health),
        },
    )

    @dg.multi_asset(
        name=mount.name(f"{name}__clean"),
        specs=[spec],
        check_specs=check_specs(mount.keys.clean(topic.name)),
        pool=mount.pool,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys=mount.needs("log_store", "spark", "clock"),
    )
    def clean(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        names = _selected(context, topic.name)
        run = MountCall(mount, context)
        now_ms = run.now_ms()
        with telling_outages(context, now_ms, run.log_store), run.java_ahead(names):
            taken = take_over(run)
            every_name = [*names, *taken.all_names]
            cleaner = run.log_store.cleaner(run.spark)
            planned = cleaner.begin(every_name, run_id_of(context), now_ms=now_ms, requested=True)
            # Dagster has planned them, and does not know of which topic they are.
            steps = [step for step in planned.plan.steps if str(step.topic_partition) in names]
            begin_attempts(run, {step.topic_partition: step.topic_id for step in steps})
            committed = cleaner.commit(cleaner.stage(planned, progress=context.log.info))
        cleaned, after = observe_after(run, committed, every_name)
        own = own_part(cleaned, topic.name, names)
        for left_alone in cleaned.plan.left_alone.items():
            context.log.info("%s left alone: %s", *left_alone)
        findings = look_after(run, cleaned, after)
        checks = _all_checks(run, findings, {log.topic_partition.topic for log in after.logs} | {topic.name}, now_ms)
        wrong = {**why_uncleaned(cleaned, after), **wrong_among(findings), **not_looked_at(cleaned, after)}
        own_wrong = {name: why for name, why in wrong.items() if name in names}
        if own.failed or own_wrong:
            tell_checks(run, checks)
            tell_what_landed(run, cleaned, after, names, wrong)
        else:
            yield from own_checks(run, topic.name, checks)
            yield from results(run, cleaned, after, names, wrong)
        erasures_after(run, after, run.now_ms())
        end_siblings(run, taken, {*cleaned.failed, *wrong})
        fail_if_any_failed(run, own, names, own_wrong)

    return clean


def _all_checks(
    run: AssetRun, findings: Iterable[TopicFindings], topics: Iterable[str], now_ms: int
) -> Iterator[dg.AssetCheckResult]:
    for looked in findings:
        yield from check_results(run, looked.without(GONE_IN_TIME))
    # An asset gives all of its checks; the job leaves this one to those that verify and purge.
    for each in sorted(topics):
        yield from gone_results(run, each, now_ms)


def _dirty_spec(mount: Mount, topic: AssetTopic, description: str, *deps: dg.AssetKey) -> dg.AssetSpec:
    kinds = {"kafka", "iceberg"}
    return mount.spec(topic, Section.DIRTY, deps=deps, description=description, kinds=kinds, metadata=topic.settings)


def _told_of(topic: AssetTopic) -> str:
    return f"{as_markdown(topic.description)}\n\n" if topic.description else ""


def _kept_of(topic: AssetTopic) -> str:
    """What is kept of its records, and what makes the others go."""
    is_retained = "delete" in topic.cleanup_policy
    if "compact" not in topic.cleanup_policy:
        goes = "The oldest segments go by retention.ms and retention.bytes" if is_retained else "Nothing goes by itself"
        return f"All records of {topic.name}, in order, at their own offsets. {goes}; the topic is not compacted."
    kept = (
        f"The latest record of every key of {topic.name}, in order, at their own offsets. The sensors clean it when it "
        "is due; materialize partitions to clean them now."
    )
    by_age = " The oldest segments go by retention.ms and retention.bytes too, whatever their keys."
    return kept + by_age if is_retained else kept


def _selected(context: dg.AssetExecutionContext, topic: str) -> list[str]:
    """The topic-partitions that a run was asked for.

    Raises:
        Failure: none at all.
    """
    if not (context.has_partition_key or context.has_partition_key_range):
        raise dg.Failure(
            "no topic-partition is selected: this run has no partition. Choose some where you materialize, or give the "
            f"run the tag dagster/partition={topic}-0, or that of another one",
            allow_retries=False,
        )
    names = list(context.partition_keys)
    if not names:
        raise dg.Failure("no topic-partition is selected: the range of partitions is empty", allow_retries=False)
    return names
