"""The tick that a mount leaves: one that can't be understood is unknown, and hides no other mount's silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.told.conditions import Matter, Thresholds
from keptlog.notify.ticks import leave_tick
from keptlog.passes.watch import tick_evidence

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000


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
