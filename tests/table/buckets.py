"""A bucket of its own for a test, in the S3 server of the lakes: with versions, locks and holds."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from examples.lake.s3_server import KEYS, client_of
from examples.lake.s3_server import s3_server as of_a_lake
from keptlog.table.io.files import Properties, TableFiles
from tests.lake.installed import or_skip


@dataclass(frozen=True)
class ABucket:
    """A bucket of its own; ``client`` is the test's, and none of keptlog's."""

    name: str
    client: Any
    properties: Properties

    @property
    def files(self) -> TableFiles:
        return TableFiles(self.properties)

    def set_versioning(self, status: str) -> None:
        self.client.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": status})

    def versions(self, below: str = "") -> list[tuple[str, str]]:
        """Path and version id of all that is there, as the store itself lists it; delete markers too."""
        prefix = below.removeprefix(f"s3://{self.name}/")
        pages = self.client.get_paginator("list_object_versions").paginate(Bucket=self.name, Prefix=prefix)
        return sorted(
            (f"s3://{self.name}/{each['Key']}", each["VersionId"])
            for page in pages
            for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
        )

    def put(self, key: str, content: bytes = b"value") -> str:
        """Write a version; gives its path."""
        self.client.put_object(Bucket=self.name, Key=key, Body=content)
        return f"s3://{self.name}/{key}"

    def hide(self, path: str) -> None:
        """Delete as a program does that knows no versions."""
        self.client.delete_object(Bucket=self.name, Key=path.removeprefix(f"s3://{self.name}/"))


@contextmanager
def s3_server() -> Iterator[str]:
    """Where it listens."""
    with or_skip(of_a_lake()) as server:
        yield server.endpoint


def new_bucket(endpoint: str, versioning: str | None = "Enabled", *, locks: bool = False) -> ABucket:
    client = client_of(endpoint)
    name = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=locks)
    bucket = ABucket(name, client, tuple(sorted({"s3.endpoint": endpoint, **KEYS}.items())))
    if versioning:
        bucket.set_versioning(versioning)
    return bucket
