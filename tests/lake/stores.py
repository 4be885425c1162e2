"""Stores on the servers of a lake, each with a catalog of its own, straight or through proxies.

sql     S3 + Postgres          rest    S3 + Iceberg's REST catalog
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from pyiceberg.catalog import Catalog

from examples.lake.fault_proxy import HttpProxy, TcpProxy, http_proxy, tcp_proxy
from examples.lake.postgres import Postgres
from examples.lake.rest_catalog import RestCatalog, rest_catalog
from examples.lake.s3_server import S3Server
from examples.lake.whole_lake import catalog_environment
from keptlog.home import new_id
from keptlog.table.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.lake.installed import or_skip

KINDS = ("sql", "rest")
_LONGEST_PAUSE_SECONDS = 0.05
"""Between attempts: what is tried again is tried as often as ever, only sooner."""


@dataclass(frozen=True)
class Ground:
    """Where a history is played."""

    straight: Mapping[str, str]
    """The catalog's properties."""
    disturbed: Mapping[str, str]
    """The same through the proxies."""
    bucket: str
    store: HttpProxy
    rest: HttpProxy | None
    sql: TcpProxy | None


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
def ground_of(kind: str, s3: S3Server, database: Postgres) -> Iterator[Ground]:
    """A catalog of its own with a bucket of its own, and proxies before both."""
    name = f"{kind}-{new_id()[:8]}"
    warehouse = s3.bucket(name)
    rows = database.create(name)
    with ExitStack() as opened:
        store = opened.enter_context(http_proxy(s3.endpoint))
        files = {**s3.properties, "s3.endpoint": store.url}
        if kind == "sql":
            sql = opened.enter_context(tcp_proxy(database.port))
            own = {"type": "sql", "warehouse": warehouse}
            straight = {**own, "uri": rows, **s3.properties}
            yield Ground(straight, {**own, "uri": database.uri(name, sql.port), **files}, name, store, None, sql)
        else:
            catalog: RestCatalog = opened.enter_context(or_skip(rest_catalog(warehouse, s3.properties, rows)))
            rest = opened.enter_context(http_proxy(catalog.uri))
            straight = {"type": "rest", "uri": catalog.uri, **s3.properties}
            yield Ground(straight, {"type": "rest", "uri": rest.url, **files}, name, store, rest, None)
