"""A bucket of S3, where Arrow's client is not enough: it knows no versions, no locks and no open uploads.

In a bucket without versions a path is deleted, and that is all. In one with versions, on or suspended:

1. All versions of the path are listed, delete markers too.
2. Versions that have bytes go first, by their ids, 1,000 a request.
3. The delete markers of the path follow, unless a version was refused: below a marker it is out of the way, and without
   one it would be the current object again.
4. What was refused is listed again, and looked at for its legal hold and its retention. Nothing else is asked that.

Whether a bucket keeps versions is asked once, and may be switched on later. Then the answer to a delete tells of delete
markers, and the rest is done as in a bucket with versions. Who proves something asks again before.

Versions are told apart by what a listing says, not by what a delete answers: there are stores whose answers name a
refused path without its version.

What boto3 raises comes out as ``OSError``, as of any storage (``s3_errors``).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any, TypeVar

import pyarrow as pa
from botocore.exceptions import ClientError
from typing_extensions import override

from keptlog.storage.object_version import (
    ObjectVersion,
    OpenUpload,
    Undeleted,
    Versioning,
    VersionsBelow,
    locked,
    on_hold,
    refused,
)
from keptlog.storage.refusal import is_never_told
from keptlog.table.io.files import Properties
from keptlog.table.io.remote_files import client_properties
from keptlog.table.io.s3_client import s3_client
from keptlog.table.io.s3_errors import GONE, code_of, reaching_store, said
from keptlog.table.waiting.side_by_side import AT_ONCE

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_DELETED_AT_ONCE = 1000


class Bucket:
    """One bucket; paths are whole ones, ``s3://bucket/key``, in the spelling of whoever asks."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    @cached_property
    def versioning(self) -> tuple[Versioning, str]:
        """Whether it keeps versions, asked once; why nobody knows, if it does not say."""
        try:
            with reaching_store(f"bucket {self._name} can't be asked whether it keeps versions"):
                status = self._client.get_bucket_versioning(Bucket=self._name).get("Status")
        except OSError as error:
            if not isinstance(error.__cause__, ClientError) or not is_never_told(error):
                raise
            why = f"bucket {self._name} does not say whether it keeps versions ({said(error.__cause__)})"
            unseen = "its versions and open uploads are not looked at: allow s3:GetBucketVersioning"
            return Versioning.NOT_LOOKED_AT, f"{why}, so {unseen}"
        return (Versioning(status.lower()) if status else Versioning.NONE), ""

    def ask_again(self) -> None:
        """Forget whether it keeps versions, which may have been switched on since."""
        self.__dict__.pop("versioning", None)

    def below(self, folder: str) -> VersionsBelow:
        """What is there below a folder without being a current object."""
        if self.versioning[0] == Versioning.NONE:
            return VersionsBelow()
        found: list[ObjectVersion] = []
        current: set[str] = set()
        for versions in self._by_path(folder.rstrip("/") + "/"):
            rest = [version for version in versions if not version.is_current]
            found += rest
            if rest and len(rest) < len(versions) and not _is_only_marked(versions):
                current.add(versions[0].path)
        return VersionsBelow(tuple(found), frozenset(current))

    def of(self, path: str) -> list[ObjectVersion]:
        """All versions of a path, the latest first."""
        for versions in self._by_path(path):
            # What else begins with the path comes behind it.
            return versions if versions[0].path == path else []
        return []

    def delete(self, paths: Sequence[str]) -> list[Undeleted]:
        """Delete paths with all their versions; gives what is still there.

        Where the bucket does not say whether there are versions, only what is current.
        """
        if self.versioning[0] == Versioning.NOT_LOOKED_AT:
            # One by one: not every store that does not say so takes several at once.
            for path in paths:
                with suppress(FileNotFoundError), reaching_store(f"{path} can't be deleted"):
                    self._client.delete_object(Bucket=self._name, Key=_key(path))
            return []
        if self.versioning[0] == Versioning.NONE:
            hidden: list[str] = []
            errors = self._delete([(path, None) for path in paths], hidden)
            left = [refused(path, None, 0, why) for path, why in errors.items()]
            if hidden:
                self.ask_again()
            return left + self.delete_versions(self._all_of(hidden))
        return self.delete_versions(self._all_of(paths))

    def delete_versions(self, versions: Sequence[ObjectVersion]) -> list[Undeleted]:
        """Delete these versions; gives those that are still there."""
        with_bytes = [(each.path, each.version_id) for each in versions if not each.is_delete_marker]
        kept = self._delete(with_bytes)
        markers = [(each.path, each.version_id) for each in versions if each.is_delete_marker and each.path not in kept]
        errors = kept | self._delete(markers)
        wanted = {*with_bytes, *markers}
        return self._with_reasons(
            [each for each in self._all_of(errors) if (each.path, each.version_id) in wanted], errors
        )

    def still_there(self, paths: Sequence[str]) -> list[Undeleted]:
        """Of which paths there are versions, delete markers not counted, and what keeps them."""
        left = [each for each in self._all_of(paths) if not each.is_delete_marker]
        return self._with_reasons(left, {})

    def why_kept(self, version: ObjectVersion) -> list[Undeleted]:
        """What keeps a version, hold and lock each for itself; nothing if there is neither, or it may not be seen."""
        where = {"Bucket": self._name, "Key": _key(version.path), "VersionId": version.version_id}
        try:
            with reaching_store(f"{version.path} can't be asked what keeps it"):
                head = self._client.head_object(**where)
        except (FileNotFoundError, PermissionError):
            return []
        found = []
        if head.get("ObjectLockLegalHoldStatus") == "ON":
            found.append(on_hold(version))
        until_ms = _ms(head["ObjectLockRetainUntilDate"]) if "ObjectLockRetainUntilDate" in head else 0
        # A lock that has ended keeps nothing, and is shown all the same. Whose clock counts, is the store's.
        if until_ms > _ms(parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])):
            found.append(locked(version, head["ObjectLockMode"], until_ms))
        return found

    def uploads_below(self, folder: str) -> list[OpenUpload]:
        """Multipart uploads below a folder that were begun and not completed."""
        prefix = _key(folder).rstrip("/") + "/"
        base = folder.rstrip("/") + "/"
        with reaching_store(f"open uploads below {folder} can't be listed"):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._name, Prefix=prefix)
            return [
                OpenUpload(base + each["Key"].removeprefix(prefix), each["UploadId"], _ms(each["Initiated"]))
                for page in pages
                for each in page.get("Uploads", ())
                if each["Key"].startswith(prefix)
            ]

    def why_uploads_stay(self, folder: str) -> str | None:
        """Which rule is missing that gives up uploads below a folder which nobody completes; null if there is one."""
        prefix = _key(folder).rstrip("/") + "/"
        try:
            with reaching_store(f"bucket {self._name} can't be asked for its lifecycle rules"):
                rules = self._client.get_bucket_lifecycle_configuration(Bucket=self._name).get("Rules", ())
        except OSError as error:
            cause = error.__cause__
            if not isinstance(cause, ClientError) or code_of(cause) != "NoSuchLifecycleConfiguration":
                raise
            rules = ()
        if any(_gives_up_uploads(rule, prefix) for rule in rules):
            return None
        return (
            f"bucket {self._name} has no lifecycle rule that aborts incomplete multipart uploads below {prefix}: who "
            "is killed in a write leaves parts that are paid for until a purge finds them; add one "
            "(AbortIncompleteMultipartUpload, 1 day or more)"
        )

    def abort(self, path: str, upload_id: str) -> bool:
        """Give up an upload, so that its parts are deleted; gives whether there was one."""
        with suppress(FileNotFoundError), reaching_store(f"the open upload of {path} can't be aborted"):
            self._client.abort_multipart_upload(Bucket=self._name, Key=_key(path), UploadId=upload_id)
            return True
        return False

    def abort_all(self, path: str) -> None:
        """Give up all uploads of a path."""
        with reaching_store(f"open uploads of {path} can't be listed"):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(Bucket=self._name, Prefix=_key(path))
            open_uploads = [
                each["UploadId"] for page in pages for each in page.get("Uploads", ()) if each["Key"] == _key(path)
            ]
        for upload_id in open_uploads:
            self.abort(path, upload_id)

    def open(self, path: str, version_id: str | None = None) -> pa.NativeFile:
        """Open one version, or what is current, for random reads; FileNotFoundError if it is gone."""
        where = {"Bucket": self._name, "Key": _key(path)}
        told = path
        if version_id is not None:
            where, told = {**where, "VersionId": version_id}, f"{path} (version {version_id})"
        with reaching_store(f"{told} can't be read"):
            size_bytes = self._size_bytes(where)
        return pa.PythonFile(_Object(self._client, where, size_bytes, told), mode="r")

    def _size_bytes(self, where: Mapping[str, str]) -> int:
        try:
            return int(self._client.head_object(**where)["ContentLength"])
        except ClientError:
            # A HEAD's refusal has no body: nobody sees why, nor whether the store has said so, or a proxy before it.
            answer = self._client.get_object(**where)
            answer["Body"].close()
            return int(answer["ContentLength"])

    def _by_path(self, prefix: str) -> Iterator[list[ObjectVersion]]:
        """All versions below a prefix, path by path, the latest first."""
        base = prefix.removesuffix(_key(prefix))
        with reaching_store(f"versions below {prefix} can't be listed"):
            pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self._name, Prefix=_key(prefix))
            for key, entries in groupby(_entries(pages), key=lambda each: str(each["Key"])):
                yield _versions(base + key, list(entries))

    def _all_of(self, paths: Iterable[str]) -> list[ObjectVersion]:
        return [each for versions in _side_by_side(self.of, list(paths)) for each in versions]

    def _with_reasons(self, left: Sequence[ObjectVersion], errors: Mapping[str, str]) -> list[Undeleted]:
        """What is left with what keeps it; where that can't be seen, with what the store said about its path."""
        found: list[Undeleted] = []
        for version, reasons in zip(left, _side_by_side(self.why_kept, left), strict=True):
            said = errors.get(version.path)
            found += reasons or [refused(version.path, version.version_id, version.size_bytes, said)]
        return found

    def _delete(self, what: Sequence[tuple[str, str | None]], hidden: list[str] | None = None) -> dict[str, str]:
        """Delete paths, or versions of them; gives what was refused: path to the store's reason.

        ``hidden`` gets the paths of which only a delete marker was made.
        """
        errors: dict[str, str] = {}
        for start in range(0, len(what), _DELETED_AT_ONCE):
            paths = {_key(path): path for path, _ in what[start : start + _DELETED_AT_ONCE]}
            objects = [
                {"Key": _key(path)} | ({"VersionId": version_id} if version_id is not None else {})
                for path, version_id in what[start : start + _DELETED_AT_ONCE]
            ]
            with reaching_store(f"files in bucket {self._name} can't be deleted"):
                wanted = {"Objects": objects, "Quiet": hidden is None}
                answer = self._client.delete_objects(Bucket=self._name, Delete=wanted)
            if hidden is not None:
                hidden += [paths[each["Key"]] for each in answer.get("Deleted", ()) if each.get("DeleteMarker")]
            for error in answer.get("Errors", ()):
                if error.get("Code") not in GONE:
                    errors[paths.get(error["Key"], error["Key"])] = (
                        f"{error.get('Code')}: {error.get('Message', 'no reason given')}"
                    )
        return errors


