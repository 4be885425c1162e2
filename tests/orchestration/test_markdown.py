"""What Dagster takes for Markdown is shown as it was meant: a command that somebody copies is the command."""

from __future__ import annotations

import pytest

from keptlog.dagster.assets.markdown import as_markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ALTER TABLE <catalog>.keptlog.`users`", r"ALTER TABLE \<catalog>.keptlog.\`users\`"),
        ("tag audit_2026 of a-b.c", "tag audit_2026 of a-b.c"),
        ("topic _internal_ and __offsets", r"topic \_internal\_ and \_\_offsets"),
        ("*.parquet [1] ~~ a|b C:\\x", r"\*.parquet \[1] \~\~ a\|b C:\\x"),
        ("first line\n   second", "first line second"),
    ],
)
def test_what_markdown_would_take_for_its_own_has_a_backslash(text: str, shown: str) -> None:
    assert as_markdown(text) == shown
