"""A REST catalog as keptlog opens it: with an end to waiting, and with the credentials that it gives for each table.

PyIceberg's session keeps ten connections and waits for ever: a server that took a request and hangs would hang whoever
asked with it. So would a server of tokens (``auth.type`` is oauth2), which PyIceberg asks without a session. A commit
that gets no answer in time is one without an answer (``commit``), and is looked for. A server that answers a byte at a
time keeps each time limit of a socket, so the whole answer has one too (``whole_answers``).

Where a catalog vends credentials, each table comes with its own, for its own location. PyIceberg reads metadata with
them. ``vended`` keeps the newest of each location, for the segments, which are opened by path (``vending``).
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic as _now_s  # noqa: TID251  # the clock that PyIceberg compares with
from typing import Any, TypeGuard

from pydantic import ValidationError
from pyiceberg.catalog.rest import SIGV4_REGION, RestCatalog, TableResponse
from pyiceberg.catalog.rest.auth import OAuth2AuthManager, OAuth2TokenProvider
from pyiceberg.exceptions import NoSuchNamespaceError, RESTError
from pyiceberg.io import AWS_REGION
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier, Properties
from requests import ConnectionError as NotConnected
from requests import ConnectTimeout, PreparedRequest, ReadTimeout, Response, Session
from requests.adapters import BaseAdapter, HTTPAdapter
from typing_extensions import override
from urllib3 import ProxyManager, Retry
from urllib3.exceptions import ReadTimeoutError

from keptlog.errors import InvalidConfig
from keptlog.foreign_json import json_value
from keptlog.storage.refusal import is_of_role
from keptlog.table.catalogs.echo import without_what_was_sent
from keptlog.table.catalogs.foreign_answers import ForeignAnswer, parsing, require_catalogs_own
from keptlog.table.io.vending import Vended, credentials_in, remember
from keptlog.table.metadata.plain_location import lying_plainly, table_lying_plainly
from keptlog.table.namespaces import CONFIGURED
from keptlog.table.waiting.patience import ANSWER_SECONDS, CONNECT_SECONDS
from keptlog.table.waiting.reach import FailureKind, ToldFailure
from keptlog.table.waiting.sendable import require_sendable
from keptlog.table.waiting.side_by_side import AT_ONCE
from keptlog.table.waiting.whole_answers import POOLS


class _Patient(HTTPAdapter):
    """Waits so long for a connection, and for an answer."""

    @override
    def init_poolmanager(self, *args: Any, **how: Any) -> None:
        """Make the connections; ``requests`` calls it."""
        super().init_poolmanager(*args, **how)
        self.poolmanager.pool_classes_by_scheme = POOLS

    @override
    def proxy_manager_for(self, proxy: str, **how: Any) -> ProxyManager:
        """Make the connections through a proxy; ``requests`` calls it."""
        return _limited(super().proxy_manager_for(proxy, **how))

    @override
    def send(self, request: PreparedRequest, **how: Any) -> Response:  # type: ignore[override]  # as a session calls it
        """Send a request; raises ``ConnectTimeout``, or ``ReadTimeout`` where it was sent."""
        return _in_time(super().send, request, how)


def _in_time(send: Callable[..., Response], request: PreparedRequest, how: dict[str, Any]) -> Response:
    require_sendable(request.headers, CONFIGURED)  # who signs in has added one
    how["timeout"] = how.get("timeout") or (CONNECT_SECONDS, ANSWER_SECONDS)
    answer = send(request, **how)
    try:
        _ = answer.content  # it is kept, and a limit that is reached in the middle is told as any other
    except NotConnected as error:
        if error.args and isinstance(error.args[0], ReadTimeoutError):
            raise ReadTimeout(error) from error
        raise
    return answer


def _limited(manager: ProxyManager) -> ProxyManager:
    if type(manager) is ProxyManager:  # one by SOCKS has its own connections
        manager.pool_classes_by_scheme = POOLS
    return manager


def _limit(adapter: BaseAdapter) -> None:
    """Let another's adapter, as PyIceberg's that signs requests for AWS, wait so long too."""
    if isinstance(adapter, HTTPAdapter):
        send, proxy_manager_for, add_headers = adapter.send, adapter.proxy_manager_for, adapter.add_headers
        adapter.max_retries = Retry(0, read=False)  # as that of requests: ten times so long would be no limit
        adapter.poolmanager.pool_classes_by_scheme = POOLS
        adapter.proxy_manager_for = lambda proxy, **how: _limited(  # type: ignore[method-assign]
            proxy_manager_for(proxy, **how)
        )
        adapter.send = lambda request, **how: _in_time(send, request, how)  # type: ignore[method-assign]

        def add_sendable_headers(request: PreparedRequest, **how: Any) -> None:
            _signed(adapter, add_headers, request, how)
            require_sendable(request.headers, CONFIGURED)  # a session's token is among what was signed

        adapter.add_headers = add_sendable_headers  # type: ignore[method-assign]


def _signed(adapter: Any, add_headers: Callable[..., None], request: PreparedRequest, how: dict[str, Any]) -> None:
    """Sign a request for AWS.

    Raises:
        ToldFailure: there are no credentials to do it with, or who gives a role for it does not; nothing was sent.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # boto3 is an extra, and here there is one

    from keptlog.table.io.s3_errors import os_error, said  # noqa: PLC0415

    try:
        if adapter._boto_session.get_credentials() is None:  # noqa: SLF001  # which PyIceberg does not think of
            text = "there are no credentials of AWS to sign its requests with: set client.access-key-id and "
            raise ToldFailure(f"{text}client.secret-access-key, or AWS_PROFILE", FailureKind.REFUSED)
        add_headers(request, **how)
    except (ClientError, BotoCoreError) as error:
        is_refused = isinstance(os_error("", error), PermissionError)
        text = said(error) if isinstance(error, ClientError) else f"{error}"
        text = f"its role can't be taken: {text}" if is_of_role(error) else text
        kind = FailureKind.REFUSED if is_refused else FailureKind.NOT_SENT
        raise ToldFailure(f"its requests can't be signed for AWS: {text}", kind) from error


