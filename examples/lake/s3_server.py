"""A local S3 for as long as a block lasts: moto, a process of its own, with versions, locks and open uploads.

It keeps everything in its memory: killed, it has lost all. To see a store that is out of reach, ``server.pause()`` it,
or put a ``fault_proxy`` before it.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.installed import NotInstalled
from examples.lake.server_process import ServerProcess, get, running
from examples.ports import free_port

KEYS = {"s3.access-key-id": "someone", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}


@dataclass(frozen=True)
class S3Server:
    """A store. ``endpoint`` is its URL."""

    server: ServerProcess
    endpoint: str

    @property
    def properties(self) -> Mapping[str, str]:
        """What a catalog is to be told to reach it."""
        return {"s3.endpoint": self.endpoint, **KEYS}

    def client(self) -> Any:
        """boto3's."""
        return client_of(self.endpoint)

    def bucket(self, name: str, *, versioned: bool = False) -> str:
        """Make a bucket; gives its ``s3://`` location."""
        client = self.client()
        client.create_bucket(Bucket=name)
        if versioned:
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return f"s3://{name}"


def client_of(endpoint: str) -> Any:
    """boto3's client for a store that takes ``KEYS``."""
    import boto3  # noqa: PLC0415  # where moto is missing, this may be too

    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEYS["s3.access-key-id"],
        aws_secret_access_key=KEYS["s3.secret-access-key"],
        region_name=KEYS["s3.region"],
    )


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a store; its process is gone when the block ends.

    Raises:
        NotInstalled: there is no moto.
        StorageUnavailable: it does not start.
    """
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise NotInstalled("a local S3 is moto, and it is not here: pip install 'moto[server]'")
    with tempfile.TemporaryDirectory(prefix="keptlog-s3-") as temporary:
        port = free_port()
        endpoint = f"http://127.0.0.1:{port}"
        server = ServerProcess(
            "moto's S3",
            [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)],
            answers=lambda: bool(get(f"{endpoint}/moto-api/data.json")),
            output=Path(temporary, "output"),
        )
        with running(server):
            yield S3Server(server, endpoint)
