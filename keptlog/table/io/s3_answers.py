"""Tells answers that no store has given: the page of a portal, a proxy or a console with status 200, or nothing at all.

    a list, a setting    begins with the element that S3 names for it
    an object            has an ETag, as each object has, also where it was just written
    a deletion           says nothing

Taken for a store's own, a page is a bucket without files, a bucket without versions, files that are deleted, or a file
that is damaged. What is none of a store's is an outage, and nothing follows from it.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import BotoCoreError
from botocore.model import OperationModel

_BEGINS_WITH = {
    "ListObjectsV2": "ListBucketResult",
    "ListObjectVersions": "ListVersionsResult",
    "ListMultipartUploads": "ListMultipartUploadsResult",
    "GetBucketVersioning": "VersioningConfiguration",
    "GetBucketLifecycleConfiguration": "LifecycleConfiguration",
    "DeleteObjects": "DeleteResult",
}
_OF_AN_OBJECT = {"GetObject", "HeadObject", "PutObject"}
_SAY_NOTHING = {"DeleteObject", "AbortMultipartUpload"}
_FIRST_ELEMENT = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*)*<(?:[\w.-]+:)?([\w.-]+)", re.DOTALL)


class NotTheStore(BotoCoreError):  # type: ignore[misc]  # boto3 has no types
    """What came is none of S3's; what was asked may not have been done."""

    fmt = "{where} answered with {status}, and with no {kind} of S3's: see to the endpoint, and what stands before it"


def require_stores_own(http_response: AWSResponse, parsed: dict[str, Any], model: OperationModel, **_: object) -> None:
    """A hook for what comes after a call of boto3.

    Raises:
        NotTheStore: it is another's.
    """
    status, name = http_response.status_code, str(model.name)
    if status >= HTTPStatus.MULTIPLE_CHOICES or _is_own(http_response, parsed, name):
        return
    kind = "list" if name.startswith("List") else "answer"
    raise NotTheStore(where=urlsplit(http_response.url).netloc, status=status, kind=kind)


def _is_own(answer: AWSResponse, parsed: dict[str, Any], name: str) -> bool:
    if name in _OF_AN_OBJECT:
        return "ETag" in parsed
    if name in _SAY_NOTHING:
        return not answer.content
    if name not in _BEGINS_WITH:
        return True
    if name.startswith("List") and "IsTruncated" not in parsed:
        return False
    found = _FIRST_ELEMENT.match(answer.content)
    # Some stores name it after the operation.
    return found is not None and found[1].decode() in {_BEGINS_WITH[name], f"{name}Response"}
