"""The jobs of erasure: ``erase`` asks for one, ``verify_erasures`` proves that nothing is left.

Dagster stores a run's configuration, and shows it. So keys are given there as their keyed hashes, which
``keptlog erase --hash`` prints. What is no such hash is refused before there is a run: nothing of it is stored, and the
message does not repeat it.

The same run, tried again, asks for nothing twice: a request has the id of the run that first asked for it.
"""

from collections.abc import Collection, Mapping
from typing import Any

import dagster as dg
from dagster._config import ConfigScalar, ConfigScalarKind
from pydantic import Field

from keptlog.dagster.assets.erasures import bring_erasures_on, look_at_erasures
from keptlog.dagster.assets.long_tags import as_tags
from keptlog.dagster.assets.lost_topics import FOLDERS
from keptlog.dagster.assets.mount import Mount, MountCall, Run
from keptlog.dagster.assets.numbers import Metadata
from keptlog.dagster.assets.outage import FAILED_TAG, Context, tell_in_tags, telling_outages
from keptlog.dagster.orchestration.own_runs import ERASE_JOB_NAME, VERIFY_ERASURES_JOB_NAME
from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, first_line
from keptlog.log.erasures.erasure import ErasureState
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time, next_time, time_from
from keptlog.log.words.named import named_lines
from keptlog.passes.erasures.erasure_request import ErasureProposal, ErasureRequest, ErasureResult, ErasureRow
from keptlog.storage.key_hash import TOLD_FORM, told_hash

_TOLD = 5


class KeyHashText(ConfigScalar):
    """The keyed hash of a key, as hex; Dagster asks it before it makes a run of a configuration."""

    def __init__(self) -> None:
        super().__init__(
            key="KeyHash",
            given_name="KeyHash",
            scalar_kind=ConfigScalarKind.STRING,
            description="The keyed hash of a key after the fingerprint of its secret, by `keptlog erase --hash`.",
        )

    def post_process(self, value: str) -> str:
        """The hash itself.

        Raises:
            InvalidConfig: it is something else, perhaps a key; does not say which.
        """
        try:
            return str(told_hash(value))
        except ValueError:
            raise InvalidConfig(
                f"key_hashes has an entry of {counted(len(value), 'character')} that is no keyed hash, and no run was "
                f"made of it: give {TOLD_FORM}, and never a key"
            ) from None


_ERASE_CONFIG = {
    "topics": dg.Field([str], description="The topics to erase from."),
    "key_hashes": dg.Field(dg.Array(KeyHashText()), description="Keyed hashes of the keys: `keptlog erase --hash`."),
    "by": dg.Field(
        str,
        default_value="",
        description="The deadline: 2026-12-01T00:00Z, or 30d. Empty for what each topic promises.",
    ),
    "reason": dg.Field(str, default_value="", description="Stored with the request, and shown; no key in it."),
    "here": dg.Field(bool, default_value=False, description="Ingested topics: drop the records here at once."),
    "id": dg.Field(str, default_value="", description="Names the request; empty for the id of the run."),
}


def erase_job(mount: Mount) -> dg.JobDefinition:
    """``erase`` of a home."""

    @dg.op(
        name=mount.name("ask_for_erasure"),
        config_schema=_ERASE_CONFIG,
        required_resource_keys=mount.needs("log_store", "spark", "clock"),
        description="Ask that no record of the keys is anywhere in the topics from the deadline on.",
    )
    def ask_for_erasure(context: dg.OpExecutionContext) -> None:
        _ask_for_erasure(MountCall(mount, context), context.op_config)

    @dg.job(
        name=mount.name(ERASE_JOB_NAME),
        executor_def=dg.in_process_executor,
        description="Erase keys, given by their keyed hashes, from topics by a deadline.",
    )
    def erase() -> None:
        ask_for_erasure.alias("ask_for_erasure")()

    return erase


def _ask_for_erasure(run: Run, config: Mapping[str, Any]) -> None:
    context, now_ms = run.context, run.now_ms()
    with telling_outages(context, now_ms, run.log_store):
        eraser = run.log_store.eraser(run.spark)
        asked_as = config["id"] or context.run.root_run_id
        try:
            request = ErasureRequest(
                id=asked_as or context.run.run_id,
                topics=config["topics"],
                key_hashes=config["key_hashes"],
                deadline_ms=time_from(config["by"], now_ms) if config["by"] else None,
                reason=config["reason"],
                is_here=config["here"],
            )
            proposal = eraser.propose(request, now_ms=now_ms, is_new=not asked_as)
            _tell_proposal(context, proposal)
            result = eraser.request(proposal, now_ms=now_ms, progress=context.log.info)
        except StorageUnavailable:
            raise
        except KeptlogError as error:
            raise dg.Failure(f"nothing was asked for: {first_line(error)}", allow_retries=False) from error
    _tell_result(context, result)
    more: Metadata = {"request": request.id, "keys": proposal.key_count}
    bring_erasures_on(run, lambda: look_at_erasures(run.log_store, now_ms, result.erasures), more)
    _fail_if_any(result.failed, "not asked for, or not done here")


