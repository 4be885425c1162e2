"""boto3's client for what Arrow's does not know, as the same user at the same endpoint.

The properties are PyIceberg's, read as its ``PyArrowFileIO`` reads them: ``s3.…`` first, then ``client.…``, and where
neither says anything, what the environment says (``AWS_…``, ``AWS_PROFILE``, the machine's role), as Arrow does.

A store that takes a connection and never answers is given up only after minutes. Meanwhile each try is told. So is one
that answers a byte at a time (``aws_answers``).

boto3 takes a page, or nothing, with status 200 for an answer in which nothing stands: a portal, a proxy or the console
of a store would be a bucket in which all is gone, that keeps no versions, or that has deleted what it was told to. So
each answer is looked at for what a store's has (``s3_answers``).
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import (
    ConfigParseError,
    ConnectTimeoutError,
    NoCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
)
from pyiceberg.io import (
    AWS_ACCESS_KEY_ID,
    AWS_REGION,
    AWS_ROLE_ARN,
    AWS_ROLE_SESSION_NAME,
    AWS_SECRET_ACCESS_KEY,
    AWS_SESSION_TOKEN,
    S3_ACCESS_KEY_ID,
    S3_ANONYMOUS,
    S3_CONNECT_TIMEOUT,
    S3_ENDPOINT,
    S3_FORCE_VIRTUAL_ADDRESSING,
    S3_PROXY_URI,
    S3_REGION,
    S3_REQUEST_TIMEOUT,
    S3_ROLE_ARN,
    S3_ROLE_SESSION_NAME,
    S3_SECRET_ACCESS_KEY,
    S3_SESSION_TOKEN,
)
from pyiceberg.utils.properties import get_first_property_value, property_as_bool

from keptlog.errors import InvalidConfig
from keptlog.table.io.aws_client import make_ready, make_session_ready
from keptlog.table.io.files import Properties
from keptlog.table.io.impatience import RETRIES, RETRIES_OF_SILENCE
from keptlog.table.io.s3_answers import require_stores_own
from keptlog.table.io.s3_errors import reaching_store
from keptlog.table.waiting.side_by_side import AT_ONCE

_logger = logging.getLogger(__name__)

_ATTEMPTS = 6
"""A busy store answers 503 to every few requests; with more, an outage would be told minutes later."""
_CONNECT_SECONDS = 5.0
"""To wait for a store that does not even take a connection, unless the properties say otherwise."""


@lru_cache(maxsize=16)
def s3_client(properties: Properties) -> Any:
    """The client that ``remote_files.client_properties`` describe; usable from any thread.

    Raises:
        InvalidConfig: a setting is no number, or AWS's configuration has not the profile, or can't be read.
        OSError: there are no credentials where that says that they are.
    """
    known = dict(properties)
    with reaching_store("the store can't be asked"):
        client = _signing_client(known)
    make_ready(client, are_given=_are_given(known))
    if RETRIES in known:
        client.meta.events.register_first("needs-retry.s3", _give_up_silence)
    else:  # who has no time tells it himself
        client.meta.events.register("needs-retry.s3", _tell_silence)
    client.meta.events.register("after-call.s3", require_stores_own)
    return client


def _signing_client(known: dict[str, Any]) -> Any:
    """A client with its credentials, or with whoever gives them."""
    role = get_first_property_value(known, S3_ROLE_ARN, AWS_ROLE_ARN)
    try:
        session = boto3.Session(
            aws_access_key_id=get_first_property_value(known, S3_ACCESS_KEY_ID, AWS_ACCESS_KEY_ID),
            aws_secret_access_key=get_first_property_value(known, S3_SECRET_ACCESS_KEY, AWS_SECRET_ACCESS_KEY),
            aws_session_token=get_first_property_value(known, S3_SESSION_TOKEN, AWS_SESSION_TOKEN),
            region_name=get_first_property_value(known, S3_REGION, AWS_REGION),
        )
        make_session_ready(session._session)  # noqa: SLF001  # boto3 has no public name
        if role:
            role_session = get_first_property_value(known, S3_ROLE_SESSION_NAME, AWS_ROLE_SESSION_NAME)
            _take_role(session, role, role_session, are_given=_are_given(known))
        return session.client("s3", endpoint_url=_endpoint(known), config=_config(known))
    except (ProfileNotFound, ConfigParseError) as error:
        raise InvalidConfig(f"{error}: correct AWS_PROFILE, or AWS's configuration file") from error


def _tell_silence(caught_exception: Exception | None, attempts: int, request_dict: dict[str, Any], **_: object) -> None:
    """Say that a store does not answer. To give back nothing leaves it to botocore whether it is asked again."""
    if isinstance(caught_exception, ConnectTimeoutError | ReadTimeoutError) and attempts < _ATTEMPTS:
        where = urlsplit(request_dict["url"]).netloc
        _logger.warning("the storage at %s does not answer: try %d of %d", where, attempts + 1, _ATTEMPTS)


def _give_up_silence(caught_exception: Exception | None, attempts: int, **_: object) -> bool | None:
    """False where a request is not sent again, whatever botocore would do; nothing leaves it to that."""
    return False if caught_exception is not None and attempts > RETRIES_OF_SILENCE else None


def _endpoint(known: dict[str, Any]) -> str | None:
    """Arrow takes an endpoint without a scheme too, for TLS."""
    endpoint = known.get(S3_ENDPOINT)
    return endpoint if not endpoint or "://" in endpoint else f"https://{endpoint}"


def _config(known: dict[str, Any]) -> Config:
    is_virtual = property_as_bool(known, S3_FORCE_VIRTUAL_ADDRESSING, default=not known.get(S3_ENDPOINT))
    options: dict[str, Any] = {
        "retries": {"mode": "standard", "max_attempts": int(known.get(RETRIES, _ATTEMPTS))},
        "max_pool_connections": AT_ONCE,
        "connect_timeout": _seconds(known, S3_CONNECT_TIMEOUT) or _CONNECT_SECONDS,
        "s3": {"addressing_style": "virtual" if is_virtual else "path"},
        # Stores that are not Amazon's refuse checksums which they don't know.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    if proxy := known.get(S3_PROXY_URI):
        options["proxies"] = {"http": proxy, "https": proxy}
    if seconds := _seconds(known, S3_REQUEST_TIMEOUT):
        options["read_timeout"] = seconds
    if property_as_bool(known, S3_ANONYMOUS, default=False):
        options["signature_version"] = UNSIGNED
    return Config(**options)


def _seconds(known: dict[str, Any], name: str) -> float | None:
    """Null where nothing is given.

    Raises:
        InvalidConfig: it is no number.
    """
    given = known.get(name)
    try:
        return float(given) if given else None
    except ValueError:
        raise InvalidConfig(f"{name}={given} is no number of seconds: correct it in the catalog's settings") from None


def _are_given(known: dict[str, Any]) -> bool:
    """Whether the properties have credentials: then no other ones are meant."""
    return bool(get_first_property_value(known, S3_ACCESS_KEY_ID, AWS_ACCESS_KEY_ID))


def _take_role(session: boto3.Session, role: str, session_name: str | None, *, are_given: bool) -> None:
    """Let a session act in a role, as Arrow's client does; what the role gives is renewed before it ends.

    Raises:
        NoCredentialsError: there are none to ask for the role with.
    """
    asking = session.get_credentials()
    if asking is None:  # which botocore does not think of
        raise NoCredentialsError
    inner = session._session  # noqa: SLF001  # boto3 takes a role from its own configuration file only

    def create_client(*args: Any, **how: Any) -> Any:
        client = inner.create_client(*args, **how)
        make_ready(client, are_given=are_given)
        return client

    fetcher = AssumeRoleCredentialFetcher(
        create_client, asking, role, {"RoleSessionName": session_name} if session_name else {}
    )
    inner._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")  # noqa: SLF001
