"""A store that takes connections and never answers is asked again, and each try is told: that takes minutes."""

from __future__ import annotations

import logging
import socket

import pytest

from keptlog.table.io.remote_files import client_properties

SETTINGS = {
    "s3.access-key-id": "key",
    "s3.secret-access-key": "secret-of-the-store",
    "s3.region": "us-east-1",
    "s3.request-timeout": "0.2",
}


def test_each_try_is_told_with_the_store_and_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("boto3")
    from botocore.exceptions import ReadTimeoutError  # noqa: PLC0415  # boto3 may be missing

    from keptlog.table.io.s3_client import s3_client  # noqa: PLC0415

    caplog.set_level(logging.WARNING, "keptlog")
    with socket.create_server(("127.0.0.1", 0), backlog=16) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        settings = tuple({**SETTINGS, "s3.endpoint": f"http://{place}"}.items())
        client = s3_client(client_properties(settings, "s3://bucket/x"))
        with pytest.raises(ReadTimeoutError):
            client.head_object(Bucket="bucket", Key="x")
    told = [record.getMessage() for record in caplog.records if record.name.startswith("keptlog")]
    assert told == [f"the storage at {place} does not answer: try {number} of 6" for number in range(2, 7)]
