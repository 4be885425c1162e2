"""A record that only a bucket's older versions have keeps its request open, and is named with what helps."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq

from keptlog.log.record import Record
from keptlog.storage.schema import to_arrow
from tests.erasure.bucket_world import BucketWorld
from tests.erasure.world import KEY, OTHER, VALUE
from tests.table.buckets import new_bucket
from tests.table.test_purge_of_versions import key_of


def deleted(world: BucketWorld) -> tuple[str, bytes]:
    """A request of which all is deleted; gives where the segment with the record lay, and its bytes."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    path = world.store.logs("users")[0].segments[0].path
    content = world.bucket.files.read_bytes(path)
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    return path, content


def test_a_hidden_file_a_replaced_version_and_an_open_upload_each_keep_a_request_from_verified(
    s3_endpoint: str, tmp_path: Path
) -> None:
    bucket = new_bucket(s3_endpoint)
    world = BucketWorld(tmp_path, bucket=bucket)
    first, old = deleted(world)

    hidden = bucket.put(f"{key_of(first)}-copy.parquet", old)
    bucket.hide(hidden)
    row = world.verified()
    [text] = row.blocked
    assert (row.erasure.state, text.startswith(f"{hidden}?versionId=")) == ("deleted", True)
    assert "(segment) has 1 record of 1 key; object version of users keeps 1 file" in text
    bucket.files.delete(hidden)

    live = world.store.logs("users")[0].segments[0].path
    now = bucket.files.read_bytes(live)
    bucket.put(key_of(live), old)
    bucket.put(key_of(live), now)
    [text] = world.verified().blocked
    assert "(segment) has 1 record of 1 key; replaced version of users keeps 1 file: somebody wrote the file" in text
    replaced = bucket.files.versions_below(world.store.describe_topic("users").location).versions
    assert bucket.files.delete_versions([each for each in replaced if each.path == live]) == ()

    upload = bucket.client.create_multipart_upload(Bucket=bucket.name, Key=f"{key_of(live)}-upload")
    [text] = world.verified().blocked
    assert f"?uploadId={upload['UploadId']} was not looked through: nobody can read an upload" in text
    bucket.client.abort_multipart_upload(Bucket=bucket.name, Key=f"{key_of(live)}-upload", UploadId=upload["UploadId"])

    assert world.verified().erasure.state == "verified"
    [receipt] = world.receipts
    assert live in {each["path"] for each in receipt.content["searched_files"]}


def test_a_hidden_file_that_the_table_does_not_refer_to_counts_behind_the_bound_too(
    s3_endpoint: str, tmp_path: Path
) -> None:
    """What an append staged that died has offsets that were given again: they tell nothing, hidden or not."""
    bucket = new_bucket(s3_endpoint)
    world = BucketWorld(tmp_path, bucket=bucket)
    first, _ = deleted(world)

    staged = io.BytesIO()
    pq.write_table(to_arrow(0, [Record(5000, KEY, VALUE, 1)]), staged)
    path = bucket.put(f"{key_of(first)}-copy.parquet", staged.getvalue())
    [text] = world.verified().blocked
    assert text.startswith(f"{path} (segment) has 1 record of 1 key")
    bucket.hide(path)
    row = world.verified()
    assert row.erasure.state == "deleted"
    [text] = row.blocked
    assert text.startswith(f"{path}?versionId=")

    bucket.files.delete(path)
    live = world.store.logs("users")[0].segments[0].path
    now = bucket.files.read_bytes(live)
    bucket.put(key_of(live), staged.getvalue())
    bucket.put(key_of(live), now)
    assert world.verified().erasure.state == "verified"


def test_a_hidden_file_keeps_a_request_open_also_where_a_bucket_kept_no_versions_when_this_process_began(
    s3_endpoint: str, tmp_path: Path
) -> None:
    bucket = new_bucket(s3_endpoint, None)
    world = BucketWorld(tmp_path, bucket=bucket)
    first, old = deleted(world)

    bucket.set_versioning("Enabled")
    hidden = bucket.put(f"{key_of(first)}-copy.parquet", old)
    bucket.hide(hidden)
    [text] = world.verified().blocked
    assert text.startswith(f"{hidden}?versionId=")
    bucket.files.delete(hidden)
    assert bucket.versions(hidden) == []
    assert world.verified().erasure.state == "verified"
