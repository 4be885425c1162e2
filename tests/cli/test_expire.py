"""``expire`` says which logs keep tombstones past their horizon because a clean goes first."""

from __future__ import annotations

import time
from pathlib import Path

from tests.cli.conftest import Run
from tests.passes.test_in_legs import HOUR_MS, Scene


def test_a_log_whose_clean_goes_first_is_named_with_the_command(keptlog: Run, home: Path) -> None:
    scene = Scene(home, min_cleanable_dirty_ratio="0")
    scene.now_ms = time.time_ns() // 1_000_000 - 30 * HOUR_MS
    scene.append(("a", None)).append(("b", "1")).clean()
    scene.append(("b", "2")).append(("b", "3"))
    why = "a clean is due, and goes before the expiry of its tombstones (keptlog clean t-0)"
    assert keptlog("expire").out.splitlines() == ["nothing to do", f"t-0: left alone, {why}"]
    told = keptlog("expire", "t-0", "--json").json
    assert (told["committed"], told["left_alone"]) == ([], {"t-0": why})
