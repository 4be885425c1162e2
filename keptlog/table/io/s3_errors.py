"""What boto3 raises, as ``OSError``, as of any storage; it names what was asked for.

    the object, the version, the upload is not there    ``FileNotFoundError``
    refused for good, with a code that says why         ``StoreRefused`` (``keptlog.storage.refusal``)
    refused otherwise                                   ``PermissionError``
    anything else, after boto3 has tried it again       ``OSError``

A bucket that is gone is no file that is gone: whoever looks for a segment would think that a purge has deleted it. No
more is it one where nobody gives the role in which the store is to be asked.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from botocore.parsers import ResponseParserError

from keptlog.storage.refusal import StoreRefused, is_of_role, is_refusal

GONE = {"NoSuchKey", "NoSuchVersion", "NoSuchUpload", "MethodNotAllowed"}
"""Answers about a version or an upload that is not there; a delete marker is no version that can be read."""
_GONE_OF_HEAD = {"404", "405"}
"""The same of a HEAD, whose answer has no body. Else it is of what stands before a store that is away: a page, or
nothing, as Envoy answers where no store is. Of a HEAD it may be that too, so no file is gone by it alone."""
NOT_OF_AWS = "what answered is nothing of AWS's: see to the endpoint, and what stands before it"
"""Of what boto3 can't read, and quotes: half an answer may be the credentials of a role."""


@contextmanager
def reaching_store(what: str) -> Iterator[None]:
    """Run code that asks boto3; ``what`` begins the error's message, and has the path.

    Raises:
        OSError: one of those above.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise os_error(what, error) from error
    except ResponseParserError:
        raise OSError(f"{what}: {NOT_OF_AWS}") from None


def os_error(what: str, error: ClientError | BotoCoreError) -> OSError:
    """The error to raise; ``what`` begins its message."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return StoreRefused(what, "NoCredentials")
    if not isinstance(error, ClientError):
        return OSError(f"{what}: {type(error).__name__}: {error}")
    code, is_role = code_of(error), is_of_role(error)
    what = f"{what}: its role can't be taken" if is_role else what
    if is_refusal(code):
        return StoreRefused(what, code)
    text = f"{what}: {said(error)}"
    is_head = error.operation_name.startswith("Head")
    if code in (GONE | _GONE_OF_HEAD if is_head else GONE) and not is_role:
        return FileNotFoundError(text)
    return PermissionError(errno.EACCES, text) if _status(error) == 403 else OSError(text)


def code_of(error: ClientError) -> str:
    """The code for what is wrong; empty where there is none."""
    return str(_told(error).get("Code") or "")


def said(error: ClientError) -> str:
    """What the store says, in one line."""
    code = code_of(error) or f"HTTP status {_status(error)}"
    return " ".join(f"{code}: {_told(error).get('Message') or 'no reason given'}".split())


def _told(error: ClientError) -> Mapping[str, Any]:
    told: Mapping[str, Any] = error.response.get("Error", error.response)  # who gives roles may answer as a store does
    return told


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
