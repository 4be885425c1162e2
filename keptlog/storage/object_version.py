"""What a versioned bucket keeps beside its objects, and why a delete leaves something behind.

A bucket without versions has one object under a key, and a delete deletes it. In a bucket with versions each write adds
one under the same key, and an ordinary delete only puts a delete marker on top: the bytes stay, out of every listing.

    delete marker        2 pm   latest       what an ordinary listing sees: nothing
    object version v2    1 pm   noncurrent   replaced at 2 pm
    object version v1    noon   noncurrent   replaced at 1 pm

Versions go one by one, each by its id. A bucket may refuse that until a date (object lock) or until somebody says so
(legal hold). A multipart upload that was never completed has no version and no object: its parts lie there, unseen.

Only S3 is looked at. What other stores keep is not known here: neither nothing nor something.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from keptlog.log.words.iso_time import iso_time
from keptlog.storage.refusal import StoreRefused

VERSION_IN_PATH = "?versionId="
"""Between a path and the id of a version of it; ``TableFiles.open_input`` reads what such a path names."""
UPLOAD_IN_PATH = "?uploadId="
"""Between a path and the id of an upload of it; ``TableFiles.delete`` aborts what such a path names."""
_MAY_PASS = ("InternalError:", "SlowDown:", "ServiceUnavailable:", "OperationAborted:", "RequestTimeout:", "OSError:")
"""How a store's words begin about a file that it could not delete, and may delete the next time."""

OBJECT_VERSION = "object version"
_OBJECT_LOCK = "object lock"
_LEGAL_HOLD = "legal hold"
BY_PURGE = "purge again"
"""Ends what must be done, for whoever purges."""


class Versioning(StrEnum):
    """Whether a delete leaves versions behind."""

    NONE = "none"
    ENABLED = "enabled"
    SUSPENDED = "suspended"
    """It did; what was kept until then is still there, and the one version that is new is called ``null``."""
    NOT_LOOKED_AT = "not looked at"


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of a path, or a delete marker."""

    path: str
    version_id: str
    """``null`` where it was written without versioning."""
    size_bytes: int
    """0 for a delete marker."""
    modified_ms: int
    is_latest: bool
    is_delete_marker: bool = False
    replaced_ms: int | None = None
    """When the next one was put on top; null for the latest. Of a delete marker it says nothing about bytes."""

    @property
    def is_current(self) -> bool:
        """Whether an ordinary reader gets it."""
        return self.is_latest and not self.is_delete_marker

    @property
    def kind(self) -> str:
        """As holders are named."""
        return "delete marker" if self.is_delete_marker else OBJECT_VERSION

    @property
    def since_ms(self) -> int:
        """From when on it is not what a reader gets."""
        return self.modified_ms if self.is_delete_marker or self.replaced_ms is None else self.replaced_ms

    @property
    def location(self) -> str:
        """A path by which this version can be read."""
        return f"{self.path}{VERSION_IN_PATH}{self.version_id}"


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """A multipart upload that was never completed; its parts may hold values."""

    path: str
    upload_id: str
    began_ms: int

    @property
    def location(self) -> str:
        """A path by which it can be deleted."""
        return f"{self.path}{UPLOAD_IN_PATH}{self.upload_id}"


@dataclass(frozen=True, slots=True)
class VersionsBelow:
    """What lies below a folder without being a current object."""

    versions: tuple[ObjectVersion, ...] = ()
    """Noncurrent versions and delete markers, path by path."""
    current: frozenset[str] = frozenset()
    """Of the paths in ``versions``, those that have a current object too."""
    not_looked_at: str | None = None
    """Why nobody knows, in one line; null if what stands above is all there is."""


@dataclass(frozen=True, slots=True)
class Undeleted:
    """A file, or one version of it, that is still there after its delete."""

    path: str
    version_id: str | None
    bytes: int
    kind: str
    """``object lock``, ``legal hold``, or ``refused``."""
    why: str
    remedy: str
    """Who must do what."""
    until_ms: int | None = None
    """When a lock ends by itself."""

    @property
    def is_kept(self) -> bool:
        """Whether a lock or a hold keeps it: no delete does anything before it has ended."""
        return self.kind in {_OBJECT_LOCK, _LEGAL_HOLD}

    def reason(self, again: str = BY_PURGE) -> str:
        """Why, and who must do what, which ends with how it is tried ``again``; without the path."""
        remedy = self.remedy.replace(BY_PURGE, again)
        return f"{'' if self.version_id is None else f'version {self.version_id}: '}{self.why}; {remedy}"

    def __str__(self) -> str:
        what = self.path if self.version_id is None else f"{self.path} (version {self.version_id})"
        return f"{what} is still there: {self.why}; {self.remedy}"


class DeleteRefused(PermissionError):
    """A file, or versions of it, that a store will not delete."""

    def __init__(self, undeleted: Sequence[Undeleted]) -> None:
        super().__init__(errno.EACCES, "; ".join(str(each) for each in undeleted))
        self.undeleted = tuple(undeleted)

    def __str__(self) -> str:
        return str(self.strerror)


def locked(version: ObjectVersion, mode: str, until_ms: int) -> Undeleted:
    """A version that object lock keeps; ``mode`` is ``COMPLIANCE`` or ``GOVERNANCE``."""
    until = iso_time(until_ms)
    remedy = f"nobody can delete it before: {BY_PURGE} after {until}"
    if mode == "GOVERNANCE":
        remedy = f"{BY_PURGE} after {until}, or have it deleted by who may bypass governance retention"
    why = f"object lock ({mode.lower()}) until {until}"
    return _undeleted(version, _OBJECT_LOCK, why, remedy, until_ms)


def on_hold(version: ObjectVersion) -> Undeleted:
    """A version that a legal hold keeps, for as long as it is on."""
    remedy = f"whoever put it on must take it off (s3:PutObjectLegalHold), then {BY_PURGE}"
    return _undeleted(version, _LEGAL_HOLD, "legal hold", remedy)


def refused(
    path: str, version_id: str | None, size_bytes: int, said: str | None, *, is_upload: bool = False
) -> Undeleted:
    """What stays for a reason that only the store's own words tell; null if it said nothing: nobody was asked.

    Whether it is an upload its path does not say: an object's key may look like one.
    """
    if said is None:
        why = "it was not deleted, or was written again"
        return Undeleted(path, version_id, size_bytes, "refused", why, BY_PURGE)
    if said.startswith(_MAY_PASS):
        return Undeleted(path, version_id, size_bytes, "refused", said, f"the store could not do it then: {BY_PURGE}")
    if said.startswith(f"{StoreRefused.__name__}:"):  # it says itself what to do
        return Undeleted(path, version_id, size_bytes, "refused", said, f"then {BY_PURGE}")
    right = "s3:DeleteObject" if version_id is None else "s3:DeleteObjectVersion"
    right = "s3:AbortMultipartUpload" if is_upload else right
    remedy = f"allow its deletion ({right}), then {BY_PURGE}"
    return Undeleted(path, version_id, size_bytes, "refused", said, remedy)


def _undeleted(version: ObjectVersion, kind: str, why: str, remedy: str, until_ms: int | None = None) -> Undeleted:
    return Undeleted(version.path, version.version_id, version.size_bytes, kind, why, remedy, until_ms)
