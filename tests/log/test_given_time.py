"""A time for now, in ``KEPTLOG_NOW_MS`` or of a call, is taken if it can have been meant; else it is told why not."""

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.given.given_time import as_of, given_now_ms, passed_now_ms

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


NOT_PASSED = {
    -1: "is before 1970: give milliseconds since 1970",
    1_800_000_000_000_000: (
        "is after the year 9999: are these microseconds, of 2027-01-15T08:00:00.000Z? Give milliseconds since 1970"
    ),
    1_800_000_000_000_000_000: (
        "is after the year 9999: are these nanoseconds, of 2027-01-15T08:00:00.000Z? Give milliseconds since 1970"
    ),
    2**70: "is after the year 9999: give milliseconds since 1970",
}


@pytest.mark.parametrize(("now_ms", "told"), NOT_PASSED.items())
def test_a_call_is_given_no_time_that_no_calendar_has(now_ms: int, told: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        passed_now_ms(now_ms)
    assert str(refused.value) == f"now_ms={now_ms} {told}"


@pytest.mark.parametrize("now_ms", [0, 1_000, 1_800_000_000_000])
def test_a_program_may_give_a_call_any_other_time(now_ms: int) -> None:
    assert passed_now_ms(now_ms) == now_ms