class VerifyErasuresConfig(dg.Config):
    """Which erasures to verify."""

    ids: list[str] = Field(default=[], description="Requests to verify; all that are deleted if empty.")
    topics: list[str] = Field(default=[], description="Topics in which to verify them; all if empty.")


def verify_erasures_job(mount: Mount) -> dg.JobDefinition:
    """``verify_erasures`` of a home."""

    @dg.op(
        name=mount.name("verify_deleted"),
        required_resource_keys=mount.needs("log_store", "spark", "clock"),
        description="Look every file through for the keys, on Spark, and end the erasures of which nothing is left.",
    )
    def verify_deleted(context: dg.OpExecutionContext, config: VerifyErasuresConfig) -> None:
        _verify_deleted(MountCall(mount, context), config)

    @dg.job(
        name=mount.name(VERIFY_ERASURES_JOB_NAME),
        executor_def=dg.in_process_executor,
        description="Prove of erasures that are deleted that nothing is left: those that are named, or all.",
    )
    def verify_erasures() -> None:
        verify_deleted.alias("verify_deleted")()

    return verify_erasures


def _verify_deleted(run: Run, config: VerifyErasuresConfig) -> None:
    context, now_ms = run.context, run.now_ms()
    with telling_outages(context, now_ms, run.log_store):
        eraser = run.log_store.eraser(run.spark)
        try:
            found = eraser.verify(config.ids, config.topics, now_ms=now_ms, progress=context.log.info)
        except StorageUnavailable:
            raise
        except KeptlogError as error:
            raise dg.Failure(f"nothing was verified: {first_line(error)}", allow_retries=False) from error
    # A run that has looked fails too if something is left: the sensor asks which topics it did not look at.
    tell_in_tags(context.instance, context.run.run_id, as_tags(FAILED_TAG, ",".join(sorted(found.failed))))
    meant = [row for row in found.rows if not config.ids or row.id in config.ids]
    verified = [row for row in meant if row.is_verified_now]
    for row in meant:
        _tell_verification(context, row)
    more: Metadata = {"verified": len(verified)}
    first = () if config.ids or config.topics else [FOLDERS]  # of these the verification has looked there too
    bring_erasures_on(run, lambda: look_at_erasures(run.log_store, now_ms, first, found), more)
    left = {f"{row.id} in {row.topic}": row for row in meant if _is_left(row, config.ids)}
    _fail_if_any({**found.failed, **_as_errors(left)}, "not verified")


def _tell_proposal(context: Context, proposal: ErasureProposal) -> None:
    context.log.info("request %s: %s", proposal.request.id, counted(proposal.key_count, "key"))
    for topic, each in proposal.topics.items():
        if each.is_repeated:
            context.log.info("%s has this request already", topic)
            continue
        deadline = f"none, {each.no_promise}" if each.deadline_ms is None else iso_time(each.deadline_ms)
        earliest = next_time(each.earliest_ms)
        context.log.info("%s: by %s; deadline %s; done %s at the earliest", topic, each.way, deadline, earliest)
        for hindrance in each.hindrances:
            context.log.warning("%s: %s", topic, hindrance)


def _tell_result(context: Context, result: ErasureResult) -> None:
    for topic, erasure in result.erasures.items():
        again = " before" if topic in result.repeated else ""
        context.log.info("%s: asked for%s, %s", topic, again, erasure.state)
    for topic, error in result.failed.items():
        context.log.error("%s: %s", topic, first_line(error))


def _tell_verification(context: Context, row: ErasureRow) -> None:
    if not row.erasure.key_hashes:
        context.log.warning("%s in %s: %s", row.id, row.topic, "; ".join(row.blocked))
    elif row.erasure.is_open and row.erasure.state is not ErasureState.DELETED:
        context.log.info("%s in %s: only %s, not verified yet", row.id, row.topic, row.erasure.state)
    elif row.erasure.is_open:
        for text in row.blocked:
            context.log.error("%s in %s: %s", row.id, row.topic, text)
    else:
        context.log.info("%s in %s: verified", row.id, row.topic)


def _is_left(row: ErasureRow, named: Collection[str]) -> bool:
    """Whether a search has ended without the proof; one of no key is none either for who asks for it by its name."""
    if not row.erasure.key_hashes:
        return row.id in named
    return row.erasure.is_open and row.erasure.state is ErasureState.DELETED


def _as_errors(left: Mapping[str, ErasureRow]) -> dict[str, KeptlogError]:
    return {name: KeptlogError("; ".join(row.blocked) or "it was not looked through") for name, row in left.items()}


def _fail_if_any(failed: Mapping[str, KeptlogError], what: str) -> None:
    """End the run as failed, after all that was done has been told.

    Raises:
        Failure: naming each and its reason.
    """
    if failed:
        lines = named_lines({name: first_line(error) for name, error in failed.items()})[:_TOLD]
        more = f"; and {len(failed) - _TOLD} more" if len(failed) > _TOLD else ""
        raise dg.Failure(f"{len(failed)} {what}: {'; '.join(lines)}{more}", allow_retries=False)
