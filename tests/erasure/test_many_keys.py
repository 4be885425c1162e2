"""Requests of very many keys: what is looked up for each record is found at once, and not among all keys again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.log.erasures.erasure import Erasure
from keptlog.passes.erasures.erase_look import _is_within
from tests.erasure.world import KEY, OTHER, VALUE, World

RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=12)


@given(RANGES)
def test_an_offset_is_within_ranges_that_overlap_or_do_not_if_it_is_in_one(drawn: list[tuple[int, int]]) -> None:
    ranges = sorted((base, base + length) for base, length in drawn)
    offsets = np.arange(45)
    expected = [any(base <= offset < end for base, end in ranges) for offset in range(45)]
    assert _is_within(offsets, np.array(ranges, np.int64)).tolist() == expected


def test_a_verification_asks_no_bound_of_all_bounds_for_each_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask(KEY, OTHER)
    world.to_deleted()
    world.append((KEY, b"came back"), (OTHER, b"came back"))
    monkeypatch.setattr(Erasure, "end_offset_of", None)
    assert world.verified().erasure.state == "verified"
