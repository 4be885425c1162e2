"""Where a small clean's seconds go: every figure stands on the page, beside its goal."""

from __future__ import annotations

from benchmarks.cold import Rows
from benchmarks.cold_text import BESIDE, HERE, cold_as_text


def test_a_page_has_the_medians_of_both_checkouts_and_what_is_met() -> None:
    rows = Rows()
    for wall_s, cpu_s in ((5.0, 7.0), (9.0, 8.0), (5.5, 7.5)):
        rows.add(HERE, "clean, cold", wall_s, cpu_s)
        rows.add(BESIDE, "clean, cold", wall_s * 2, cpu_s * 2)
    rows.add(HERE, "read users", 0.5, 0.4)
    rows.add(HERE, "step: plan", 0.1, 0.1)
    page = cold_as_text({"rounds": 3, "beside": "abc1234", "on": {}, "parts": rows.medians()})
    assert "| clean, cold | 5.50 | 7.50 | 11.00 | 15.00 | <= 6 s | met |" in page
    assert "| read users | 0.50 | 0.40 |  |  | <= 0.3 s of CPU | **not met** |" in page
    assert "| step: plan | 0.10 | 0.10 |  |  |  |  |" in page
