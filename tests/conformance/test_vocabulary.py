"""Words of a case that Kafka's own tests seldom use: what they ask, and what they allow to differ."""

from __future__ import annotations

from typing import Any

import pytest

from keptlog.log.config import TopicConfig
from tests.conformance.cases import Difference, NotUnderstoodError
from tests.conformance.kinds import clean, retention, select
from tests.conformance.logs import RuleLog

NOW_MS = 1_700_000_000_000
EMPTY_ACTIVE = {"base": 20, "size": 0}


def segments(*largest_ms: int) -> list[dict[str, int]]:
    """Of ten offsets and ten bytes each."""
    return [{"base": 10 * index, "size": 10, "largest_ts": each} for index, each in enumerate(largest_ms)]


def retained(described: list[dict[str, int]], *steps: dict[str, Any], **config: object) -> list[Difference]:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return retention.run({"config": settings, "segments": described, "leo": 20, "steps": list(steps)})


def selected(described: dict[str, Any], expect: dict[str, Any]) -> list[Difference]:
    log = {"name": "l", "leo": 20, "config": {"max.compaction.lag.ms": 1_000}} | described
    return select.run({"now": NOW_MS, "logs": [log], "expect": {"per_log": {"l": expect}}})


def cleaned(*steps: dict[str, Any]) -> list[Difference]:
    return clean.run({"steps": list(steps)}, lambda settings: RuleLog(TopicConfig.of(settings)))


def appended(offset: int, key: str) -> dict[str, Any]:
    return {"op": "append", "batches": [{"base": offset, "records": [[offset, key, f"v{offset}", NOW_MS]]}]}


def pass_of(upper: int, **expect: object) -> dict[str, Any]:
    return {"op": "clean", "first_dirty": 0, "upper": upper, "now": NOW_MS, "expect": expect}


def test_a_ratio_of_null_is_that_of_nothing() -> None:
    assert selected({"segments": [{"base": 0, "size": 0}], "leo": 0}, {"ratio": None, "total_bytes": 0}) == []
    with pytest.raises(AssertionError):
        selected({"segments": [*segments(NOW_MS), EMPTY_ACTIVE]}, {"ratio": None})


def test_an_empty_active_segment_is_counted_where_kafka_has_it() -> None:
    old = [*segments(NOW_MS - 2, NOW_MS - 2), EMPTY_ACTIVE]
    gone = {"now": NOW_MS, "expect": {"deleted": 2, "n_segments": 1, "segment_bases": [20], "log_start": 20}}
    assert retained(old, gone, retention_ms=1) == []
    below = {"now": NOW_MS, "log_start": 20, "expect": {"deleted": 2, "segment_bases": [20]}}
    assert retained(old, below, retention_ms=-1) == []
    expect = {"first_uncleanable_segment": 20, "cleanable_bytes": 20}
    assert selected({"segments": old}, expect) == []


def test_a_high_watermark_holds_for_the_steps_behind_it() -> None:
    old = segments(NOW_MS - 2, NOW_MS - 2)
    first = {"now": NOW_MS, "hw": 10, "expect": {"deleted": 1}}
    assert retained(old, first, {"now": NOW_MS, "expect": {"deleted": 0}}, retention_ms=1) == []
    with pytest.raises(AssertionError):
        retained(old, first, {"now": NOW_MS, "expect": {"deleted": 1}}, retention_ms=1)


def test_what_lies_above_the_high_watermark_of_a_case_stays_out() -> None:
    two = [appended(0, "a"), appended(1, "a"), {"op": "roll"}]
    (difference,) = cleaned(*two, {"op": "set_hw", "value": 1}, pass_of(2, data=[[0, "a", "v0"], [1, "a", "v1"]]))
    assert difference.adr == 33
    assert cleaned(*two, {"op": "set_hw", "value": 2}, pass_of(2, data=[[1, "a", "v1"]])) == []


def test_a_clean_tells_how_many_keys_it_mapped_and_where_it_ended() -> None:
    three = [appended(0, "a"), appended(1, "b"), appended(2, "a"), {"op": "roll"}]
    assert cleaned(*three, pass_of(3, map_size=2, latest_offset=2)) == []
    assert cleaned(*three, pass_of(3, map_size=1, latest_offset=0) | {"max_keys": 1}) == []
    with pytest.raises(AssertionError):
        cleaned(*three, pass_of(3, map_size=3))


def test_segments_without_timestamps_stay_only_where_kafka_goes_by_time() -> None:
    untimed = segments(-1, NOW_MS)
    gone = {"now": NOW_MS, "expect": {"deleted": 1, "log_start": 10}}
    (difference,) = retained(untimed, gone, retention_ms=1)
    assert difference.adr == 14
    for config in ({"retention_ms": -1}, {"retention_ms": 1, "cleanup_policy": "compact"}):
        with pytest.raises(AssertionError):
            retained(untimed, gone, **config)
    with pytest.raises(AssertionError):
        retained(segments(NOW_MS, NOW_MS), gone, retention_ms=1)


