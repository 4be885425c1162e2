"""Asks a REST catalog of many tables whether they have moved, one small request each.

A home has thousands of topics, and a tick of a sensor asks for all of them. So what is the same in each request is made
once a look, by the catalog's own session: its headers, its credentials, its connections. What differs is the name, and
the ETag by which the catalog knows its last answer again. Most answers are "not modified", and have no body.

Where something else than our own adapter sends the requests, each goes the session's whole way: one that signs them
for AWS has to see each, and a proxy wants other addresses.

A token is taken when a look begins. Where it expires on the way the answer is a refusal, which is for PyIceberg.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from pyiceberg.catalog.rest import Endpoints, RestCatalog
from requests import ConnectionError as NotConnected
from requests import ReadTimeout, Request
from requests.exceptions import InvalidJSONError
from urllib3 import Timeout
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.util import Retry

from keptlog.foreign_json import json_value
from keptlog.table.catalogs.rest import is_patient, session_of
from keptlog.table.waiting.patience import ANSWER_SECONDS, CONNECT_SECONDS

_SMALL = {"snapshots": "refs"}
"""Of a table's metadata without most of its snapshots: only where it lies is looked at."""
_HEADERS: dict[str, Any] = {"X-Iceberg-Access-Delegation": None}
"""No credentials are asked for: a catalog may have to fetch them elsewhere."""
_TIMEOUT = Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
_NO_RETRY = Retry(0, read=False)
"""As the session itself has it: no answer is an outage, which the next look sees the end of."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, whatever its status."""

    status: int
    location: str | None = None
    """Of the table's metadata."""
    etag: str | None = None
    """By which the catalog knows the answer again; null where it gives none."""


class Question:
    """One look at the tables of one namespace. Safe to use from several threads.

    Raises:
        OSError: there is no token to be had.
    """

    def __init__(self, catalog: RestCatalog, namespace: str) -> None:
        self._session = session_of(catalog)
        place = catalog._split_identifier_for_path((namespace, ""))  # noqa: SLF001  # its own rule
        self._tables = catalog.url(Endpoints.load_table, prefixed=True, **place)
        request = self._session.prepare_request(Request("GET", self._tables, params=_SMALL, headers=_HEADERS))
        self._headers = {name: value for name, value in request.headers.items() if isinstance(value, str)}
        self._path, _, self._query = request.path_url.partition("?")
        self._pool: HTTPConnectionPool | None = None
        adapter = self._session.get_adapter(self._tables)
        if is_patient(adapter):
            how = self._session.merge_environment_settings(self._tables, {}, None, None, None)
            pool = adapter.get_connection_with_tls_context(request, how["verify"], how["proxies"], how["cert"])
            self._pool = None if pool.proxy else pool

    def ask(self, table: str, etag: str | None) -> Told:
        """What the catalog says of a table; ``etag`` is that of the answer that is known, null if none is.

        Raises:
            OSError: there is no answer, or it is none of a catalog.
        """
        name = quote(table, safe="")
        if self._pool is None:
            headers = _HEADERS | {"If-None-Match": etag}
            answer = self._session.get(self._tables + name, params=_SMALL, headers=headers)
            return _told(answer.status_code, answer.content, answer.headers.get("ETag"))
        try:
            sent = self._pool.urlopen(
                "GET",
                f"{self._path}{name}?{self._query}",
                headers=self._headers | {"If-None-Match": etag} if etag else self._headers,
                redirect=False,
                retries=_NO_RETRY,
                timeout=_TIMEOUT,
            )
        except ReadTimeoutError as error:
            raise ReadTimeout(error) from error
        except HTTPError as error:
            raise NotConnected(error) from error
        return _told(sent.status, sent.data, sent.headers.get("ETag"))


def _told(status: int, body: bytes, etag: str | None) -> Told:
    if status != HTTPStatus.OK:
        return Told(status)
    try:
        return Told(status, json_value(body).get("metadata-location"), etag)
    except (ValueError, AttributeError) as error:
        raise InvalidJSONError(f"what came is no answer of an Iceberg catalog: {error}") from error
