"""A strategy that nobody taught to read versions says so; it never takes another strategy's way."""

from __future__ import annotations

from enum import StrEnum
from typing import cast

import pytest

from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.storage.schema import SCHEMA
from keptlog.storage.versions import version_columns, with_versions


class NewKind(StrEnum):
    """Kinds of a later keptlog."""

    LONGEST = "longest"


UNTAUGHT = Strategy(cast("StrategyKind", NewKind.LONGEST))


def test_a_strategy_that_nobody_taught_where_versions_are_is_refused() -> None:
    with pytest.raises(AssertionError, match="LONGEST"):
        with_versions(SCHEMA.empty_table(), UNTAUGHT)


def test_nobody_knows_what_to_read_for_it_either() -> None:
    with pytest.raises(AssertionError, match="LONGEST"):
        version_columns(UNTAUGHT)


def test_by_offset_there_are_no_versions_to_read() -> None:
    assert version_columns(Strategy()) == ()
    with pytest.raises(AssertionError, match="by offset have no versions"):
        with_versions(SCHEMA.empty_table(), Strategy())
