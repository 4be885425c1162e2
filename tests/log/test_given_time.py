"""``KEPTLOG_NOW_MS`` is taken if it can have been meant, and refused with the reason if not."""

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.given.given_time import as_of, given_now_ms

REFUSED = {
    "abc": "is not a whole number",
    " ": "is not a whole number",
    "1e12": "is not a whole number",
    "1_800_000_000_000": "is not a whole number",
    "١٨٠٠٠٠٠٠٠٠٠٠٠": "is not a whole number",
    "1800000000000\n": "is not a whole number",
    "-5": "is before 1970",
    "0": "would be 1970-01-01T00:00:00.000Z, are these seconds?",
    "1800000000": "would be 1970-01-21T20:00:00.000Z, are these seconds?",
    "1800000000000000": "is after the year 9999, is it finer than milliseconds?",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_can_not_have_been_meant_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(InvalidConfig, match="KEPTLOG_NOW_MS=") as refused:
        given_now_ms(text)
    assert REFUSED[text] in str(refused.value)


def test_a_time_is_taken_and_told_in_words() -> None:
    assert given_now_ms("1800000000000") == 1_800_000_000_000
    assert as_of(1_800_000_000_000) == "as of 2027-01-15T08:00:00.000Z, as KEPTLOG_NOW_MS says"


@pytest.mark.parametrize("text", [None, ""])
def test_nothing_given_is_the_wall_clock(text: str | None) -> None:
    assert given_now_ms(text) is None
