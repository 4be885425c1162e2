"""What an object store refuses for good: to ask again would get the same answer, until somebody does something.

    503 SlowDown, 500, a connection that is cut      the store is busy, or gone for a while: asked again
    ExpiredToken, AccessDenied, NoSuchBucket, …      ``StoreRefused``: said at once, with what to do

A store names what is wrong with a code, in the body of its answer. Arrow's client knows some of the codes under names
of its own, ``ACCESS_DENIED``, and quotes the others. A request without a body in its answer, a HEAD, gets none: so what
is to be told apart is not asked for by HEAD.
"""

from __future__ import annotations

import errno
import re

_RENEW = "renew the credentials"
_CHECK = "check s3.access-key-id, s3.secret-access-key and s3.session-token"
_ALLOW = "allow it to these credentials"
_REGION = "set s3.region to the bucket's"
_INSTALL = "pip install 'keptlog[s3]'"
_ROOM = "make room, or raise the quota"
_EXPIRED, _UNKNOWN_KEYS = "the credentials have expired", "the store does not know these credentials"
_ELSEWHERE, _NO_BUCKET, _FULL = "the bucket is in another region", "the bucket does not exist", "the store is full"

_REFUSALS = {
    "ExpiredToken": (_EXPIRED, _RENEW),
    "ExpiredTokenException": (_EXPIRED, _RENEW),
    "TokenRefreshRequired": (_EXPIRED, _RENEW),
    "RequestExpired": (_EXPIRED, _RENEW),
    "InvalidToken": (_UNKNOWN_KEYS, _CHECK),
    "InvalidAccessKeyId": (_UNKNOWN_KEYS, _CHECK),
    "InvalidClientTokenId": (_UNKNOWN_KEYS, _CHECK),
    "UnrecognizedClient": (_UNKNOWN_KEYS, _CHECK),
    "SignatureDoesNotMatch": (_UNKNOWN_KEYS, _CHECK),
    "NoCredentials": ("there are no credentials", _CHECK),
    "NoBoto3": ("boto3 is not installed, and without it a page would pass for the store's answer", _INSTALL),
    "AccessDenied": ("access is denied", _ALLOW),
    "AllAccessDisabled": ("access is denied", _ALLOW),
    "AccountProblem": ("the store has locked the account", "ask whoever runs the store"),
    "NoNameInPath": (
        "a bucket or folder in this path has no name",
        "take the double / out of the catalog's warehouse, or of the location of the table",
    ),
    "NoSuchBucket": (_NO_BUCKET, "create it, or correct the warehouse of the catalog"),
    "InvalidBucketName": ("that is no name of a bucket", "correct the warehouse of the catalog"),
    "AuthorizationHeaderMalformed": (_ELSEWHERE, _REGION),
    "PermanentRedirect": (_ELSEWHERE, _REGION),
    "IllegalLocationConstraintException": (_ELSEWHERE, _REGION),
    "RequestTimeTooSkewed": ("this machine's clock is wrong", "set it"),
    "QuotaExceeded": (_FULL, _ROOM),
    "XMinioStorageFull": (_FULL, _ROOM),
    "XMinioAdminBucketQuotaExceeded": (_FULL, _ROOM),
}
_BY_NAME = {code.lower(): code for code in _REFUSALS}
"""Arrow's names have underscores between the words, and no capitals or nothing else."""
_ARROW = re.compile(
    r"AWS Error (\w+)(?: \(HTTP status \d+\))? during (\w+) operation(?:.*?ExceptionName: (\w+))?", re.DOTALL
)
NOT_SAID = {"AccessDenied", "MethodNotAllowed", "NotImplemented"}
"""Answers of a store that does not tell something; to ask again would not help."""
_UPLOADS = {"PutObject", "UploadPart", "CreateMultipartUpload", "CompleteMultipartUpload"}


class StoreRefused(PermissionError):
    """A store refuses for good; the text says what it was asked for, why it refuses, and what to do."""

    def __init__(self, what: str, code: str) -> None:
        why, remedy = _REFUSALS[code]
        super().__init__(errno.EACCES, f"{what}: {why} ({code}); {remedy}")
        self._made_of = what, code

    def __str__(self) -> str:
        return str(self.args[1])

    @property
    def code(self) -> str:
        """What the store has called it, or we do."""
        return self._made_of[1]

    def __reduce__(self) -> tuple[type[StoreRefused], tuple[str, str]]:
        return type(self), self._made_of


def is_refusal(code: str) -> bool:
    """Whether this is the code of an answer that does not change by itself."""
    return code in _REFUSALS


def is_of_store(error: BaseException) -> bool:
    """Whether an error comes from a store's answer, and not from a disk."""
    return isinstance(getattr(error.__cause__, "response", None), dict)


def is_never_told(error: BaseException) -> bool:
    """Whether an error comes from such an answer."""
    response = getattr(error.__cause__, "response", None)
    if not isinstance(response, dict) or is_of_role(error.__cause__):
        return False
    return response.get("Error", {}).get("Code") in NOT_SAID


def is_of_role(error: BaseException | None) -> bool:
    """Whether boto3 has it of who was asked for a role first: nothing of it is about the store."""
    return str(getattr(error, "operation_name", "")).startswith("AssumeRole")


def refused_upload(error: OSError, path: str) -> StoreRefused | None:
    """What Arrow's error over an upload means; null if the store may take it at another time, or it is of no upload."""
    operation, code = _told_by_arrow(error)
    return StoreRefused(f"{path} can't be written", code) if code and operation in _UPLOADS else None


def refused_listing(error: OSError, folder: str) -> StoreRefused | None:
    """The same of an error over a listing."""
    operation, code = _told_by_arrow(error)
    return StoreRefused(f"{folder} can't be listed", code) if code and operation.startswith("ListObjects") else None


def store_refusal_of(error: BaseException) -> str | None:
    """What a store refuses for good, in one line; null if asking again may help, or it is no store's error."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, StoreRefused):
            return str(seen)
        seen = seen.__cause__
    code = _told_by_arrow(error)[1] if isinstance(error, OSError) else None
    return str(StoreRefused(str(error).partition(": AWS Error")[0], code)) if code else None


def _told_by_arrow(error: OSError) -> tuple[str, str | None]:
    """The operation, and the code of a refusal; null if it is none."""
    found = _ARROW.search(str(error))
    if found is None:
        return "", None
    return found[2], _BY_NAME.get((found[3] or found[1]).replace("_", "").lower())
