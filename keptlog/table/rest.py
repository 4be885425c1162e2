"""A REST catalog as keptlog opens it: with an end to waiting, and with the credentials that it gives for each table.

PyIceberg's session keeps ten connections and waits for ever: a server that took a request and hangs would hang whoever
asked with it. A commit that gets no answer in time is one without an answer (``commit``), and is looked for.

Where a catalog vends credentials, each table comes with its own, for its own location. PyIceberg reads metadata with
them. ``vended`` keeps the newest of each location, for the segments, which are opened by path (``vending``).
"""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.exceptions import RESTError
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from typing_extensions import override

from keptlog.table.echo import without_what_was_sent
from keptlog.table.patience import ANSWER_SECONDS, CONNECT_SECONDS
from keptlog.table.side_by_side import AT_ONCE
from keptlog.table.vending import Vended, credentials_in, remember


class _Patient(HTTPAdapter):
    """Waits so long for a connection and for each piece of an answer."""

    @override
    def send(self, request: PreparedRequest, **how: Any) -> Response:  # type: ignore[override]  # as a session calls it
        """Send a request; raises ``ConnectTimeout``, or ``ReadTimeout`` where it was sent."""
        how["timeout"] = how.get("timeout") or (CONNECT_SECONDS, ANSWER_SECONDS)
        return super().send(request, **how)


class PatientRestCatalog(RestCatalog):
    """PyIceberg's, with these differences."""

    def __init__(self, name: str, **properties: str) -> None:
        self.vended: Vended = {}
        super().__init__(name, **properties)

    def _config_headers(self, session: Session) -> None:
        """Prepare a session; the first that PyIceberg does with one that is new, before it asks for a token."""
        super()._config_headers(session)
        for scheme in ("http://", "https://"):  # one that signs requests for AWS has its own adapter, for its address
            session.mount(scheme, _Patient(pool_connections=AT_ONCE, pool_maxsize=AT_ONCE))
        session.hooks["response"].append(without_what_was_sent)

    @override
    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates to a table."""
        try:
            answer: CommitTableResponse = super().commit_table(table, requirements, updates)
        except NotImplementedError as error:
            # So PyIceberg says 501, as if it were its own code that is missing.
            raise RESTError(str(error)) from error.__cause__
        return answer

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        table = super()._response_to_table(identifier_tuple, table_response)
        credentials = credentials_in(table.io.properties, self.properties)
        remember(self.vended, table.location(), credentials)
        return table


def session_of(catalog: RestCatalog) -> Session:
    """The session that a catalog's requests go through, with its credentials; PyIceberg has no public name for it."""
    return catalog._session  # noqa: SLF001
