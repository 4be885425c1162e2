"""Tombstones of a large log whose records have versions go, although there is always something to clean."""

from __future__ import annotations

from pathlib import Path

from tests.passes.test_in_legs import HOUR_MS, Scene


def test_tombstones_expire_although_each_pass_finds_new_data_to_clean(tmp_path: Path) -> None:
    scene = Scene(tmp_path, compaction_strategy="timestamp")
    scene.append(("a", None)).append(("b", "1")).clean()
    scene.now_ms += 2 * HOUR_MS
    for value in ("2", "3"):
        assert not scene.append(("b", value)).clean().failed
    assert [key for _, key, _ in scene.records] == ["b"]
    assert scene.checkpoint == 4
