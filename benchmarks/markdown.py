"""Rows of the tables in ``RESULTS.md``."""

from __future__ import annotations

from collections.abc import Iterable


def table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def met_or_not(*, is_met: bool) -> str:
    """The last cell of a goal's row."""
    return "met" if is_met else "**not met**"
