"""A case of ``clean``: what it may append and set, and what it is held to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keptlog.log.config import TopicConfig
from tests.conformance.cases import Difference
from tests.conformance.kinds import clean
from tests.conformance.logs import CaseLog, RuleLog, TableLog

NOW_MS = 1_700_000_000_000
ROLL = {"op": "roll"}
Open = Callable[[dict[str, str]], CaseLog]


@pytest.fixture(params=["rules", "table"])
def open_log(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "rules":
        return lambda settings: RuleLog(TopicConfig.of(settings))
    return lambda settings: TableLog(tmp_path, settings)


def cleaned(open_log: Open, *steps: dict[str, Any], **config: object) -> list[Difference]:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return clean.run({"config": settings, "steps": list(steps)}, open_log)


def batch(offset: int, key: str | None, value: str | None = "v", **producer: object) -> dict[str, Any]:
    return {"base": offset, "records": [[offset, key, value, NOW_MS]], **producer}


def append(*batches: dict[str, Any]) -> dict[str, Any]:
    return {"op": "append", "batches": list(batches)}


def pass_of(upper: int, *, first_dirty: int = 0, now_ms: int = NOW_MS, **expect: object) -> dict[str, Any]:
    return {"op": "clean", "first_dirty": first_dirty, "upper": upper, "now": now_ms, "expect": expect}


def test_only_records_with_a_key_and_a_value_are_listed(open_log: Open) -> None:
    steps = append(batch(0, "a"), batch(1, "a")), ROLL, append(batch(2, None)), ROLL, append(batch(3, "b"))
    listed = pass_of(2, keys_with_value=["a", "b"], value_and_marker_offsets=[1, 3])
    assert cleaned(open_log, *steps, listed) == []


def test_a_listed_key_must_not_be_that_of_a_record_without_one_that_never_entered(open_log: Open) -> None:
    aborted = append(batch(0, None, pid=1, txn=True), {"base": 1, "pid": 1, "control": "ABORT"}), ROLL
    with pytest.raises(AssertionError):
        cleaned(open_log, *aborted, pass_of(2, keys_with_value=[None]))


@pytest.mark.parametrize("wrong", [{"keys_with_value": ["a"]}, {"value_and_marker_offsets": [0, 1, 2]}])
def test_other_keys_and_offsets_than_are_there_are_told(open_log: Open, wrong: dict[str, Any]) -> None:
    steps = append(batch(0, "a"), batch(1, None), batch(2, "b")), ROLL
    with pytest.raises(AssertionError):
        cleaned(open_log, *steps, pass_of(3, **wrong))


def recopied(open_log: Open, *, after_ms: int, **expect: object) -> list[Difference]:
    """A pass with nothing dirty over a record and a tombstone that expires after 100 ms."""
    first = append(batch(0, "a"), batch(1, "b")), ROLL, pass_of(2), append(batch(2, "a", None)), ROLL
    stamped = pass_of(3, first_dirty=2, messages_read=3, messages_written=2), append(batch(3, "c"))
    again = pass_of(3, first_dirty=3, now_ms=NOW_MS + after_ms, **expect)
    return cleaned(open_log, *first, *stamped, again, delete_retention_ms=100)


def test_a_pass_with_nothing_to_do_is_held_to_what_kafka_copies_again(open_log: Open) -> None:
    (difference,) = recopied(open_log, after_ms=99, messages_read=2, messages_written=2)
    assert difference.adr == 6


def test_an_expiry_is_held_to_what_kafka_copies_again(open_log: Open) -> None:
    assert recopied(open_log, after_ms=100, messages_read=2, messages_written=1) == []


@pytest.mark.parametrize("after_ms", [99, 100])
@pytest.mark.parametrize("wrong", [{"messages_read": 1}, {"messages_read": 3}, {"messages_written": 0}])
def test_a_copy_of_other_records_than_are_there_is_told(open_log: Open, after_ms: int, wrong: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        recopied(open_log, after_ms=after_ms, **wrong)


@pytest.mark.parametrize("policy", ["delete", "", "compact", "compact,delete", ["delete"]])
def test_a_log_that_is_cleaned_is_compacted_whatever_its_policy_says(open_log: Open, policy: object) -> None:
    steps = append(batch(0, None), batch(1, "a"), batch(2, "a")), ROLL
    wanted = pass_of(3, data=[[2, "a", "v"]], invalid=1)
    assert cleaned(open_log, *steps, wanted, cleanup_policy=policy) == []


@pytest.mark.parametrize(
    "control",
    [
        {"records": []},
        {"records": [], "last": 1, "seq": 7, "txn": True},
        {"last": 1},
        {"txn": True, "ts": NOW_MS},
    ],
)
def test_a_control_batch_has_the_fields_of_any_batch(open_log: Open, control: dict[str, Any]) -> None:
    marker = {"base": 1, "pid": 1, "epoch": 0, "control": "ABORT"} | control
    steps = append(batch(0, "a", pid=1, epoch=0, seq=0, txn=True), marker, batch(2, "b")), ROLL
    (difference,) = cleaned(open_log, *steps, pass_of(3, keys_with_value=["b"], value_and_marker_offsets=[1, 2]))
    assert difference.adr == 15


def test_a_batch_that_says_that_it_is_no_control_batch_is_none(open_log: Open) -> None:
    steps = append(batch(0, "a", control=None), batch(1, "b", control=False)), ROLL
    assert cleaned(open_log, *steps, pass_of(2, keys_with_value=["a", "b"])) == []


def test_settings_that_mean_nothing_here_decide_nothing(open_log: Open) -> None:
    steps = append(batch(0, "a"), batch(1, "a")), ROLL
    config = {
        "segment_index_bytes": 100,
        "index_interval_bytes": 1,
        "segment_jitter_ms": 5,
        "producer_id_expiration_ms": 1000,
        "segment_bytes": 1024,
    }
    assert cleaned(open_log, *steps, pass_of(2, data=[[1, "a", "v"]]), **config) == []


def test_a_setting_that_nobody_knows_is_told(open_log: Open) -> None:
    with pytest.raises(ValueError, match="there is no setting"):
        cleaned(open_log, append(batch(0, "a")), segment_index_byte=100)


EARLY = append(batch(0, "a"), batch(1, "b", None), batch(2, "c")), ROLL, pass_of(3, next_dirty=1) | {"max_keys": 1}
"""The first pass ends before the tombstone. Kafka stamps it all the same, so it goes a pass earlier (ADR 12)."""


@pytest.mark.parametrize(
    "expect",
    [
        {"data": [[0, "a", "v"], [2, "c", "v"]]},
        {"batch_last_offsets": [0, 2]},
        {"batch_base_offsets": [0, 2]},
        {"messages_written": 2},
        {"messages_written": 2, "batch_last_offsets": [0, 2], "data": [[0, "a", "v"], [2, "c", "v"]]},
        {"delete_horizons": {}},
    ],
)
def test_a_tombstone_that_kafka_stamped_early_may_stay_longer(open_log: Open, expect: dict[str, Any]) -> None:
    second = pass_of(3, first_dirty=1, now_ms=NOW_MS + 100, **expect)
    differences = cleaned(open_log, *EARLY, second, delete_retention_ms=100)
    assert {difference.adr for difference in differences} == {12}


def test_the_first_batch_may_be_a_tombstone_that_kafka_stamped_early(open_log: Open) -> None:
    steps = append(batch(0, "a"), batch(1, "b", None), batch(2, "a")), ROLL, pass_of(3, next_dirty=1) | {"max_keys": 1}
    second = pass_of(3, first_dirty=1, now_ms=NOW_MS + 100, first_batch_last_offset=2)
    (difference,) = cleaned(open_log, *steps, second, delete_retention_ms=100)
    assert difference.adr == 12


@pytest.mark.parametrize(
    "expect",
    [
        {"batch_last_offsets": [0]},
        {"batch_base_offsets": [2]},
        {"messages_written": 1},
        {"messages_written": 4},
        {"first_batch_last_offset": 2},
        {"data": [[0, "a", "v"], [2, "c", "v"]], "batch_last_offsets": [0, 1]},
    ],
)
def test_nothing_else_may_be_there_because_of_an_early_stamp(open_log: Open, expect: dict[str, Any]) -> None:
    second = pass_of(3, first_dirty=1, now_ms=NOW_MS + 100, **expect)
    with pytest.raises(AssertionError):
        cleaned(open_log, *EARLY, second, delete_retention_ms=100)


def test_a_tombstone_that_kafka_stamped_early_stays_until_its_horizon_there_too(open_log: Open) -> None:
    second = pass_of(3, first_dirty=1, now_ms=NOW_MS + 99, batch_last_offsets=[0, 2])
    with pytest.raises(AssertionError):
        cleaned(open_log, *EARLY, second, delete_retention_ms=100)


def test_a_later_pass_of_kafka_does_not_read_what_it_removed_early(open_log: Open) -> None:
    second = pass_of(3, first_dirty=1, now_ms=NOW_MS + 100, batch_last_offsets=[0, 2])
    more = append(batch(3, "c")), ROLL
    third = pass_of(
        4, first_dirty=3, now_ms=NOW_MS + 101, messages_read=3, messages_written=2, data=[[0, "a", "v"], [3, "c", "v"]]
    )
    differences = cleaned(open_log, *EARLY, second, *more, third, delete_retention_ms=100)
    assert {difference.adr for difference in differences} == {12}


def rows(*described: list[Any]) -> dict[str, Any]:
    """One batch of records, each with an offset, a key and a value."""
    return {"base": described[0][0], "records": [[*row, NOW_MS] for row in described]}


CUT = append(rows([0, "a", "v"], [1, None, "v"], [2, "b", "v"]), batch(3, "c")), ROLL
"""With room for one key Kafka's first pass ends behind the first record, and ours behind the second (ADR 12)."""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"invalid": 0, "messages_read": 4, "messages_written": 4}, {"invalid": 1, "messages_read": 4}),
        ({"next_dirty": 1, "data": [[0, "a", "v"], [1, None, "v"], [2, "b", "v"], [3, "c", "v"]]}, {"invalid": 1}),
        ({"latest_offset": 0}, {"messages_written": 3, "next_dirty": 3}),
    ],
)
def test_a_record_without_a_key_in_a_batch_that_was_cut_goes_a_pass_later_in_kafka(
    open_log: Open, first: dict[str, Any], second: dict[str, Any]
) -> None:
    passes = pass_of(4, **first) | {"max_keys": 1}, pass_of(4, first_dirty=1, **second) | {"max_keys": 1}
    (difference,) = cleaned(open_log, *CUT, *passes)
    assert difference.adr == 12


