"""A large log whose records have versions, in which there is always something to clean and something to expire.

Neither keeps the other waiting for more than a pass.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import new_id
from keptlog.log.record import NewRecord
from tests.passes.test_in_legs import HOUR_MS, TOPIC, Scene

LATE_MS = 30 * 24 * HOUR_MS


def next_pass(scene: Scene, *, requested: bool = False) -> str:
    """Carries the log's only step out, and tells what it is."""
    [step] = scene.cleaner.plan(now_ms=scene.now_ms + HOUR_MS, requested=requested).steps
    assert not scene.clean(requested=requested).failed
    return step.kind


def test_tombstones_expire_although_each_pass_finds_new_data_to_clean(tmp_path: Path) -> None:
    scene = Scene(tmp_path, compaction_strategy="timestamp")
    scene.append(("a", None)).append(("b", "1")).clean()
    scene.now_ms += 2 * HOUR_MS
    for value in ("2", "3"):
        assert not scene.append(("b", value)).clean().failed
    assert [key for _, key, _ in scene.records] == ["b"]
    assert scene.checkpoint == 4


@pytest.mark.parametrize("requested", [False, True])
def test_tombstones_expire_although_all_records_are_dated_long_before_their_horizon(
    tmp_path: Path, requested: bool
) -> None:
    """The timestamps of a backfill say nothing of how long its records have waited here."""
    scene = Scene(tmp_path, compaction_strategy="timestamp", min_cleanable_dirty_ratio="0.01")

    def backfill(*pairs: tuple[str, str | None]) -> None:
        scene.now_ms += HOUR_MS
        records = [NewRecord(k.encode(), v.encode() if v else None, scene.now_ms - LATE_MS) for k, v in pairs]
        scene.store.append(TOPIC, records, new_id(), scene.now_ms)

    backfill(("k", None), ("x", "1"))
    backfill(("b", "1"))
    scene.clean()
    kinds = []
    for number in range(4):
        backfill((f"a{number}", "1"), ("b", str(number)))
        backfill(("w", str(number)))
        kinds.append(next_pass(scene, requested=requested))
    assert "expire" in kinds
    assert "k" not in {key for _, key, _ in scene.records}


def test_an_expiry_of_many_commits_keeps_a_late_clean_waiting_for_one_pass(tmp_path: Path) -> None:
    scene = Scene(tmp_path, compaction_strategy="timestamp", max_compaction_lag_ms=str(2 * HOUR_MS))
    for number in range(4):
        scene.append((f"k{number}", None), (f"v{number}", "x"))
    scene.clean(requested=False)
    scene.now_ms += HOUR_MS
    kinds = []
    for _ in range(6):
        scene.append(("a", "1"), ("a", "2"))
        kinds.append(next_pass(scene))
    assert kinds == ["expire", "compact"] * 3


def test_a_note_of_the_last_pass_that_is_lost_or_damaged_lets_the_expiry_go_first(tmp_path: Path) -> None:
    scene = Scene(tmp_path, compaction_strategy="timestamp")
    for number in range(3):
        scene.append((f"k{number}", None), (f"v{number}", "x"))
    scene.clean()
    for note in ("", "nothing"):
        scene.append(("a", "1"), ("a", "2"))
        with scene.store.load_table(TOPIC).transaction() as change:
            change.set_properties({"log.p0.last-pass": note})
        assert next_pass(scene, requested=True) == "expire"
