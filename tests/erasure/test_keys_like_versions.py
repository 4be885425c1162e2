"""An object whose key looks like a version of another one is not taken for that version: what it has is not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.erasure.bucket_world import BucketWorld
from tests.erasure.byte_search import versions_with
from tests.erasure.test_keys_like_folders import left_behind
from tests.erasure.test_planted import almost_erased_in, location_of, require_verified
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE
from tests.table.buckets import new_bucket
from tests.table.test_purge_of_versions import key_of


def test_no_erasure_is_verified_by_the_version_that_a_key_looks_like(s3_endpoint: str, tmp_path: Path) -> None:
    """As a file is called that was fetched by its link."""
    bucket = new_bucket(s3_endpoint)
    world = BucketWorld(tmp_path, bucket=bucket)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    [live] = [segment.path for log in world.store.logs("users") for segment in log.segments]
    [(_, version_id)] = bucket.versions(live)
    path = bucket.put(f"{key_of(live)}?versionId={version_id}", left_behind())

    [text] = world.verified().blocked
    assert text.startswith(f"{path} was not looked through: its key looks like a version of another file")

    world.later(2 * DAY_MS)
    world.purge()
    assert world.verified().erasure.state == "verified"
    assert versions_with(bucket, [VALUE]) == []


@pytest.mark.parametrize("folder", ["receipts", "gc"])
def test_among_receipts_and_journals_where_no_purge_deletes_it_it_is_to_be_moved_away(
    s3_endpoint: str, tmp_path: Path, folder: str
) -> None:
    bucket = new_bucket(s3_endpoint)
    world = BucketWorld(tmp_path, bucket=bucket)
    almost_erased_in(world)
    path = bucket.put(f"{key_of(location_of(world))}/metadata/{folder}/x.json?versionId=an-id", VALUE)
    [text] = world.verified().blocked
    assert (path in text, "; move it out of the topic's folder" in text) == (True, True)
    bucket.files.delete(path)
    require_verified(world)
