"""``strategy``: which records KIP-280 leaves of a log, against a log of the product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keptlog.log.record import Record
from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields, compacted, understood
from tests.conformance.logs import CaseLog, Pass
from tests.conformance.transactions import NO_TIMESTAMP_MS, headers_of, in_bytes

_DIALECTS = {"pr8103": "the abandoned patch takes a header's first occurrence, and none that is not positive"}


def run(case: Fields, open_log: Callable[[dict[str, str]], CaseLog]) -> list[Difference]:
    fields = case_fields(case, {"dialect"}, {"config", "records", "expect"})
    expect = understood(fields["expect"], "expect", set(), {"surviving_offsets"})
    log = open_log(compacted(fields["config"]))
    records = [_record(each) for each in fields["records"]]
    if records:
        log.append(records)
        log.clean(Pass(records[0].offset, records[-1].offset + 1, now_ms=0))
    found = [record.offset for record in log.records()]
    dialect = fields.get("dialect")
    if dialect is not None and dialect not in _DIALECTS:
        raise NotUnderstoodError(f"there is no dialect {dialect!r}")
    if dialect and found != expect["surviving_offsets"]:
        _check_possible(records, expect["surviving_offsets"])
        return [Difference(20, _DIALECTS[dialect])]
    assert found == expect["surviving_offsets"]
    return []


def _check_possible(records: Sequence[Record], offsets: Sequence[int]) -> None:
    """Whatever a dialect takes for the latest: of each key something stays, and nothing that was not there."""
    keys = {record.offset: record.key for record in records}
    assert list(offsets) == sorted(keys.keys() & set(offsets)), offsets
    assert {keys[offset] for offset in offsets} == set(keys.values()), offsets


def _record(fields: Fields) -> Record:
    understood(fields, "record", {"headers", "value", "ts"}, {"offset", "key"})
    value = in_bytes(fields.get("value", "v"))
    headers = headers_of(fields.get("headers", []))
    return Record(fields["offset"], in_bytes(fields["key"]), value, fields.get("ts", NO_TIMESTAMP_MS), headers=headers)
