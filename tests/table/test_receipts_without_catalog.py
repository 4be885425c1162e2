"""The catalog is asked several times while receipts are verified, and may go away before any of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import ServerError

from keptlog.errors import StorageUnavailable
from keptlog.passes.receipts import Receipts
from tests.receipts.chains import KEY
from tests.table.receipt_chains import chain_at, draft


@pytest.mark.parametrize("look", [Receipts.verify, Receipts.at_a_glance], ids=["verify", "at a glance"])
def test_an_outage_before_any_question_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[Any], object]
) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0), draft(1)])
    receipts = Receipts(chain, lambda: [KEY.public])
    catalog = chain.committer.catalog
    really = catalog.load_table
    asked = last = 0

    def load(identifier: Any) -> Any:
        nonlocal asked
        asked += 1
        if last and asked >= last:
            raise ServerError("InternalServerError")
        return really(identifier)

    monkeypatch.setattr(catalog, "load_table", load)
    look(receipts)
    count = asked
    assert count > 1
    for each in range(1, count + 1):
        asked, last = 0, each
        with pytest.raises(StorageUnavailable, match="InternalServerError"):
            look(receipts)
