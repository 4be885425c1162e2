"""What boto3 raises, as ``OSError``, as of any storage; it names what was asked for.

    the object, the version, the upload is not there    ``FileNotFoundError``
    refused for good, with a code that says why         ``StoreRefused`` (``keptlog.storage.refusal``)
    refused otherwise                                   ``PermissionError``
    anything else, after boto3 has tried it again       ``OSError``

A bucket that is gone is no file that is gone: whoever looks for a segment would think that a purge has deleted it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from keptlog.storage.refusal import StoreRefused, is_refusal

GONE = {"404", "NoSuchKey", "NoSuchVersion", "NoSuchUpload", "MethodNotAllowed", "405"}
"""Answers about a version or an upload that is not there; a delete marker is no version that can be read."""


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


def os_error(what: str, error: ClientError | BotoCoreError) -> OSError:
    """The error to raise; ``what`` begins its message."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return StoreRefused(what, "NoCredentials")
    if not isinstance(error, ClientError):
        return OSError(f"{what}: {type(error).__name__}: {error}")
    if is_refusal(code_of(error)):
        return StoreRefused(what, code_of(error))
    text = f"{what}: {said(error.response['Error'])}"
    if code_of(error) in GONE:
        return FileNotFoundError(text)
    is_denied = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 403
    return PermissionError(errno.EACCES, text) if is_denied else OSError(text)


def code_of(error: ClientError) -> str:
    """S3's code for what is wrong."""
    return str(error.response.get("Error", {}).get("Code", ""))


def said(error: Mapping[str, Any]) -> str:
    """What the store says, in one line."""
    return f"{error.get('Code', 'refused')}: {error.get('Message') or 'no reason given'}"
