"""A PostgreSQL that tells of its changes, one for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.lake.postgres import Postgres, postgres
from tests.lake.installed import or_skip


@pytest.fixture(scope="package")
def database() -> Iterator[Postgres]:
    with or_skip(postgres({"wal_level": "logical", "max_wal_senders": "2"})) as started:
        yield started
