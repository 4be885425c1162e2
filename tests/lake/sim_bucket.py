"""A bucket as the disk of a history: the oracles look at it straight, the programs reach it through a proxy.

    oracles    ``BucketDisk``     boto3, undisturbed: what is there now
    programs   ``BucketFiles``    keptlog's own ``TableFiles``, with a seam before each call, and watched

Nothing is kept of what was seen: each ``files`` is a new look at the bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import pyarrow as pa
from botocore.exceptions import ClientError
from typing_extensions import override

from keptlog.storage.files import StoredFile
from keptlog.storage.object_version import Undeleted
from keptlog.table.io.files import TableFiles
from tests.sim.disk import DiskFile
from tests.sim.faults import Fault
from tests.sim.storage import Watcher
from tests.sim.world import World

_BEFORE = (Fault.CRASH_BEFORE,)
_AFTER = (Fault.CRASH_AFTER,)


@dataclass(frozen=True)
class Objects(Mapping[str, DiskFile]):
    """Location to object. They are listed once, when somebody asks for it, and each is got when it is asked for."""

    client: Any
    bucket: str

    def __getitem__(self, path: str) -> DiskFile:
        try:
            found = self.client.get_object(Bucket=self.bucket, Key=key_in(self.bucket, path))
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                raise KeyError(path) from None
            raise
        return DiskFile(found["Body"].read(), int(found["LastModified"].timestamp() * 1000))

    def __contains__(self, path: object) -> bool:
        return path in self.listed

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.listed))

    def __len__(self) -> int:
        return len(self.listed)

    @cached_property
    def listed(self) -> Mapping[str, int]:
        """Location to the time in ms when it was made."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        found = [each for page in pages for each in page.get("Contents", ())]
        return {f"s3://{self.bucket}/{each['Key']}": int(each["LastModified"].timestamp() * 1000) for each in found}


@dataclass(frozen=True)
class BucketDisk:
    """A bucket without versions, as the oracles see it."""

    client: Any
    bucket: str

    @property
    def files(self) -> Objects:
        return Objects(self.client, self.bucket)

    def below(self, folder: str) -> list[tuple[str, DiskFile]]:
        objects, prefix = self.files, folder.rstrip("/") + "/"
        # An object store may list folders, as names that end with a slash.
        paths = [path for path in objects if path.startswith(prefix) and not path.endswith("/")]
        return [(path, objects[path]) for path in paths]

    def delete(self, path: str) -> bool:
        is_there = path in self.files
        self.client.delete_object(Bucket=self.bucket, Key=key_in(self.bucket, path))
        return is_there

    def rot(self, path: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=key_in(self.bucket, path), Body=content)

    def lose_power(self, _: Random) -> list[str]:
        """What a store has acknowledged is durable."""
        return []


@dataclass
class BucketStorage:
    """A bucket as the programs of one world share it."""

    world: World
    disk: BucketDisk
    watchers: list[Watcher] = field(default_factory=list)

    def begun_at_ms(self, path: str) -> int:
        return self.disk.files.listed.get(path, 0)


@dataclass(frozen=True)
class BucketFiles(TableFiles):
    """keptlog's own files of a bucket: at each call another program may go on, or this one may die."""

    storage: BucketStorage = field(kw_only=True, repr=False)

    @override
    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        self._seam("read", path)
        return super().open_input(path, size_bytes)

    @override
    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        self._seam("create", path)
        with super().open_output(path) as sink:
            yield sink
        self._tell_written(path)

    @override
    def write_bytes(self, path: str, content: bytes) -> None:
        self._seam("create", path)
        super().write_bytes(path, content)
        self._tell_written(path)

    @override
    @contextmanager
    def durable_at_end(self) -> Iterator[TableFiles]:
        with super().durable_at_end() as files:
            yield files
            self._seam("sync", "all")

    @override
    def delete(self, path: str) -> None:
        self._tell_deleting([path])
        super().delete(path)
        self._done(self._seam("deleted", path, _AFTER))

    @override
    def delete_many(self, paths: Iterable[str]) -> tuple[Undeleted, ...]:
        paths = list(paths)
        self._tell_deleting(paths)
        left = super().delete_many(paths)
        self._done(self._seam("deleted", f"{len(paths)} files", _AFTER))
        return left

    @override
    def exists(self, path: str) -> bool:
        self._seam("exists", path)
        return super().exists(path)

    @override
    def list(self, folder: str) -> Iterator[StoredFile]:
        self._seam("list", folder)
        return super().list(folder)

    def _tell_deleting(self, paths: Sequence[str]) -> None:
        self._seam("delete", ", ".join(paths))
        for path in paths:
            for watcher in self.storage.watchers:
                watcher.deleting(path)

    def _tell_written(self, path: str) -> None:
        for watcher in self.storage.watchers:
            watcher.written(path)
        self._done(self._seam("written", path, _AFTER))

    def _seam(self, what: str, where: str, possible: Sequence[Fault] = _BEFORE) -> Fault | None:
        return self.storage.world.seam(what, where.replace(f"s3://{self.storage.disk.bucket}/", ""), possible)

    def _done(self, fault: Fault | None) -> None:
        if fault is Fault.CRASH_AFTER:
            self.storage.world.crash()


def key_in(bucket: str, path: str) -> str:
    """The key of a location."""
    return path.removeprefix(f"s3://{bucket}/")
