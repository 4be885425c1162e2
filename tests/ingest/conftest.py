"""Where the tests of ingests keep what they bring in, and the log directories that it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.table.store import LogStore
from tests.logs import open_store


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return open_store(tmp_path / "home")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"
