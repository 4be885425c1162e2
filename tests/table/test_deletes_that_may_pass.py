"""What a busy store could not delete is no matter of rights: it is named, and goes with the next purge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from keptlog.storage.object_version import refused
from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.remote_files import client_properties
from tests.table.buckets import ABucket, new_bucket

BUSY = {
    "InternalError": "We encountered an internal error. Please try again.",
    "SlowDown": "Please reduce your request rate.",
}
DENIED = {"AccessDenied": "Access Denied"}


@pytest.fixture(params=[None, "Enabled"])
def any_bucket(s3_endpoint: str, request: pytest.FixtureRequest) -> ABucket:
    return new_bucket(s3_endpoint, request.param)


@contextmanager
def answered(bucket: ABucket, code: str) -> Iterator[None]:
    """A store takes the list of what is to be deleted, and says of each file that it could not be."""
    from keptlog.table.io.s3_client import s3_client  # noqa: PLC0415  # boto3 may be missing

    def answer(params: dict[str, Any], **_: object) -> tuple[SimpleNamespace, dict[str, Any]]:
        keys = [part.partition("</Key>")[0] for part in params["body"].decode().split("<Key>")[1:]]
        errors = [{"Key": key, "Code": code, "Message": (BUSY | DENIED)[code]} for key in keys]
        http = SimpleNamespace(status_code=200, content=b"<DeleteResult>", url=params["url"])
        return http, {"Errors": errors}

    events = s3_client(client_properties(bucket.properties, f"s3://{bucket.name}/x")).meta.events
    events.register("before-call.s3.DeleteObjects", answer)
    try:
        yield
    finally:
        events.unregister("before-call.s3.DeleteObjects", answer)


@pytest.mark.parametrize("code", BUSY)
def test_a_file_that_a_busy_store_left_is_for_the_next_purge_and_for_no_right(any_bucket: ABucket, code: str) -> None:
    path = any_bucket.put("topic/data/x.parquet")
    with answered(any_bucket, code):
        [left] = any_bucket.files.delete_many([path])
    assert (left.path, left.why) == (path, f"{code}: {BUSY[code]}")
    assert left.remedy == "the store could not do it then: purge again"
    assert any_bucket.files.delete_many([path]) == ()


def test_an_upload_that_could_not_be_aborted_names_the_right_for_that(
    any_bucket: ABucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keptlog.table.io.object_versions import Bucket  # noqa: PLC0415  # boto3 may be missing

    def failing(error: OSError) -> str:
        def abort(*_: object) -> None:
            raise error

        monkeypatch.setattr(Bucket, "abort", abort)
        [left] = any_bucket.files.delete_many([f"s3://{any_bucket.name}/x?uploadId=1"])
        return left.remedy

    assert failing(PermissionError("denied")) == "allow its deletion (s3:AbortMultipartUpload), then purge again"
    assert failing(OSError("SlowDown: as told")) == "the store could not do it then: purge again"


def test_an_object_whose_key_looks_like_that_of_an_upload_names_the_right_to_delete_an_object(
    any_bucket: ABucket,
) -> None:
    path = any_bucket.put("topic/data/x?uploadId=an-id")
    right = "s3:DeleteObjectVersion" if any_bucket.files.may_lock(path) else "s3:DeleteObject"
    with answered(any_bucket, "AccessDenied"):
        [left] = any_bucket.files.delete_many([path])
    assert (left.path, left.remedy) == (path, f"allow its deletion ({right}), then purge again")


def test_who_may_not_ask_the_store_at_all_is_told_no_right_besides() -> None:
    said = f"StoreRefused: {StoreRefused('s3://bucket/x can not be deleted', 'ExpiredToken')}"
    left = refused("s3://bucket/x?uploadId=1", None, 1, said)
    assert (left.why, left.remedy) == (said, "then purge again")
