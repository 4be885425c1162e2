"""A Glue catalog for tests: its server, and what a catalog is to be told to reach it."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from examples.installed import NotInstalled
from examples.lake.server_process import ServerProcess, get, running
from examples.ports import free_port
from tests.table.buckets import new_bucket
from tests.table.stores import new_id

_SCRIPT = Path(__file__).with_name("glue_server.py")


@dataclass(frozen=True)
class GlueServer:
    """A Glue, with an S3 beside it. ``endpoint`` is the URL of both."""

    endpoint: str

    def catalog(self, glue_endpoint: str = "") -> Mapping[str, str]:
        """Properties of an empty catalog over a bucket of its own, perhaps through a proxy; earlier ones are gone."""
        requests.post(f"{self.endpoint}/moto-api/reset", timeout=10)
        bucket = new_bucket(self.endpoint, None)
        keys = {name: str(text) for name, text in bucket.properties}
        glue = {"access-key-id": keys["s3.access-key-id"], "secret-access-key": keys["s3.secret-access-key"]}
        glue |= {"region": keys["s3.region"], "endpoint": glue_endpoint or self.endpoint}
        warehouse = f"s3://{bucket.name}/lake"
        return {"type": "glue", "warehouse": warehouse, **keys, **{f"glue.{name}": text for name, text in glue.items()}}


@contextmanager
def glue_server(kind: str = "versions") -> Iterator[GlueServer]:
    """Start one (``glue_server.py``); its process is gone when the block ends.

    Raises:
        NotInstalled: there is no moto.
    """
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise NotInstalled("a local Glue is moto, and it is not here: pip install 'moto[server]'")
    with tempfile.TemporaryDirectory(prefix="keptlog-glue-") as temporary:
        port = free_port()
        endpoint = f"http://127.0.0.1:{port}"
        server = ServerProcess(
            f"moto's Glue ({new_id()[:4]})",
            [sys.executable, str(_SCRIPT), str(port), kind],
            answers=lambda: bool(get(f"{endpoint}/moto-api/data.json")),
            output=Path(temporary, "output"),
        )
        with running(server):
            yield GlueServer(endpoint)
