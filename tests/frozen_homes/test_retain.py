"""Retention in a home of an older format removes the segments that it would have removed."""

from __future__ import annotations

from tests.frozen_homes import telling
from tests.frozen_homes.conftest import Frozen


def test_retention_removes_what_it_removed_then(frozen: Frozen) -> None:
    retained = frozen.at(frozen.later_ms, "retain", "--json")

    assert retained.code == frozen.expected["retain_code"], retained.err
    assert telling.extent(frozen.home) == frozen.expected["retained"]
