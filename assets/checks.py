"""The checks of a clean section: the guarantees, on the stored log, and whether its last clean landed.

Specs and results both come from ``passes.verify.CHECKS``. A check is evaluated for the topic-partitions that a run
cleaned, and says for each of them what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from keptlog.dagster.assets.names import clean_key
from keptlog.dagster.assets.numbers import Metadata
from keptlog.log.segment import Log
from keptlog.passes.verify import CHECKS, Check, CheckResult, verify_log
from keptlog.table.store import LogStore

_CLEANED = Check("cleaned", "", "The last clean of every topic-partition landed; if not, the reason stands here.")


def check_specs(topic: str) -> list[dg.AssetCheckSpec]:
    """What a topic's clean section is checked for."""
    key = clean_key(topic)
    return [dg.AssetCheckSpec(_name(check), asset=key, description=check.description) for check in (*CHECKS, _CLEANED)]


def check_results(
    store: LogStore, topic: str, logs: Sequence[Log], now_ms: int, failed: Mapping[str, str]
) -> Iterator[dg.AssetCheckResult]:
    """One result for each spec of a topic, over these logs of it; ``failed`` names those whose clean did not land."""
    # A clean has just written the values; whoever verifies a log for good reads every byte of it.
    found = {str(log.topic_partition): verify_log(store, log, now_ms, every_byte=False) for log in logs}
    for index, check in enumerate(CHECKS):
        yield _result(topic, check, {name: results[index] for name, results in found.items()})
    landed = {name: CheckResult(_CLEANED.name, passed=True, description="landed", metadata={}) for name in found}
    not_landed = {
        name: CheckResult(_CLEANED.name, passed=False, description=reason, metadata={})
        for name, reason in failed.items()
    }
    yield _result(topic, _CLEANED, landed | not_landed)


def as_evaluation(topic: str, result: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """The same as an event that an op of any job may log."""
    return dg.AssetCheckEvaluation(
        asset_key=clean_key(topic),
        check_name=result.check_name or "",
        passed=result.passed,
        metadata=result.metadata,
        severity=result.severity,
        description=result.description,
    )


def _name(check: Check) -> str:
    return f"{check.name}_{check.title}" if check.title else check.name


def _result(topic: str, check: Check, found: Mapping[str, CheckResult]) -> dg.AssetCheckResult:
    not_passed = {name: result for name, result in found.items() if not result.passed}
    broken = [name for name, result in not_passed.items() if result.is_looked_at]
    rows = [
        dg.TableRecord({"topic_partition": name, "result": str(result.outcome), **result.metadata})
        for name, result in sorted(found.items())
    ]
    metadata: Metadata = {"checked": len(found), "broken": len(broken)}
    if rows:
        metadata["topic_partitions"] = dg.MetadataValue.table(rows)
    problems = "; ".join(f"{name}: {result.description}" for name, result in sorted(not_passed.items()))
    return dg.AssetCheckResult(
        asset_key=clean_key(topic),
        check_name=_name(check),
        passed=bool(found) and not not_passed,
        severity=dg.AssetCheckSeverity.WARN if check.warns_only else dg.AssetCheckSeverity.ERROR,
        description=problems or (None if found else "none of its logs can be read"),
        metadata=metadata,
    )