def _make_patient(session: Session) -> None:
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Patient(pool_connections=AT_ONCE, pool_maxsize=AT_ONCE))


class _PatientTokens(OAuth2TokenProvider):
    """PyIceberg's, which asks for a token without an end to waiting."""

    def _refresh_token(self) -> None:
        wanted = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        with Session() as session:
            _make_patient(session)
            try:
                answer = session.post(self.token_url, wanted, headers={"Authorization": self._client_secret_header})
            except ReadTimeout as error:
                # The catalog itself was asked nothing yet: no change is in doubt.
                raise ConnectTimeout(f"no token came from {self.token_url} within {ANSWER_SECONDS:g} s") from error
        answer.raise_for_status()
        found = _token_in(answer.content)
        if found is None:
            # What came is not quoted: a token may stand in it, in another form. And as above, no change is in doubt.
            raise ToldFailure(f"what came from {self.token_url} has no token in it", FailureKind.NOT_SENT)
        token, told_s = found
        valid_s = self.expires_in if told_s is None else told_s
        if valid_s is None:
            untold = f"{self.token_url} does not say how long its token is valid: set auth.oauth2.expires_in"
            raise InvalidConfig(f"{CONFIGURED}: {untold}")
        self._expires_at = _now_s() + valid_s - self.refresh_margin  # type: ignore[assignment]  # as PyIceberg has it
        self._token = token


def _token_in(content: bytes) -> tuple[str, int | None] | None:
    """The token that a server gives, and for how many seconds, if it says that; null if there is none.

    What can't stand in a header is none: the client for HTTP would quote it in its error. Some servers write the
    seconds as text.
    """
    try:
        told = json_value(content)
        token, valid_s = told["access_token"], told.get("expires_in")
    except (ValueError, LookupError, TypeError):
        return None
    if not (isinstance(token, str) and token and token.isascii() and token.isprintable()):
        return None
    try:
        return token, int(float(valid_s))
    except (ValueError, TypeError, OverflowError):  # nor is it ever over after NaN seconds
        return token, None


