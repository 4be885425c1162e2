"""Forms in which a case may say the same thing, and empty cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keptlog.log.config import TopicConfig
from tests.conformance.cases import Fields, NotUnderstoodError, load
from tests.conformance.kinds import clean, plain, retention, roll, select, state, strategy
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


def in_file(folder: Path, case: dict[str, Any]) -> Fields:
    """A case as it is read."""
    path = folder / "cases.json"
    path.write_text(json.dumps({"cases": [case]}), encoding="utf-8")
    return load(path)[0]


LOG = {"name": "l", "leo": 20, "segments": [{"base": 0, "size": 9, "largest_ts": 5}, {"base": 20, "size": 0}]}
SELECT = {"now": 9, "logs": [LOG], "expect": {"selected": "l"}}
RETAIN = {"config": {"retention.ms": 1}, "segments": LOG["segments"], "leo": 20, "steps": []}
MAP = {"memory": 48, "load_factor": 0.75, "expect": {"slots": 2}}
ROWS = [[0, "a", "v", 1], [1, "a", "w", 1]]
APPEND = {"op": "append", "batches": [{"base": 0, "records": ROWS, "last": None, "pid": None, "txn": None}]}
CLEAN = {"op": "clean", "first_dirty": 0, "upper": None, "now": 0, "max_keys": None}


@pytest.mark.parametrize("name", ["config", "lso", "log_start", "hw", "checkpoint", "policy", "uncleanable", "state"])
def test_an_optional_field_that_is_null_is_not_there(tmp_path: Path, name: str) -> None:
    assert select.run(in_file(tmp_path, SELECT | {"logs": [LOG | {name: None}]})) == []


def test_a_null_may_stand_wherever_a_field_may_be_left_out(tmp_path: Path) -> None:
    step = {"now": 9, "log_start": None, "hw": None, "expect": {"deleted": 1}}
    assert retention.run(in_file(tmp_path, RETAIN | {"log_start": None, "hw": None, "steps": [step]})) == []
    assert plain.run_offset_map(in_file(tmp_path, MAP | {"hash": None, "threads": None})) == []
    steps = [APPEND, {"op": "roll", "base": None}, CLEAN | {"expect": None}, CLEAN | {"expect": {"data": ROWS[1:]}}]
    with pytest.raises(AssertionError):
        clean.run(in_file(tmp_path, {"config": None, "steps": steps}), rules)
    steps[-1] = CLEAN | {"expect": {"data": [ROWS[1][:3]], "next_dirty": 2}}
    assert clean.run(in_file(tmp_path, {"config": None, "steps": steps}), rules) == []
    records = [{"offset": 0, "key": "a", "ts": 5}, {"offset": 1, "key": "a", "ts": None, "headers": None}]
    case = {"config": {"compaction.strategy": None}, "records": records, "expect": {"surviving_offsets": [1]}}
    assert strategy.run(in_file(tmp_path, case | {"dialect": None}), rules) == []


def test_a_null_that_says_something_or_that_nobody_knows_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        select.run(in_file(tmp_path, SELECT | {"expect": {"selected": None}}))
    with pytest.raises(NotUnderstoodError, match="n_segments"):
        clean.run(in_file(tmp_path, {"steps": [APPEND, CLEAN | {"expect": {"n_segments": None}}]}), rules)
    with pytest.raises(NotUnderstoodError, match="first_dirty"):
        clean.run(in_file(tmp_path, {"steps": [APPEND, {"op": "clean", "now": 0}]}), rules)
    unset = {"props": {"retention.ms": None}, "expect": {"valid": True}}
    with pytest.raises(AssertionError):
        plain.run_config(in_file(tmp_path, unset))


@pytest.mark.parametrize("value", ["x", "", ["x", "y"], []])
def test_a_case_is_described_in_any_words(value: object) -> None:
    assert plain.run_offset_map(MAP | {"description": value, "tags": value}) == []


@pytest.mark.parametrize("unknown", [{"version": 3}, {"given": {"x": 1}}, {"tags": [1]}, {"hw": "x"}, {"policy": "x"}])
def test_what_is_no_description_must_be_understood(unknown: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstoodError, match=next(iter(unknown))):
        plain.run_offset_map(MAP | unknown)


def test_a_record_without_a_timestamp_has_none() -> None:
    assert record_of([0, "a", "v"]) == record_of([0, "a", "v", None]) == record_of([0, "a", "v", -1])
    with pytest.raises(NotUnderstoodError):
        record_of([0, "a", "v", 1, [], 7])


def test_a_number_is_a_key_by_its_digits() -> None:
    rows: list[list[Any]] = [[0, 1, 2, 1], [1, 1, 3, 1], [2, 7, None, 1]]
    assert cleaned(rows, 0, data=[[1, 1, 3], [2, 7, None]], map={"1": 1, "7": 2}) == []
    assert cleaned(rows, 0, keys_with_value=[1], data=[[1, "1", "3"], [2, "7", None]]) == []
    with pytest.raises(AssertionError):
        cleaned(rows, 0, data=[[1, 1, 2], [2, 7, None]])


def rolled(*appends: dict[str, Any], **config: object) -> list[Any]:
    events = [{"op": "append", "now": 0, "ts": 0, "size": 10} | each for each in appends]
    settings = {"segment.ms": 1000} | {name.replace("_", "."): value for name, value in config.items()}
    return roll.run({"config": settings, "events": events})


def test_kafka_rolls_where_an_offset_is_too_far_from_the_base() -> None:
    far = 2**31 + 5
    (difference,) = rolled(
        {"offset": 5, "segments": 1}, {"offset": far - 1, "segments": 1}, {"offset": far, "segments": 2}
    )
    assert difference.adr == 19
    for wrong in ({"offset": far, "segments": 1}, {"offset": 2**31 - 11, "segments": 2}):
        with pytest.raises(AssertionError):
            rolled({"offset": 5, "segments": 1}, wrong)


def test_the_base_of_kafkas_first_segment_may_lie_below_the_first_offset_that_a_case_tells() -> None:
    (difference,) = rolled({"offset": 5, "segments": 1}, {"offset": 2**31, "segments": 2})
    assert difference.adr == 19
    assert rolled({"offset": 2**31, "segments": 2}, {"offset": 2**31 + 1, "segments": 2}) == [difference]
    with pytest.raises(AssertionError):
        rolled({"offset": 5, "segments": 2}, {"offset": 6, "segments": 2})


def test_kafka_rolls_where_an_index_is_full() -> None:
    three = {"segments": 1}, {"segments": 1}, {"segments": 2}
    (difference,) = rolled(*three, segment_index_bytes=24, index_interval_bytes=9)
    assert difference.adr == 19
    for config in ({"segment_index_bytes": 36, "index_interval_bytes": 9}, {"segment_index_bytes": 24}, {}):
        with pytest.raises(AssertionError):
            rolled(*three, **config)


@pytest.mark.parametrize(
    "op", ["grab", "grab_filthiest_compacted_log", "maybe_truncate_checkpoint", "mark_uncleanable"]
)
def test_what_kafkas_cleaner_manager_is_asked_for_is_known_and_is_no_state_here(op: str) -> None:
    (difference,) = state.run({"ops": [{"op": op, "state": None}]})
    assert difference.adr == 13
    with pytest.raises(NotUnderstoodError, match=f"{op}_not"):
        state.run({"ops": [{"op": f"{op}_not"}]})
