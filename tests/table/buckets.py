"""A real S3 API on loopback, with versions, locks and holds: moto's server, in this process."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from keptlog.table.files import Properties, TableFiles

NO_MOTO = "needs a store with versions on loopback: pip install 'moto[server]'"
KEYS = {"s3.access-key-id": "someone", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}


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
    server = pytest.importorskip("moto.server", reason=NO_MOTO)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    threaded = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    threaded.start()
    try:
        host, port = threaded.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        threaded.stop()


def new_bucket(endpoint: str, versioning: str | None = "Enabled", *, locks: bool = False) -> ABucket:
    import boto3  # noqa: PLC0415  # where moto is missing, this may be too

    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEYS["s3.access-key-id"],
        aws_secret_access_key=KEYS["s3.secret-access-key"],
        region_name=KEYS["s3.region"],
    )
    name = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=locks)
    bucket = ABucket(name, client, tuple(sorted({"s3.endpoint": endpoint, **KEYS}.items())))
    if versioning:
        bucket.set_versioning(versioning)
    return bucket
