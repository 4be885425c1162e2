"""What is strange about one topic, in a way that nobody has thought of, while all others are sound."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.table import CommitTableResponse, Table

from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog


def each_commit_fails(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    """Let every commit to a topic meet it."""
    really = EmbeddedCatalog.commit_table

    def commit_table(catalog: EmbeddedCatalog, table: Table, *changes: Any) -> CommitTableResponse:
        if table.name()[-1] == topic:
            raise IndexError("list index out of range")
        return really(catalog, table, *changes)

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", commit_table)