@pytest.mark.parametrize("by", [{"retention_ms": 1}, {"retention_ms": -1, "retention_bytes": 0}])
def test_the_last_segment_below_the_log_start_goes_in_kafka_by_age_or_size(by: dict[str, object]) -> None:
    three = segments(NOW_MS - 2, NOW_MS - 2)
    gone = {"now": NOW_MS, "log_start": 20, "expect": {"deleted": 2, "n_segments": 1, "segment_bases": [20]}}
    kept = {"now": NOW_MS, "log_start": 20, "expect": {"deleted": 1, "segment_bases": [10]}}
    assert "takes its place" in str(*retained(three, gone, **by))
    with pytest.raises(AssertionError):
        retained(three, kept, **by)
    assert "Kafka keeps it" in str(*retained(three, kept, retention_ms=-1))
    with pytest.raises(AssertionError):
        retained(three, gone, retention_ms=-1)


@pytest.mark.parametrize(
    "expect", [{"deleted": 2}, {"n_segments": 1}, {"log_start": 20}, {"segment_bases": [20]}, {"n_segments": 2}]
)
def test_whatever_tells_that_segments_without_timestamps_went_by_their_files_counts(expect: dict[str, Any]) -> None:
    step = {"now": NOW_MS, "expect": expect}
    assert retained([*segments(-1, -1), EMPTY_ACTIVE], step, retention_ms=1)[0].adr == 14
    with pytest.raises(AssertionError):
        retained([*segments(NOW_MS, NOW_MS), EMPTY_ACTIVE], step, retention_ms=1)


def test_a_segment_without_timestamps_holds_up_only_here_what_is_old_behind_it() -> None:
    step = {"now": NOW_MS, "expect": {"n_segments": 1, "log_start": 20}}
    (difference,) = retained([*segments(-1, NOW_MS - 2), EMPTY_ACTIVE], step, retention_ms=1)
    assert difference.adr == 14
    with pytest.raises(AssertionError):
        retained([*segments(-1, NOW_MS), EMPTY_ACTIVE], step, retention_ms=1)


def test_a_high_watermark_of_the_case_holds_from_the_first_step() -> None:
    old = segments(NOW_MS - 2, NOW_MS - 2)
    case = {"config": {"retention.ms": 1}, "segments": old, "leo": 20, "hw": 10}
    assert retention.run(case | {"steps": [{"now": NOW_MS, "expect": {"deleted": 1, "log_start": 10}}]}) == []


def test_a_lag_may_be_longer_only_where_a_first_timestamp_is_missing() -> None:
    untimed = {"base": 0, "size": 10, "first_ts": 0, "largest_ts": NOW_MS - 3_000}
    late = {"max_compaction_delay_ms": 0, "need_compaction_now": False}
    (difference,) = selected({"segments": [untimed, EMPTY_ACTIVE]}, late)
    assert difference.adr == 9
    with pytest.raises(AssertionError):
        selected({"segments": [untimed | {"first_ts": NOW_MS - 3_000}, EMPTY_ACTIVE]}, late)
    with pytest.raises(AssertionError):
        selected({"segments": [untimed, EMPTY_ACTIVE]}, {"max_compaction_delay_ms": 5_000})


def test_a_segment_without_timestamps_is_as_old_in_kafka_as_its_file_is_said_to_be() -> None:
    young, old = ({"base": 0, "size": 10, "mtime": NOW_MS - age_ms} for age_ms in (1, 2))
    gone, stays = ({"now": NOW_MS, "expect": {"deleted": count}} for count in (1, 0))
    (difference,) = retained([old, EMPTY_ACTIVE], gone, retention_ms=1)
    assert difference.adr == 14
    assert retained([young, EMPTY_ACTIVE], stays, retention_ms=1) == []
    for described, wrong in ((old, stays), (young, gone), (young | {"largest_ts": NOW_MS}, gone)):
        with pytest.raises(AssertionError):
            retained([described, EMPTY_ACTIVE], wrong, retention_ms=1)


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_how_a_batch_is_compressed_decides_nothing(compression: str) -> None:
    (batch,) = appended(0, "a")["batches"]
    steps = {"op": "append", "batches": [batch | {"compression": compression}]}, {"op": "roll"}
    assert cleaned(*steps, pass_of(1, data=[[0, "a", "v0"]])) == []
    with pytest.raises(NotUnderstoodError, match="lzma"):
        cleaned({"op": "append", "batches": [batch | {"compression": "lzma"}]})
