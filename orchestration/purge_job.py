"""The job that purges: deletes for good what cleans and retention have replaced, and needs no Spark."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from keptlog.dagster.assets.checks import as_evaluation, gone_results
from keptlog.dagster.assets.erasures import ErasureNews, bring_erasures_on, look_at_erasures
from keptlog.dagster.assets.mount import Mount, MountCall, Run
from keptlog.dagster.assets.outage import Context, outage_among, refusing_what_was_asked, tag_outage, telling_outages
from keptlog.dagster.assets.report import fail_if_any
from keptlog.dagster.orchestration.own_runs import PURGE_JOB_NAME
from keptlog.errors import StorageUnavailable, first_line
from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.log.holder import ORPHAN_GRACE_MS
from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.units import size
from keptlog.passes.observer import observe

if TYPE_CHECKING:
    from keptlog.passes.purge import PurgeResult
    from keptlog.table.purging.purge_receipt import PurgeReceipt
    from keptlog.table.removal.drafts import Sealing

_NAMES_IN_LINE = 3


class PurgeConfig(dg.Config):
    """What is deleted."""

    topics: list[str] = Field(default=[], description="Topics to purge; all if empty.")
    orphan_grace_ms: int = Field(
        default=ORPHAN_GRACE_MS,
        description="How old, in ms, a file that nothing refers to must be before it is deleted. Crashes leave such "
        "files behind; younger ones may belong to a run that is under way.",
    )


def purge_job(mount: Mount) -> dg.JobDefinition:
    """``purge`` of a home."""

    @dg.op(
        name=mount.name("delete_retired_files"),
        required_resource_keys=mount.needs("log_store", "clock"),
        description="Delete files that no snapshot within file.delete.delay.ms refers to.",
    )
    def delete_retired_files(context: dg.OpExecutionContext, config: PurgeConfig) -> None:
        _purge(MountCall(mount, context), config)

    @dg.job(
        name=mount.name(PURGE_JOB_NAME),
        executor_def=dg.in_process_executor,
        description="Delete replaced files from the storage once nobody can still be reading them.",
    )
    def purge() -> None:
        delete_retired_files.alias("delete_retired_files")()

    return purge


def _purge(run: Run, config: PurgeConfig) -> None:
    from keptlog.passes.purge import valid_grace_ms  # noqa: PLC0415  # a run needs it, loading does not

    context, now_ms = run.context, run.now_ms()
    with refusing_what_was_asked():
        valid_grace_ms(config.orphan_grace_ms)
    with telling_outages(context, now_ms, run.log_store if config.topics else None):
        result = run.log_store.purger.purge(
            config.topics, now_ms=now_ms, orphan_grace_ms=config.orphan_grace_ms, skips_unknown=True
        )
    if not (result.receipts or result.deletions or result.failed) and (unbegun := run.log_store.why_unbegun()):
        context.log.warning("nothing was purged: %s", unbegun)
    changed = _tell(context, result)
    _check_gone(run, changed, now_ms)
    if result.idle:
        count = counted(len(result.idle), "topic")
        context.log.info("%s left alone: nothing was committed, or is due, since the last purge", count)
    purged = result.receipts.keys() - set(result.idle)
    # Of a topic that was made anew the files of the earlier one may have gone, under the same name.
    if quiet := purged - changed - result.failed.keys() - result.deletions.keys():
        context.log.info("%s: nothing was deleted", some_of(sorted(quiet), _NAMES_IN_LINE))
    _erasures_after_purge(run, purged, changed, now_ms)
    is_any_done = bool({*purged, *result.deletions} - result.failed.keys())
    if outage := outage_among(result.failed, is_any_done=is_any_done):
        tag_outage(context, outage, now_ms)
    # No outage of what purges: the files are gone, and only what proves it waits.
    unsealed = result.unsealed
    fail_if_any(unsealed | result.failed, "not purged, or not sealed" if unsealed else "not purged")


def _tell(context: Context, result: "PurgeResult") -> set[str]:
    """Tell what was deleted, and what was not; the topics from which something was."""
    from keptlog.table.removal.held import held_lines  # noqa: PLC0415  # a run needs it, loading does not

    changed: set[str] = set()
    for topic, receipt in result.receipts.items():
        gone = _gone(receipt)
        if gone:
            changed.add(topic)
        _tell_gone(context, topic, gone, receipt.sealing)
        for dropped in receipt.dropped_refs:
            context.log.info("%s: dropped %s", topic, dropped)
        for line in held_lines(receipt.held):
            context.log.info("%s: still there: %s", topic, line)
        for left in receipt.not_deleted:
            context.log.error("%s: not deleted: %s: %s", topic, left.path, left.reason)
        for what in receipt.unreadable:
            context.log.warning("%s: could not be read: %s", topic, what)
        for what in receipt.not_looked_at:
            context.log.info("%s: not looked at: %s", topic, what)
    for topic, deletion in result.deletions.items():
        files = counted(len(deletion.deleted_files), "file")
        _tell_gone(context, topic, [f"{files} of the deleted topic deleted"], deletion.sealing)
        for left in deletion.not_deleted:
            context.log.error("%s: not deleted: %s: %s", topic, left.path, left.reason)
    return changed


def _check_gone(run: Run, changed: Collection[str], now_ms: int) -> None:
    """Evaluate G8 of topics from which something was deleted, and of those where something is late."""
    late: set[str] = set()
    try:
        late = {holder.topic for holder in run.log_store.observer.look(now_ms).late_holders()}
    except StorageUnavailable as error:
        # The purge has told what it did by then, and the next one looks again.
        run.context.log.warning("not known where something is late: %s", first_line(error))
    for topic in sorted({*changed, *late}):
        for evaluated in gone_results(run, topic, now_ms):
            run.context.log_event(as_evaluation(evaluated))  # type: ignore[arg-type]  # it takes them, undeclared


def _gone(receipt: "PurgeReceipt") -> list[str]:
    """How much of a topic, as its receipts count it."""
    deleted, expired = receipt.all_deleted, receipt.expired_snapshots
    gone = [f"{counted(len(expired), 'snapshot')} expired"] if expired else []
    if deleted:
        gone.append(f"{counted(len(deleted), 'file')} deleted ({size(receipt.deleted_bytes)})")
    return gone


def _tell_gone(context: Context, topic: str, gone: list[str], sealing: "Sealing") -> None:
    """In one line, with what proves it: a purge of many topics is read topic by topic."""
    if parts := [*gone, *(f"receipt {receipt_id}" for receipt_id in sealing.sealed)]:
        context.log.info("%s: %s", topic, ", ".join(parts))
    for receipt_id in sealing.waiting:
        context.log.warning("%s: receipt %s waits to be sealed: %s", topic, receipt_id, sealing.why)


def _erasures_after_purge(run: Run, purged: Iterable[str], changed: set[str], now_ms: int) -> None:
    """Of the topics that were purged, those whose erasures may be further now."""
    log_store = run.log_store

    def look() -> ErasureNews | None:
        names = list(purged)
        erasures = observe(log_store.store, names, now_ms=now_ms).open_erasures if names else {}
        waiting = {topic for topic, each in erasures.items() if each.has(ErasureNeed.PURGE)}
        topics = sorted(waiting | (changed & erasures.keys()))
        return look_at_erasures(log_store, now_ms, topics) if topics else None

    bring_erasures_on(run, look)
