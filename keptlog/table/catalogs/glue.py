"""AWS Glue as keptlog opens it: it does not wait for ever, its failures say what they mean, all topics are one look.

PyIceberg's client sends again by itself what got no answer. Who sends a change twice can't tell what became of the
first one: the second may be refused because the first has landed. So a change is sent once here, and whoever asked for
it looks before it is sent again (``commit``). A question is asked as often as PyIceberg's client asks it.

    GetTable, GetTables, …        asked again by the client; it changes nothing, so a failure is never in doubt
    UpdateTable, CreateTable, …   sent once

Glue tells where the metadata of a hundred tables lies in one answer (``location_page``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigParseError,
    ConnectTimeoutError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
)
from botocore.parsers import ResponseParserError
from pyiceberg.catalog import BOTOCORE_SESSION, ICEBERG, METADATA_LOCATION, TABLE_TYPE
from pyiceberg.catalog.glue import GLUE_ACCESS_KEY_ID, GLUE_MAX_RETRIES, GLUE_PROFILE_NAME, GlueCatalog
from pyiceberg.io import AWS_ACCESS_KEY_ID, AWS_PROFILE_NAME
from pyiceberg.utils.properties import get_first_property_value

from keptlog.table.io.aws_client import make_ready, make_session_ready
from keptlog.table.io.s3_errors import NOT_OF_AWS, said
from keptlog.table.waiting.patience import ANSWER_SECONDS, CONNECT_SECONDS
from keptlog.table.waiting.reach import FailureKind, ToldFailure
from keptlog.table.waiting.side_by_side import AT_ONCE

_UNDERSTOOD = {"EntityNotFoundException", "AlreadyExistsException", "ConcurrentModificationException"}
"""Answers that PyIceberg makes sense of."""
_LATER = {"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown"}
_LATER |= {"RequestThrottled", "RequestThrottledException", "ResourceNotReadyException"}
_OPEN = {"OperationTimeoutException", "RequestTimeout", "RequestTimeoutException", "InternalServiceException"}
_OPEN |= {"FederationSourceRetryableException"}
"""Answers with a 400 that leave open what became of the request."""
_NOT_SENT = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError)
_REFUSED = (NoCredentialsError, PartialCredentialsError, ParamValidationError)


class GlueFailure(ToldFailure):
    """Glue did not do what it was asked, or did not answer."""


class PatientGlueCatalog(GlueCatalog):
    """PyIceberg's, with these differences.

    Raises:
        ValueError: there is no region, the profile is not there, or the retries are no number.
        GlueFailure: there are no credentials where AWS's configuration says that they are.
    """

    def __init__(self, name: str, **properties: Any) -> None:
        reached_by = {key: text for key, text in properties.items() if key.startswith(("glue.", "client."))}
        super().__init__(name, _client(tuple(sorted(reached_by.items()))), **properties)

    def location_page(self, namespace: str, page: str | None) -> tuple[dict[str, str], str | None]:
        """Table to the location of its current metadata, for about a hundred tables, and the page that follows.

        The location is empty where another program has taken it out. Null is the first page, and follows the last.
        """
        more = {"NextToken": page} if page else {}
        try:
            told = self.glue.get_tables(DatabaseName=namespace, **more)
        except self.glue.exceptions.EntityNotFoundException:
            return {}, None
        parameters = {table["Name"]: table.get("Parameters", {}) for table in told["TableList"]}
        locations = {
            name: each.get(METADATA_LOCATION) or ""
            for name, each in parameters.items()
            if each.get(METADATA_LOCATION) or each.get(TABLE_TYPE, "").lower() == ICEBERG
        }
        return locations, told.get("NextToken") or None


class _TellingClient:
    """boto3's client for Glue: what it raises and PyIceberg does not know is a ``GlueFailure``."""

    def __init__(self, asking: Any, changing: Any) -> None:
        self._asking = asking
        self._changing = changing

    def __getattr__(self, name: str) -> Any:
        if name not in self._asking.meta.method_to_api_mapping:
            return getattr(self._asking, name)
        is_question = name.startswith("get_")
        return _telling(getattr(self._asking if is_question else self._changing, name), is_question=is_question)


@lru_cache(maxsize=16)
def _client(properties: tuple[tuple[str, Any], ...]) -> Any:
    """The client that these properties describe; to make one takes longer than to ask it, and any thread may.

    Raises:
        ValueError, GlueFailure: as ``PatientGlueCatalog`` does.
    """
    session = botocore.session.get_session()
    make_session_ready(session)
    session.set_default_client_config(
        Config(connect_timeout=CONNECT_SECONDS, read_timeout=ANSWER_SECONDS, max_pool_connections=AT_ONCE)
    )
    told = {**dict(properties), BOTOCORE_SESSION: session}
    if GLUE_MAX_RETRIES in told:
        told[GLUE_MAX_RETRIES] = _whole_number(told[GLUE_MAX_RETRIES])
    try:
        asking, changing = (GlueCatalog("", **told | each).glue for each in ({}, {GLUE_MAX_RETRIES: 0}))
    except (NoRegionError, InvalidRegionError, ProfileNotFound, ConfigParseError) as error:
        raise ValueError(f"{error}: set glue.region or client.region, or the profile") from error
    except BotoCoreError as error:
        kind = _kind_of(error)
        raise GlueFailure(_said(error), FailureKind.NOT_SENT if kind is FailureKind.UNKNOWN else kind) from error
    are_given = bool(get_first_property_value(told, GLUE_ACCESS_KEY_ID, AWS_ACCESS_KEY_ID))
    profile = get_first_property_value(told, GLUE_PROFILE_NAME, AWS_PROFILE_NAME)
    for client in (asking, changing):
        make_ready(client, are_given=are_given, profile=profile)
    return _TellingClient(asking, changing)


def _telling(call: Callable[..., Any], *, is_question: bool) -> Callable[..., Any]:
    def told(**arguments: Any) -> Any:
        try:
            return call(**arguments)
        except (ClientError, BotoCoreError) as error:
            if _code(error) in _UNDERSTOOD:
                raise
            kind = _kind_of(error)
            if is_question and kind is FailureKind.UNKNOWN:
                kind = FailureKind.NOT_SENT
            raise GlueFailure(_said(error), kind, is_answer=isinstance(error, ClientError)) from error
        except ResponseParserError:
            kind = FailureKind.NOT_SENT if is_question else FailureKind.UNKNOWN
            raise GlueFailure(NOT_OF_AWS, kind, is_answer=True) from None

    return told


def _whole_number(text: object) -> int:
    """How often to retry, which the environment says as text."""
    if not str(text).isdecimal():
        raise ValueError(f"{GLUE_MAX_RETRIES} is {text!r}: give a whole number")
    return int(str(text))


def _kind_of(error: ClientError | BotoCoreError) -> FailureKind:
    """What a failure means for a change that was sent once."""
    if not isinstance(error, ClientError):
        if isinstance(error, _NOT_SENT):
            return FailureKind.NOT_SENT
        return FailureKind.REFUSED if isinstance(error, _REFUSED) else FailureKind.UNKNOWN
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if _code(error) in _LATER or status == 429:
        return FailureKind.NOT_SENT
    is_refused = 400 <= status < 500 and _code(error) not in _OPEN
    return FailureKind.REFUSED if is_refused else FailureKind.UNKNOWN


def _code(error: ClientError | BotoCoreError) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def _said(error: ClientError | BotoCoreError) -> str:
    """What is wrong, in one line."""
    return said(error) if isinstance(error, ClientError) else " ".join(f"{type(error).__name__}: {error}".split())
