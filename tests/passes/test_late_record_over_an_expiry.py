"""A late record is judged by the watermarks of when it came, though tombstones expire before it is cleaned."""

from __future__ import annotations

from pathlib import Path

from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.steps import Compact, Expire
from tests.passes.test_in_legs import HOUR_MS, NOW_MS, TOPIC, Scene


def test_an_expiry_forgets_no_watermark_that_a_late_record_may_need(tmp_path: Path) -> None:
    hours = {"compaction_strategy": "timestamp", "keptlog_watermark_retention_ms": str(6 * HOUR_MS)}
    scene = Scene(tmp_path, **hours)
    scene.commit_max_bytes = 2**40
    scene.append(("k", None)).append(*((f"b{number}", "1" * 1000) for number in range(50))).clean()
    scene.now_ms += 2 * HOUR_MS
    scene.clean(requested=False)  # k leaves its watermark
    scene.append(("x", None)).clean()
    late = [NewRecord(b"k", b"old", NOW_MS, 0)]
    scene.store.append(TOPIC, late, new_id(), scene.now_ms)

    scene.now_ms += 7 * HOUR_MS
    for requested, kind in ((False, Expire), (True, Compact)):
        [step] = scene.cleaner.plan(now_ms=scene.now_ms + HOUR_MS, requested=requested).steps
        assert isinstance(step, kind)
        assert not scene.clean(requested=requested).failed

    assert {"k", "x"}.isdisjoint(key for _, key, _ in scene.records)