@lru_cache(maxsize=64)
def _bucket(properties: Properties, name: str) -> Bucket:
    return Bucket(s3_client(properties), name)


def bucket_of(properties: Properties, path: str) -> Bucket:
    """The bucket of a path, as this process knows it."""
    # A table's FileIO has the table's properties too, which change with each commit.
    return _bucket(client_properties(properties, path), path.partition("://")[2].partition("/")[0])


class _Object(io.RawIOBase):
    """An object, or one version of it; each read is a request for just these bytes."""

    def __init__(self, client: Any, where: Mapping[str, str], size_bytes: int, told: str) -> None:
        super().__init__()
        self._client = client
        self._where = where
        self._size_bytes = size_bytes
        self._told = told
        self._at = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._at

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}[whence]
        return self._at

    @override
    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self._size_bytes - self._at)
        if count <= 0:
            return 0
        with reaching_store(f"{self._told} can't be read"):
            answer = self._client.get_object(**self._where, Range=f"bytes={self._at}-{self._at + count - 1}")
            buffer[:count] = answer["Body"].read()
        self._at += count
        return count


def _gives_up_uploads(rule: Mapping[str, Any], prefix: str) -> bool:
    """Whether a lifecycle rule does so with all that is below a prefix; by tags it can't, uploads have none."""
    chosen: Mapping[str, Any] = rule.get("Filter", {})
    below = rule.get("Prefix") or chosen.get("Prefix") or chosen.get("And", {}).get("Prefix") or ""
    is_by_more = bool(set(chosen).difference({"Prefix"}))
    is_on = rule.get("Status") == "Enabled" and "AbortIncompleteMultipartUpload" in rule
    return is_on and not is_by_more and prefix.startswith(below)