class PatientRestCatalog(RestCatalog):
    """PyIceberg's, with these differences."""

    def __init__(self, name: str, **properties: str) -> None:
        self.vended = Vended()
        super().__init__(name, **properties)

    def _create_session(self) -> Session:
        with parsing("a token"):  # which is asked for then
            session = super()._create_session()
        for adapter in session.adapters.values():
            if not isinstance(adapter, _Patient):
                _limit(adapter)
        if isinstance(self._auth_manager, OAuth2AuthManager):
            theirs = self._auth_manager.token_provider
            self._auth_manager.token_provider = _PatientTokens(
                theirs.client_id,
                theirs.client_secret,
                theirs.token_url,
                theirs.scope,
                theirs.refresh_margin,
                theirs.expires_in,
            )
        return session

    def _init_sigv4(self, session: Session) -> None:
        """Let a session sign for AWS; ValueError where AWS's configuration has not what that takes."""
        from botocore.exceptions import ConfigParseError, ProfileNotFound  # noqa: PLC0415  # boto3 is an extra

        from keptlog.table.io.aws_client import make_session_ready  # noqa: PLC0415

        try:
            super()._init_sigv4(session)
        except (ProfileNotFound, ConfigParseError) as error:
            raise ValueError(f"{error}: correct client.profile-name, AWS_PROFILE or that file") from error
        adapter: Any = session.get_adapter(self.uri)
        make_session_ready(adapter._boto_session._session)  # noqa: SLF001  # as above
        if not self.properties.get(SIGV4_REGION, adapter._boto_session.region_name):  # noqa: SLF001  # as above
            raise ValueError(f"there is no region to sign requests for: set {SIGV4_REGION} or {AWS_REGION}")

    def _refresh_token(self) -> None:
        """Ask for another token; PyIceberg does where any request is refused for want of a valid one."""
        with parsing("a token"):
            super()._refresh_token()

    def _config_headers(self, session: Session) -> None:
        """Prepare a session; the first that PyIceberg does with one that is new, before it asks for a token."""
        super()._config_headers(session)
        require_sendable(session.headers, CONFIGURED)
        _make_patient(session)
        session.hooks["response"] += [without_what_was_sent, require_catalogs_own]

    def _fetch_config(self) -> None:
        with parsing("its configuration"):
            super()._fetch_config()

    @override
    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """The tables of a namespace."""
        with parsing("a list of tables"):
            listed: list[Identifier] = super().list_tables(namespace)
        return listed

    @override
    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """The namespaces of a namespace."""
        with parsing("a list of namespaces"):
            listed: list[Identifier] = super().list_namespaces(namespace)
        return listed

    @override
    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """What is said of a namespace, also where it is only asked whether there is one."""
        with parsing("a namespace"):
            said: Properties = super().load_namespace_properties(namespace)
        return said

    @override
    def load_table(self, identifier: str | Identifier) -> Table:
        """A table as it is now."""
        with parsing("a table"):
            loaded: Table = super().load_table(identifier)
        return loaded

    @override
    def create_table(self, *args: Any, **kwargs: Any) -> Table:
        """Make a table; without an answer it may be there."""
        try:
            with parsing("a new table"):
                made: Table = super().create_table(*args, **kwargs)
        except NoSuchNamespaceError as error:
            # Who makes a table has made its namespace before: somebody has dropped it since.
            raise RESTError(str(error)) from error.__cause__
        return made

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
        except ValidationError as error:
            # It may have landed: what was staged for it must not be deleted.
            raise ForeignAnswer("what came for a commit is no answer of an Iceberg catalog") from error
        return answer.model_copy(update={"metadata": lying_plainly(answer.metadata)})

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        table = table_lying_plainly(super()._response_to_table(identifier_tuple, table_response))
        credentials = credentials_in(table.io.properties, self.properties)
        remember(self.vended, table.location(), credentials)
        return table


def is_patient(adapter: BaseAdapter) -> TypeGuard[HTTPAdapter]:
    """Whether requests go as they are, and not through something that has to see each, such as who signs them.

    Where ``requests`` is older than 2.32, none do: nobody is told its connections.
    """
    return type(adapter) is _Patient and hasattr(adapter, "get_connection_with_tls_context")


def session_of(catalog: RestCatalog) -> Session:
    """The session that a catalog's requests go through, with its credentials; PyIceberg has no public name for it."""
    return catalog._session  # noqa: SLF001
