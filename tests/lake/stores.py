"""Stores on the servers of a lake, each with a catalog of its own, straight or through proxies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from pyiceberg.catalog import Catalog

from examples.lake.postgres import Postgres
from examples.lake.proxied_catalog import ProxiedCatalog, proxied_catalog
from examples.lake.s3_server import S3Server
from examples.lake.whole_lake import catalog_environment
from keptlog.home import new_id
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.lake.installed import or_skip

_LONGEST_PAUSE_SECONDS = 0.05
"""Between attempts: what is tried again is tried as often as ever, only sooner."""


def open_lake(properties: Mapping[str, str]) -> LogStore:
    """A store over a configured catalog, opened as a home opens it."""
    return LogStore(
        opened_catalog(properties), {}, lambda seconds: time.sleep(min(seconds, _LONGEST_PAUSE_SECONDS)), new_id
    )


def opened_catalog(properties: Mapping[str, str]) -> Catalog:
    """A configured catalog, opened as a home opens it."""
    with mock.patch.dict(os.environ, catalog_environment(properties)):
        return open_catalog(Path())


@contextmanager
def ground_of(kind: str, s3: S3Server, database: Postgres) -> Iterator[ProxiedCatalog]:
    """Where a history is played."""
    with or_skip(proxied_catalog(kind, s3, database, f"{kind}-{new_id()[:8]}")) as ground:
        yield ground
