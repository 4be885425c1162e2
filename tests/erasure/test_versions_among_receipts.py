"""An old version of a file among receipts or journals that is none is not taken for one: it keeps an erasure open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keptlog.table.io.object_versions import Bucket
from tests.erasure.bucket_world import BucketWorld
from tests.erasure.byte_search import versions_with
from tests.erasure.test_planted import almost_erased_in, location_of, require_verified
from tests.erasure.world import KEY, SECOND_MS, VALUE
from tests.table.buckets import new_bucket
from tests.table.test_purge_of_versions import key_of


@pytest.mark.parametrize(
    "name",
    [
        "receipts/x.json",
        "receipts/erasures/x.json",
        "receipts/taken-back/x.json",
        "receipts/readers/app/an-id/0-5.json",
        "gc/x.json",
    ],
)
def test_what_was_moved_away_as_told_leaves_a_version_that_keeps_the_erasure_open(
    endpoint: str, tmp_path: Path, name: str
) -> None:
    world = BucketWorld(tmp_path, bucket=new_bucket(endpoint))
    almost_erased_in(world)
    content = json.dumps({"value": VALUE.decode()}).encode()
    path = world.bucket.put(f"{key_of(location_of(world))}/metadata/{name}", content)
    world.bucket.hide(path)
    row = world.verified()
    assert (row.erasure.is_open, [path in each for each in row.blocked]) == (True, [True])
    world.later(SECOND_MS)
    world.purge()
    assert versions_with(world.bucket, [KEY, VALUE]) == []
    require_verified(world)


@pytest.mark.parametrize("name", ["receipts/x.json", "receipts/erasures/x.json", "gc/x.json"])
def test_a_version_that_may_not_be_read_is_named_and_does_not_end_the_search(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    world = BucketWorld(tmp_path, bucket=new_bucket(endpoint))
    almost_erased_in(world)
    path = world.bucket.put(f"{key_of(location_of(world))}/metadata/{name}", b"{}")
    world.bucket.hide(path)
    opened = Bucket.open

    def refuse_versions(bucket: Bucket, at: str, version_id: str | None = None) -> object:
        if version_id:
            raise PermissionError("s3:GetObjectVersion is denied")
        return opened(bucket, at)

    monkeypatch.setattr(Bucket, "open", refuse_versions)
    [text] = world.verified().blocked
    assert path in text
    assert "s3:GetObjectVersion is denied" in text
