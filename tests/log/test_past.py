"""A time that is still to come says nothing, so that no clock that was ahead makes anybody wait."""

from __future__ import annotations

import pytest

from keptlog.log.given.past import is_past, was_within

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(("ago_ms", "expected"), [(-1, False), (0, True), (99, True), (100, False)])
def test_only_what_has_happened_was_lately(ago_ms: int, expected: bool) -> None:
    assert was_within(100, NOW_MS - ago_ms, NOW_MS) is expected


def test_now_is_past() -> None:
    assert is_past(NOW_MS, NOW_MS)
    assert not is_past(NOW_MS + 1, NOW_MS)
