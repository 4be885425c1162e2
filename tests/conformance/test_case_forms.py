"""Forms in which a case may say the same thing, and empty cases."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.log.config import TopicConfig
from tests.conformance.cases import NotUnderstoodError
from tests.conformance.kinds import clean, plain, roll, strategy
from tests.conformance.logs import CaseLog, RuleLog
from tests.conformance.transactions import record_of

VERSIONED = {"compaction.strategy": "header", "compaction.strategy.header": "sequence"}


def rules(settings: dict[str, str]) -> CaseLog:
    return RuleLog(TopicConfig.of(settings))


def by_strategy(records: list[dict[str, Any]], *offsets: int, **config: object) -> list[Any]:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return strategy.run({"config": settings, "records": records, "expect": {"surviving_offsets": [*offsets]}}, rules)


@pytest.mark.parametrize("headers", [None, []])
def test_a_record_without_headers_says_so_in_two_ways(headers: object) -> None:
    assert record_of([0, "a", "v", 1, headers]) == record_of([0, "a", "v", 1])


@pytest.mark.parametrize("header", [["sequence", 7], {"key": "sequence", "value": 7}])
def test_a_header_is_a_pair_or_an_object(header: object) -> None:
    records = [{"offset": 0, "key": "a", "ts": 0, "headers": [header]}, {"offset": 1, "key": "a", "ts": 0}]
    assert by_strategy(records, 0, **VERSIONED) == []
    assert record_of([0, "a", "v", 1, [header]]).headers[0][0] == "sequence"


def test_a_header_object_has_a_key_and_a_value() -> None:
    with pytest.raises(NotUnderstoodError):
        record_of([0, "a", "v", 1, [{"name": "sequence", "value": 7}]])


@pytest.mark.parametrize("name", ["timestamp", "", "offset"])
def test_without_records_none_survives(name: str) -> None:
    assert by_strategy([], compaction_strategy=name) == []
    with pytest.raises(AssertionError):
        by_strategy([], 0, compaction_strategy=name)


def test_without_segments_there_are_no_groups() -> None:
    case = {"segments": [], "max_size": 100, "max_index": 100, "first_uncleanable": 0}
    assert plain.run_grouping(case | {"expect": {"groups": []}}) == []
    with pytest.raises(AssertionError):
        plain.run_grouping(case | {"expect": {"groups": [[0]]}})


def test_an_append_without_a_time_has_no_timestamp_and_rolls_by_size() -> None:
    first = {"op": "append", "now": 0, "size": 10, "segments": 1}
    events = [first, {"op": "append", "now": 0, "size": 1, "segments": 2}]
    config = {"segment.ms": 1000, "segment.bytes": 10}
    assert roll.run({"config": config, "events": events}) == []


def cleaned(records: list[list[Any]], first_dirty: int, **expect: object) -> list[Any]:
    append = {"op": "append", "batches": [{"base": row[0], "records": [row]} for row in records]}
    step = {"op": "clean", "first_dirty": first_dirty, "upper": len(records), "now": 0, "expect": expect}
    return clean.run({"steps": [append, {"op": "roll"}, step]}, rules)


def test_a_clean_tells_the_map_that_it_went_by() -> None:
    rows = [[0, "a", "v", 1], [1, "b", "v", 1], [2, "a", None, 1]]
    assert cleaned(rows, 0, map={"a": 2, "b": 1}, map_size=2) == []
    assert cleaned(rows, 2, map={"a": 2}) == []
    assert cleaned(rows, 3, map={}) == []
    with pytest.raises(AssertionError):
        cleaned(rows, 0, map={"a": 0, "b": 1})
