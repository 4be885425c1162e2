"""What a purge would delete of a topic that another program has changed: nothing, as the purge itself says."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.table.purge_preview import preview_purge
from tests.table.foreign import insert
from tests.table.purges import DAY_MS, cleaned, clock_ms
from tests.table.stores import TOPIC, store_at


def test_it_refuses_what_the_purge_refuses(tmp_path: Path) -> None:
    cleaned(tmp_path)
    later_ms = clock_ms() + 2 * DAY_MS
    assert preview_purge(store_at(tmp_path), TOPIC, later_ms, DAY_MS).snapshots
    insert(tmp_path, 100)
    for purge in (
        lambda: preview_purge(store_at(tmp_path), TOPIC, later_ms, DAY_MS),
        lambda: store_at(tmp_path).purge(TOPIC, later_ms),
    ):
        with pytest.raises(LogCorrupt, match="was changed by somebody else, and nothing is written to it"):
            purge()