def _entries(pages: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Versions and delete markers by key: a page has them in two lists."""
    for page in pages:
        versions = [{**each, "IsDeleteMarker": False} for each in page.get("Versions", ())]
        markers = [{**each, "IsDeleteMarker": True} for each in page.get("DeleteMarkers", ())]
        yield from sorted(versions + markers, key=lambda each: str(each["Key"]))


def _versions(path: str, entries: Collection[Mapping[str, Any]]) -> list[ObjectVersion]:
    newest_first = sorted(entries, key=lambda each: (not each["IsLatest"], -_ms(each["LastModified"])))
    replaced: list[int | None] = [None, *(_ms(each["LastModified"]) for each in newest_first)]
    return [
        ObjectVersion(
            path=path,
            version_id=entry["VersionId"],
            size_bytes=entry.get("Size", 0),
            modified_ms=_ms(entry["LastModified"]),
            is_latest=entry["IsLatest"],
            is_delete_marker=entry["IsDeleteMarker"],
            replaced_ms=replaced_ms,
        )
        for entry, replaced_ms in zip(newest_first, replaced, strict=False)
    ]


def _side_by_side(do: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    if len(items) < 2:
        return [do(item) for item in items]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(do, items))


def _is_only_marked(versions: Sequence[ObjectVersion]) -> bool:
    """Whether there was content below a key that marks a folder now: no listing of files has what is current."""
    has_content = any(each.size_bytes for each in versions)
    return has_content and versions[0].path.endswith("/") and not versions[0].size_bytes


def _key(path: str) -> str:
    return path.partition("://")[2].partition("/")[2]


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
