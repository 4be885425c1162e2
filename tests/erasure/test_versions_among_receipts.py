"""An old version of a file among receipts or journals that is none is not taken for one: it keeps an erasure open."""

from __future__ import annotations

import json

import pytest

from keptlog.table.io.object_versions import Bucket
from tests.erasure.bucket_world import BucketWorld
from tests.erasure.test_planted import almost_erased_in, location_of, require_open_until_purged
from tests.erasure.world import VALUE
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
    world_in_a_bucket: BucketWorld, name: str
) -> None:
    world = world_in_a_bucket
    almost_erased_in(world)
    content = json.dumps({"value": VALUE.decode()}).encode()
    path = world.bucket.put(f"{key_of(location_of(world))}/metadata/{name}", content)
    world.bucket.hide(path)
    require_open_until_purged(world, path)


@pytest.mark.parametrize("name", ["receipts/x.json", "receipts/erasures/x.json", "gc/x.json"])
def test_a_version_that_may_not_be_read_is_named_and_does_not_end_the_search(
    world_in_a_bucket: BucketWorld, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    world = world_in_a_bucket
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
