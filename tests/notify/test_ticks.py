"""The ticks that a mount leaves: one that can't be understood is unknown, and hides no other mount's silence.

A sensor that fails at each tick is told although the other sensors of its mount tick.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.told.conditions import Matter, Thresholds
from keptlog.notify.ticks import begin_tick, leave_tick
from keptlog.passes.watch import tick_evidence

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000
MINUTE_MS = 60_000


@pytest.mark.parametrize(
    "content", [b'{"at_ms": 18', b'{"at_ms": 1e400, "interval_ms": 1}', b'{"at_ms": true, "interval_ms": 1}', b"[]"]
)
def test_a_damaged_tick_of_one_mount_hides_no_silence_of_another(tmp_path: Path, content: bytes) -> None:
    for mount in ("a_", "b_"):
        leave_tick(tmp_path, mount, NOW_MS - 10 * DAY_MS, 30_000)
    (tmp_path / "notify/ticks-a.json").write_bytes(content)
    seen = tick_evidence(tmp_path, NOW_MS, Thresholds())
    assert [each.subject for each in seen.conditions] == ["the cleaning sensors of b"]
    assert "ticks-a.json is damaged" in seen.unknown[Matter.SENSORS]
    assert Matter.SENSORS not in seen.judged, "what was told of a is not over"


def _told(home: Path, now_ms: int) -> list[str]:
    return [each.subject for each in tick_evidence(home, now_ms, Thresholds()).conditions]


def _minutes(home: Path, count: int, *, begins: str = "crm_a", from_ms: int = NOW_MS) -> int:
    """So many minutes in which one sensor begins a tick each minute, and another one ends its own well."""
    for now_ms in range(from_ms, from_ms + count * MINUTE_MS, MINUTE_MS):
        begin_tick(home, "crm_", begins, now_ms, 30_000)
        begin_tick(home, "crm_", "crm_b", now_ms, 30_000)
        leave_tick(home, "crm_", now_ms, 30_000, "crm_b")
    return from_ms + count * MINUTE_MS


def test_a_sensor_that_fails_alone_is_told_by_its_name_until_it_ends_a_tick_well(tmp_path: Path) -> None:
    now_ms = _minutes(tmp_path, 10)
    assert _told(tmp_path, now_ms) == []
    now_ms = _minutes(tmp_path, 1, from_ms=now_ms)
    (condition,) = tick_evidence(tmp_path, now_ms, Thresholds()).conditions
    assert condition.subject == "crm_a"
    assert condition.text.startswith("no tick of crm_a has ended well for 11 minutes, since ")
    leave_tick(tmp_path, "crm_", now_ms, 30_000, "crm_a")
    assert _told(tmp_path, now_ms) == []


def test_a_sensor_that_was_turned_off_while_it_failed_is_not_missed_while_others_tick(tmp_path: Path) -> None:
    now_ms = _minutes(tmp_path, 20)
    assert _told(tmp_path, now_ms) == ["crm_a"]
    now_ms = _minutes(tmp_path, 20, begins="crm_c", from_ms=now_ms)
    assert _told(tmp_path, now_ms) == ["crm_c"]


def test_what_is_told_of_a_sensor_that_fails_is_not_over_where_all_have_stopped(tmp_path: Path) -> None:
    now_ms = _minutes(tmp_path, 20)
    assert _told(tmp_path, now_ms + DAY_MS) == ["the cleaning sensors of crm", "crm_a"]


def test_a_failing_tick_that_a_clock_which_was_ahead_has_dated_hides_no_later_ones(tmp_path: Path) -> None:
    begin_tick(tmp_path, "crm_", "crm_a", NOW_MS + DAY_MS, 30_000)
    assert _told(tmp_path, _minutes(tmp_path, 20)) == ["crm_a"]


def test_a_damaged_file_of_one_sensor_hides_no_other_and_is_mended_by_the_next_tick(tmp_path: Path) -> None:
    now_ms = _minutes(tmp_path, 20)
    damaged = tmp_path / "notify/ticks-crm-crm_b.json"
    damaged.write_bytes(b"{")
    seen = tick_evidence(tmp_path, now_ms, Thresholds())
    assert [each.subject for each in seen.conditions] == ["crm_a"]
    assert damaged.name in seen.unknown[Matter.SENSORS]
    begin_tick(tmp_path, "crm_", "crm_b", now_ms, 30_000)
    assert not tick_evidence(tmp_path, now_ms, Thresholds()).unknown
