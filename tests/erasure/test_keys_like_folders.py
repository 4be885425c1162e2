"""An object whose key ends in a slash, as that of a folder does, and which has content is a file like any other."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from keptlog.log.record import Record
from keptlog.storage.files import SMALL_BYTES
from keptlog.storage.schema import to_arrow
from tests.erasure.bucket_world import BucketWorld
from tests.erasure.byte_search import versions_with
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE
from tests.table.buckets import ABucket, new_bucket
from tests.table.test_purge_of_versions import key_of


@pytest.fixture(params=[None, "Enabled"], ids=["without versions", "with versions"])
def bucket(request: pytest.FixtureRequest, s3_endpoint: str) -> ABucket:
    return new_bucket(s3_endpoint, request.param)


def left_behind(padding: int = 0) -> bytes:
    """A segment that somebody else has written, with the record in it."""
    table, out = to_arrow(0, [Record(5000, KEY, VALUE, 1)]), io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"padding": "x" * padding}), out)
    return out.getvalue()


@pytest.mark.parametrize("name", ["/", "/data/", "/data/copy.parquet/"])
def test_an_object_with_content_is_searched_and_purged_where_its_key_ends_in_a_slash(
    bucket: ABucket, tmp_path: Path, name: str
) -> None:
    world = BucketWorld(tmp_path, bucket=bucket)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    location = world.store.describe_topic("users").location
    path = bucket.put(key_of(location) + name, left_behind())

    [text] = world.verified().blocked
    assert text.startswith(f"{path} (segment) has 1 record of 1 key")

    world.later(2 * DAY_MS)
    world.purge()
    assert path not in {each for each, _ in bucket.versions()}
    assert versions_with(bucket, [VALUE]) == []
    assert world.verified().erasure.state == "verified"


def test_a_large_object_is_read_where_its_key_ends_in_a_slash(bucket: ABucket, tmp_path: Path) -> None:
    """Arrow, which reads what is large, leaves the slash out: it would look for another object."""
    content = left_behind(SMALL_BYTES)
    path = bucket.put("folder/large/", content)
    assert bucket.files.read_bytes(path) == content
    with bucket.files.open_input(path, len(content)) as source:
        assert source.size() == len(content)


def test_an_object_that_only_marks_a_folder_is_no_file(bucket: ABucket) -> None:
    bucket.put("folder/", b"")
    bucket.put("folder/below/", b"")
    path = bucket.put("folder/below/file", b"")
    assert [file.path for file in bucket.files.list(f"s3://{bucket.name}/folder")] == [path]


def test_the_deletion_of_a_topic_deletes_an_object_whose_key_ends_in_a_slash(bucket: ABucket, tmp_path: Path) -> None:
    world = BucketWorld(tmp_path, bucket=bucket)
    world.create()
    world.append((KEY, VALUE))
    location = world.store.describe_topic("users").location
    path = bucket.put(f"{key_of(location)}/data/", left_behind())

    deletion = world.store.delete_topic("users", now_ms=world.now_ms)
    assert path in {file.path for file in deletion.deleted_files}
    assert deletion.not_deleted == ()
    assert versions_with(bucket, [VALUE]) == []


def test_what_lies_below_the_mark_of_a_folder_is_deleted_with_a_topic(s3_endpoint: str, tmp_path: Path) -> None:
    bucket = new_bucket(s3_endpoint)
    world = BucketWorld(tmp_path, bucket=bucket)
    world.create()
    world.append((KEY, VALUE))
    key = f"{key_of(world.store.describe_topic('users').location)}/data/"
    path = bucket.put(key, left_behind())
    bucket.put(key, b"")

    deletion = world.store.delete_topic("users", now_ms=world.now_ms)
    assert path in {file.path for file in deletion.deleted_files}
    assert versions_with(bucket, [VALUE]) == []
