"""The home in which ``keptlog status`` is measured is one in which nothing is wrong, and all of it is looked at."""

from __future__ import annotations

from pathlib import Path

from benchmarks.many_topics import Shape
from benchmarks.status import make_home, measured
from keptlog.table.reading.cache import STANDING

NOW_MS = 1_700_000_000_000


def test_a_home_of_copies_is_looked_at_until_all_of_it_is_known(tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_home(home, 3, Shape(partitions=2, segments=4), NOW_MS)

    times = measured(home, Path(__file__).parents[2], rounds=1)

    assert list(times) == ["nothing known", "tables known", "known"]
    assert len(list(home.glob(f"cache/*{STANDING}"))) == 3
