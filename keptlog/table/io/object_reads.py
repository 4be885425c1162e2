"""Reads, lists and writes small objects of S3 by boto3, where Arrow's client costs more requests and says less.

Arrow asks for an object's size first, by HEAD, then for its bytes. A HEAD that is refused gives no reason, a bucket
that is gone looks like a file that is gone, and some answers of a busy store are not asked for again. Here a small
object is one request, which is tried again in full, also when the connection breaks in the middle of the answer.

What is large, Arrow reads: in parts, and without Python in between.

What is written whole is written here too. Arrow's client takes each answer with status 200 for a file that was written,
the page of a portal too; a commit would then name metadata that is not there. A bucket that locks what is written to
it takes nothing without a checksum. Content-MD5 is the one that every store knows.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    HTTPClientError,
    IncompleteReadError,
    ResponseStreamingError,
)

from keptlog.storage.files import StoredFile
from keptlog.table.io.files import Properties
from keptlog.table.io.remote_files import client_properties
from keptlog.table.io.s3_client import s3_client
from keptlog.table.io.s3_errors import reaching_store

_logger = logging.getLogger(__name__)

_BROKEN: tuple[type[BotoCoreError], ...] = (
    ConnectionClosedError,
    HTTPClientError,
    IncompleteReadError,
    ResponseStreamingError,
)
"""An answer that began and did not end. boto3 tries a request again only until the answer begins."""
_ANSWERS = 4


def end_of_object(properties: Properties, path: str, at_most: int) -> tuple[bytes, int]:
    """The last bytes of an object, so many or all of it, and how many it has.

    Raises:
        FileNotFoundError: it is not there.
        OSError: the store does not give it.
    """
    content, answer = _answer(properties, path, at_most)
    total = answer.get("ContentRange", "").rpartition("/")[2]
    return content, int(total) if total.isdigit() else len(content)


def object_exists(properties: Properties, path: str) -> bool:
    """Whether an object is there; a HEAD would not say why it can't tell.

    Raises:
        OSError: the store does not say.
    """
    try:
        end_of_object(properties, path, 1)
    except FileNotFoundError:
        return False
    return True


def put_object(properties: Properties, path: str, content: bytes) -> None:
    """Write an object in one request.

    Raises:
        OSError: the store did not say that it was written.
    """
    client = s3_client(client_properties(properties, path))
    bucket, _, key = path.partition("://")[2].partition("/")
    with reaching_store(f"{path} can't be written"):
        md5 = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
        client.put_object(Bucket=bucket, Key=key, Body=content, ContentMD5=md5)


def objects_below(properties: Properties, folder: str) -> Iterator[StoredFile]:
    """All objects below a folder, but for those that Arrow's client puts there to mark a folder: these are empty.

    Arrow's own listing is empty for a bucket that is gone.

    Raises:
        OSError: the store does not list them.
    """
    client = s3_client(client_properties(properties, folder))
    bucket, _, key = folder.partition("://")[2].partition("/")
    prefix = key.rstrip("/") + "/" if key else ""
    base = folder.removesuffix(key).rstrip("/") + "/"
    with reaching_store(f"{folder} can't be listed"):
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for each in page.get("Contents", ()):
                if each["Size"] or not each["Key"].endswith("/"):
                    yield StoredFile(base + each["Key"], each["Size"], int(each["LastModified"].timestamp() * 1000))


def _answer(properties: Properties, path: str, last_bytes: int) -> tuple[bytes, dict[str, Any]]:
    client = s3_client(client_properties(properties, path))
    bucket, _, key = path.partition("://")[2].partition("/")
    with reaching_store(f"{path} can't be read"):
        for attempt in range(1, _ANSWERS + 1):
            try:
                answer = client.get_object(Bucket=bucket, Key=key, Range=f"bytes=-{last_bytes}")
            except client.exceptions.ClientError as error:
                if error.response.get("Error", {}).get("Code") != "InvalidRange":
                    raise
                return b"", {}  # an empty object has no last byte
            try:
                return answer["Body"].read(), answer
            except _BROKEN as error:
                if attempt == _ANSWERS:
                    raise
                _logger.warning("%s can't be read (%s): try %d of %d", path, error, attempt + 1, _ANSWERS)
    raise AssertionError("every attempt returns or raises")
