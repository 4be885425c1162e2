"""A bucket that does not list its versions may have a hidden file from before: no request is ``deleted`` then."""

from __future__ import annotations

from pathlib import Path

from tests.erasure.bucket_world import BucketWorld
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, VALUE
from tests.table.buckets import new_bucket
from tests.table.counted_s3 import counted_s3
from tests.table.test_purge_of_versions import key_of
from tests.table.test_versions_not_listed import REFUSED, answer_listings


def test_a_request_waits_for_a_listing_of_versions(tmp_path: Path) -> None:
    with counted_s3() as s3:
        bucket = new_bucket(s3.endpoint)
        world = BucketWorld(tmp_path, bucket=bucket)
        world.create()
        world.append((KEY, VALUE), (OTHER, b"1"))
        path = world.store.logs("users")[0].segments[0].path
        hidden = bucket.put(f"{key_of(path)}-copy.parquet", bucket.files.read_bytes(path))
        bucket.hide(hidden)
        world.ask()
        for _ in range(4):
            world.later(2 * HOUR_MS)
            world.clean()
            world.purge(grace_ms=10 * DAY_MS)
        assert world.erasure().state == "unreferenced"
        answer_listings(s3, "versions", REFUSED)
        row = world.row()
        assert row.erasure.state == "unreferenced"
        assert any("not looked at: " in each and "can't be listed" in each for each in row.blocked)
        s3.refuse = lambda _: None
        world.purge()
        assert world.erasure().state == "deleted"
