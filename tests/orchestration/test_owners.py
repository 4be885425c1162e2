"""Who owns a topic here can own an asset in Dagster."""

from __future__ import annotations

import pytest
from dagster._core.definitions.utils import is_valid_owner  # what decides, when definitions are loaded

from tests.log.test_declared import OWNERS


@pytest.mark.parametrize("owner", OWNERS)
def test_dagster_takes_every_owner_that_we_take(owner: str) -> None:
    assert is_valid_owner(owner)
