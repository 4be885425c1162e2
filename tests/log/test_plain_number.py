"""A whole number is plain digits, written in the one way, and of a size that an offset can have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.given.plain_number import plain_number


@given(st.integers(0, 2**63 - 1))
def test_what_is_written_is_read_back(number: int) -> None:
    assert plain_number(str(number)) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", "07", "00", "1 ", "1\n", "1_0", "1.0", "x", "٣", "²", "9" * 5000])
def test_other_texts_are_none(text: str) -> None:
    assert plain_number(text) is None


def test_the_largest_offset_is_the_largest_number() -> None:
    assert [plain_number(str(2**63 + beyond)) for beyond in (-1, 0)] == [2**63 - 1, None]
