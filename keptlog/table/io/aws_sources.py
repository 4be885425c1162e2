"""Who gives boto3 credentials: a role, a process, a file with a token. What comes instead is told as boto3's errors.

botocore takes for granted that a file is there, and that credentials are in each answer. Of a file of a token that is
not there it would say what the store says of a file that is gone, and so of each file of the store.

Nothing is quoted of what can't be read, which may be half of the credentials, nor is it kept, as botocore does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from botocore.credentials import AssumeRoleWithWebIdentityProvider, ContainerProvider, RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError
from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp

from keptlog.errors import KeptlogError
from keptlog.regular_file import read_file
from keptlog.table.waiting.quoted import secrets_in, without

_UNREADABLE = (ResponseParserError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError, RuntimeError)
"""What botocore raises of an answer that is none, the last two of a day in milliseconds, or of brackets in brackets."""

_SEE_TO = (
    "see to AWS_ACCESS_KEY_ID and the variables beside it, to credential_process, or to what gives this container its "
    "credentials, and to the clock here"
)
_SAY_WHERE = "let AWS_WEB_IDENTITY_TOKEN_FILE, or web_identity_token_file of a profile, name a file with a token"


class RoleNotGiven(BotoCoreError):  # type: ignore[misc]  # boto3 has no types
    """What came has no credentials of a role, or those of another time."""

    fmt = "nobody gave the role {role} as AWS does: see to AWS_ENDPOINT_URL_STS, what is before it, and the clock here"


def tell_failures(session: Any) -> None:
    """Let a session of botocore, and each client that it makes, say so where credentials are looked up or renewed."""
    look_up = session.get_credentials

    def credentials() -> Any:
        with _told("what AWS's configuration names"):
            found = look_up()
            _take(found)
        return found

    session.get_credentials = credentials


def _take(found: Any) -> None:
    """Refuse those that can't be used, and tell renewals; of those with which a role is asked for too.

    Else who gives roles would be blamed for what their source has given.
    """
    if kept := getattr(found, "_frozen_credentials", found):  # null of who is asked only later
        _require_text(kept.access_key, kept.secret_key, kept.token or "")
    if isinstance(found, RefreshableCredentials) and not isinstance(found._refresh_using, _Renewal):  # noqa: SLF001
        found.refresh_needed()  # stumbles over an end that has no time zone
        found._refresh_using = renewal = _Renewal(found)  # noqa: SLF001  # botocore has no public name
        _take(getattr(renewal.asked, "_source_credentials", None))


@contextmanager
def _told(source: str, asked: object = None) -> Iterator[None]:
    """Run code of botocore that asks ``source`` for credentials; ``asked`` is who does, and keeps what came.

    Raises:
        ClientError, BotoCoreError: there are none.
        KeptlogError: those to ask with can't be sent.
    """
    try:
        yield
    except CredentialRetrievalError as error:
        secrets = secrets_in({"Authorization": _container_token()})
        told = without(secrets, error.kwargs["error_msg"].encode(errors="replace")).decode(errors="replace")
        raise CredentialRetrievalError(provider=error.kwargs["provider"], error_msg=told) from None
    except (ClientError, BotoCoreError, KeptlogError):
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise CredentialRetrievalError(provider=source, error_msg=f"{where}{error.strerror or error}") from error
    except _UNREADABLE as error:
        getattr(asked, "_cache", {}).clear()
        if role := getattr(asked, "_role_arn", None):
            raise RoleNotGiven(role=role) from None
        # botocore's own words, as of a token with a line's end; an error that is derived of it quotes what came.
        why = f"{error}" if type(error) is ValueError else "it gave none that can be read, or those of another time"
        raise CredentialRetrievalError(provider=source, error_msg=f"{why}: {_SEE_TO}") from None


def _require_text(*parts: Any) -> None:
    """Refuse what JSON may have in its place, and half a character; else who signs a request stumbles over it."""
    for part in parts:
        part.encode()


def _container_token() -> str:
    """What is sent to whom gives a container its credentials, whose refusal botocore quotes; empty if nothing is."""
    named = os.environ.get(ContainerProvider.ENV_VAR_AUTH_TOKEN_FILE)
    if named is None:
        return os.environ.get(ContainerProvider.ENV_VAR_AUTH_TOKEN, "")
    try:
        return read_file(Path(named)).decode()
    except (OSError, ValueError):  # nor can botocore read it
        return ""


def _token_of_file(load: Any) -> Any:
    """What is sent to be given a role; ``load`` is botocore's, which reads the file as text.

    Raises:
        CredentialRetrievalError: it is none. Else who gives the role would be blamed, and was not asked.
    """
    try:
        return load()
    except UnicodeDecodeError:  # quotes all of it
        where = load._web_identity_token_path  # noqa: SLF001
        told = f"{where}: it is no text: {_SAY_WHERE}"
        raise CredentialRetrievalError(provider=AssumeRoleWithWebIdentityProvider.METHOD, error_msg=told) from None


class _Renewal:
    """Asks for credentials, which may not come."""

    def __init__(self, credentials: Any) -> None:
        self._ask = credentials._refresh_using  # noqa: SLF001  # as above
        self._now = credentials._time_fetcher  # noqa: SLF001
        self._source = credentials.method
        self.asked = getattr(self._ask, "__self__", None)
        asked: Any = self.asked
        if load := getattr(asked, "_web_identity_token_loader", None):
            asked._web_identity_token_loader = partial(_token_of_file, load)  # noqa: SLF001

    def __call__(self) -> Any:
        with _told(self._source, self.asked):
            given = self._ask()
            if parse_timestamp(given["expiry_time"]) <= self._now():
                raise LookupError
            _require_text(given["access_key"], given["secret_key"], given.get("token") or "")
        return given
