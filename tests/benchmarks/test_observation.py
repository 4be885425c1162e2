"""What looking costs, on the page: goals are judged in the largest homes, and a tick that gave up has met none."""

from __future__ import annotations

from benchmarks.observation_text import status_as_text, ticks_as_text

ROW = {
    "catalog": "sqlite",
    "topics": 2_000,
    "logs": 100_000,
    "first_cpu_s": 50.0,
    "tick_wall_s": 0.14,
    "tick_cpu_s": 0.07,
    "tick_requests": 1,
    "pss_bytes": 465 * 2**20,
    "is_whole": True,
}


def test_a_tick_is_judged_where_there_are_a_hundred_thousand_logs() -> None:
    small = {**ROW, "topics": 200, "logs": 10_000, "tick_wall_s": 9.0}
    slow = {**ROW, "catalog": "rest", "tick_wall_s": 1.31}

    page = ticks_as_text({"on": {}, "rows": [small, ROW, slow]})

    assert "| sqlite | 2,000 | 100,000 | 50.0 CPU s | 0.14 s | 0.07 CPU s | 1 | 465 MiB |" in page
    assert "| seconds of a quiet tick, sqlite | <= 1 | 0.14 | met |" in page
    assert "| seconds of a quiet tick, rest | <= 1 | 1.31 | **not met** |" in page
    assert "| GiB of memory, the most of all | <= 1 | 0.45 | met |" in page
    assert "9.00 | **not met**" not in page
    assert "What bounds a tick behind REST" in page


def test_a_tick_that_gave_up_before_it_had_asked_for_all_has_not_met_its_goal() -> None:
    page = ticks_as_text({"on": {}, "rows": [{**ROW, "is_whole": False}]})

    assert "0.14 s, not of all" in page
    assert "| seconds of a quiet tick, sqlite | <= 1 | 0.14 | **not met** |" in page


def test_status_is_judged_once_nothing_has_changed() -> None:
    page = status_as_text({"logs": 100_000, "on": {}, "times": [{"nothing known": [90.0, 80.0], "known": [1.8, 1.7]}]})

    assert "| nothing known | 90.00 | 80.00 |" in page
    assert "nothing changed since the last but one | <= 2 | 1.80 | met |" in page
