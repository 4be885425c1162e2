"""A page with status 200 in place of a store's answer proves nothing: no deletion, no file, and no damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from keptlog.storage.files import SMALL_BYTES
from keptlog.storage.object_version import Versioning
from keptlog.table.io import remote_files
from keptlog.table.io.files import TableFiles
from keptlog.table.io.object_versions import bucket_of
from keptlog.table.removal.hidden import hidden_below
from tests.table.buckets import new_bucket
from tests.table.portals import portal

ClientError = pytest.importorskip("botocore.exceptions").ClientError
FOLDER = "s3://lake/keptlog/users"
FILE = f"{FOLDER}/data/a.parquet"
ASKED: dict[str, Callable[[TableFiles], Any]] = {
    "whether versions are kept": lambda files: bucket_of(files.properties, FOLDER).versioning,
    "deletions": lambda files: bucket_of(files.properties, FOLDER)._delete([(FILE, None)]),
    "an upload's end": lambda files: bucket_of(files.properties, FOLDER).abort(FILE, "an-id"),
    "rules": lambda files: files.why_uploads_stay(FOLDER),
    "a file": lambda files: files.read_bytes(FILE),
    "whether it is there": lambda files: files.exists(FILE),
    "a version": lambda files: bucket_of(files.properties, FOLDER).open(FILE, "an-id"),
    "a file to keep": lambda files: files.write_bytes(FILE, b"content"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_what_no_store_says_is_an_outage(ask: Callable[[TableFiles], Any]) -> None:
    said = "answered with 200, and with no answer of S3's: see to the endpoint"
    with portal() as files, pytest.raises(OSError, match=said):
        ask(files)


@pytest.mark.parametrize("page", [b"default backend - 404", b""])
@pytest.mark.parametrize(
    "ask",
    [
        lambda files: files.exists(FILE),
        lambda files: files.read_bytes(FILE),
        lambda files: files.open_input(FILE, SMALL_BYTES + 1),
        lambda files: bucket_of(files.properties, FOLDER).open(FILE, "an-id"),
        lambda files: list(files.list(FOLDER)),
        lambda files: bucket_of(files.properties, FOLDER).of(FILE),
        lambda files: bucket_of(files.properties, FOLDER).abort(FILE, "an-id"),
    ],
    ids=["whether it is there", "a file", "a large file", "a version", "a list", "versions", "an upload's end"],
)
def test_what_is_not_there_is_said_by_the_store_and_not_by_a_proxy_before_it(
    ask: Callable[[TableFiles], Any], page: bytes
) -> None:
    """As that of a cluster, whose store is being moved: each file would be gone, for whoever cleans up too."""
    with portal(page, 404) as files, pytest.raises(OSError, match="404") as raised:
        ask(files)
    assert not isinstance(raised.value, FileNotFoundError)


def test_what_a_proxy_says_to_a_head_is_no_word_of_the_store(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no body, so that nobody sees whose it is; what the store gives is there."""
    bucket = new_bucket(s3_endpoint)
    path = bucket.put("lake/a.parquet")
    asked = bucket_of(bucket.files.properties, path)
    (version,) = asked.of(path)
    refused = ClientError({"Error": {"Code": "404"}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "HeadObject")
    monkeypatch.setattr(asked._client, "head_object", Mock(side_effect=refused))
    with bucket.files.open_input(version.location) as source:
        assert source.read() == b"value"
    arrow = Mock(**{"open_input_file.side_effect": FileNotFoundError(path)})
    monkeypatch.setattr(remote_files, "_filesystem_of", lambda *_: (arrow, path))
    with pytest.raises(OSError, match="asked for its size") as raised:
        bucket.files.open_input(path, SMALL_BYTES + 1)
    assert not isinstance(raised.value, FileNotFoundError)


def test_versions_that_nobody_told_of_are_unread() -> None:
    with portal() as files:
        found = hidden_below(files, FOLDER)
    assert len(found.unread) == 2  # versions, and open uploads
    assert not found.files
    assert not found.not_looked_at


def test_a_bucket_that_never_kept_versions_says_so(s3_endpoint: str) -> None:
    bucket = new_bucket(s3_endpoint, None)
    assert bucket_of(bucket.properties, f"s3://{bucket.name}/lake").versioning == (Versioning.NONE, "")


@pytest.mark.parametrize("content", [b"", b"content"])
def test_what_is_written_whole_is_read_back(s3_endpoint: str, content: bytes) -> None:
    bucket = new_bucket(s3_endpoint, None)
    path = f"s3://{bucket.name}/lake/a=b/a file.json"
    bucket.files.write_bytes(path, content)
    assert bucket.files.read_bytes(path) == content
