"""A catalog with a bucket and a database of its own, behind proxies that disturb or slow down what it is asked.

sql     S3 + Postgres          rest    S3 + Iceberg's REST catalog
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from examples.lake.fault_proxy import HttpProxy, TcpProxy, http_proxy, tcp_proxy
from examples.lake.postgres import Postgres
from examples.lake.rest_catalog import rest_catalog
from examples.lake.s3_server import S3Server

KINDS = ("sql", "rest")


@dataclass(frozen=True)
class ProxiedCatalog:
    """A catalog behind proxies."""

    straight: Mapping[str, str]
    """Its properties, past the proxies."""
    proxied: Mapping[str, str]
    """The same through them."""
    bucket: str
    store: HttpProxy
    """Before S3."""
    rest: HttpProxy | None
    sql: TcpProxy | None

    def delay(self, each_ms: float) -> None:
        """Let each request take so much longer from now on."""
        for proxy in (self.store, self.rest, self.sql):
            if proxy:
                proxy.delay_ms = each_ms


@contextmanager
def proxied_catalog(kind: str, s3: S3Server, database: Postgres, name: str) -> Iterator[ProxiedCatalog]:
    """One of ``KINDS``; its bucket and its database are called ``name``.

    Raises:
        NotInstalled: the REST catalog's libraries are not there.
    """
    warehouse, rows = s3.bucket(name), database.create(name)
    with ExitStack() as opened:
        store = opened.enter_context(http_proxy(s3.endpoint))
        files = {**s3.properties, "s3.endpoint": store.url}
        if kind == "sql":
            sql = opened.enter_context(tcp_proxy(database.port))
            own = {"type": "sql", "warehouse": warehouse}
            straight = {**own, "uri": rows, **s3.properties}
            yield ProxiedCatalog(
                straight, {**own, "uri": database.uri(name, sql.port), **files}, name, store, None, sql
            )
        else:
            catalog = opened.enter_context(rest_catalog(warehouse, s3.properties, rows))
            rest = opened.enter_context(http_proxy(catalog.uri))
            straight = {"type": "rest", "uri": catalog.uri, **s3.properties}
            yield ProxiedCatalog(straight, {**straight, "uri": rest.url, **files}, name, store, rest, None)
