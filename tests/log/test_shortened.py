"""A name with less room than it needs keeps its beginning and its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.words.shortened import shortened


@pytest.mark.parametrize(
    ("name", "width", "told"),
    [
        ("users-0", 7, "users-0"),
        ("a.very.long.topic.name.changelog-0", 28, "a.very.long.to…e.changelog-0"),
        ("users-0", 6, "use…-0"),
        ("users-0", 1, "u…"),
    ],
)
def test_the_middle_of_a_long_name_goes(name: str, width: int, told: str) -> None:
    assert shortened(name, width) == told


@given(st.text(), st.integers(min_value=2, max_value=60))
def test_it_is_as_wide_as_it_may_be_and_no_wider(name: str, width: int) -> None:
    found = shortened(name, width)
    assert len(found) == min(len(name), width)
    assert len(name) > width or found == name
