"""A clean, on Spark, of a home of an older format leaves what a clean at the same time left then."""

from __future__ import annotations

import pytest

from tests.frozen_homes import telling
from tests.frozen_homes.conftest import Frozen

FAR_MS = 4_000_000_000_000
"""Long after these tests, so that a purge may delete whatever they have replaced, and forgets all deleted keys."""


@pytest.mark.usefixtures("spark")
def test_a_clean_leaves_what_it_left_then_and_a_purge_nothing_but_that(frozen: Frozen) -> None:
    cleaned = frozen.at(frozen.later_ms, "clean", "--json", *frozen.topics)

    assert cleaned.code == frozen.expected["clean_code"], cleaned.err
    assert telling.meaning(frozen.home) == frozen.expected["cleaned"]
    verified = telling.verdicts(frozen.home, frozen.later_ms)
    assert telling.as_told_then(verified, frozen.expected["cleaned_verified"]) == frozen.expected["cleaned_verified"]

    frozen.at(FAR_MS, "purge")
    assert telling.meaning(frozen.home) == telling.without_watermarks(frozen.expected["cleaned"])
    assert frozen.segments_on_disk == telling.live_segments(frozen.home)

    again = frozen.at(frozen.later_ms, "clean", "--json")
    assert (again.code, again.json["committed"]) == (0, [])
