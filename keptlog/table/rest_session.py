"""The HTTP session of a REST catalog: as many connections as are used at once, and an end to waiting.

PyIceberg's session keeps ten connections and waits for ever: a server that took a request and hangs would hang whoever
asked with it. A commit that gets no answer in time is one without an answer (``commit``), and is looked for.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from typing_extensions import override

AT_ONCE = 16
"""Requests to one catalog that are under way side by side."""
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
"""Longer than servers take that write metadata themselves, and try again where storage is busy."""


class _Patient(HTTPAdapter):
    """Waits so long for a connection and for each piece of an answer."""

    @override
    def send(self, request: PreparedRequest, *args: Any, timeout: Any = None, **kwargs: Any) -> Response:
        """Send a request; raises ``ConnectTimeout``, or ``ReadTimeout`` where it was sent."""
        waits = timeout or (CONNECT_SECONDS, ANSWER_SECONDS)
        return super().send(request, *args, timeout=waits, **kwargs)


def session_of(catalog: RestCatalog) -> Session:
    """The session that a catalog's requests go through, with its credentials; PyIceberg has no public name for it."""
    return catalog._session  # noqa: SLF001


def with_limits(catalog: Catalog) -> Catalog:
    """The same catalog; if it is one behind REST, it waits no longer than this."""
    if isinstance(catalog, RestCatalog):
        for scheme in ("http://", "https://"):  # one that signs requests for AWS has its own adapter, for its address
            session_of(catalog).mount(scheme, _Patient(pool_connections=AT_ONCE, pool_maxsize=AT_ONCE))
    return catalog