@pytest.mark.parametrize(
    "wrong",
    [{"invalid": 1}, {"messages_read": 3}, {"messages_written": 3}, {"messages_written": 5}, {"next_dirty": 0}],
)
def test_the_counts_of_a_batch_that_was_cut_differ_by_nothing_else(open_log: Open, wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        cleaned(open_log, *CUT, pass_of(4, **wrong) | {"max_keys": 1})


def test_a_segment_that_begins_without_a_key_is_visited_a_pass_later_in_kafka(open_log: Open) -> None:
    steps = append(batch(0, "a")), ROLL, append(rows([1, None, "v"], [2, "b", "v"])), ROLL
    first = pass_of(3, next_dirty=1, messages_read=1, messages_written=1, invalid=0) | {"max_keys": 1}
    second = pass_of(
        3, first_dirty=1, messages_read=3, messages_written=2, invalid=1, data=[[0, "a", "v"], [2, "b", "v"]]
    )
    (difference,) = cleaned(open_log, *steps, first, second)
    assert difference.adr == 12


GROWN = append(batch(0, "a"), batch(1, "b")), ROLL, append(batch(2, "a")), pass_of(2), append(batch(3, "c")), ROLL
"""The pass is before the last append, to a segment that is active still."""


def test_a_segment_that_grows_after_a_pass_is_one(open_log: Open) -> None:
    rest = [[0, "a", "v"], [1, "b", "v"], [2, "a", "v"]]
    before = [*GROWN[:3], pass_of(2, data=rest), *GROWN[4:]]
    full = pass_of(4, first_dirty=2, messages_read=4, messages_written=3, data=[*rest[1:], [3, "c", "v"]])
    assert cleaned(open_log, *before, full | {"max_keys": 1}) == []


def test_records_of_a_segment_that_grows_are_compared(open_log: Open) -> None:
    with pytest.raises(AssertionError):
        cleaned(open_log, *GROWN[:3], pass_of(2, data=[[0, "a", "v"], [1, "b", "v"]]), *GROWN[4:])


def test_a_horizon_is_no_later_than_readers_can_show(open_log: Open) -> None:
    late = pass_of(1, now_ms=2**63 - 2 - 86_400_000, delete_horizons={"0": 2**63 - 2})
    (difference,) = cleaned(open_log, append(batch(0, "a", None)), ROLL, late)
    assert difference.adr == 3


@pytest.mark.parametrize(
    ("now_ms", "horizon_ms"), [(NOW_MS, 2**63 - 2), (2**63 - 2 - 86_400_000, NOW_MS), (NOW_MS, NOW_MS)]
)
def test_no_other_horizon_may_differ(open_log: Open, now_ms: int, horizon_ms: int) -> None:
    wrong = pass_of(1, now_ms=now_ms, delete_horizons={"0": horizon_ms})
    with pytest.raises(AssertionError):
        cleaned(open_log, append(batch(0, "a", None)), ROLL, wrong)
