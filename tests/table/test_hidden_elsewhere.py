"""A file outside of its topic's folder that somebody deleted is not gone while its bucket keeps versions of it."""

from __future__ import annotations

from keptlog.table.removal.journal import DeletedFile, Journal
from keptlog.table.removal.removal import Removal
from tests.table.buckets import ABucket


def test_it_is_told_as_not_deleted_until_its_versions_are_deleted_too(bucket: ABucket) -> None:
    outside = bucket.put("beside/x.parquet", b"123")
    bucket.hide(outside)
    journal = Journal((), (DeletedFile(outside, 3),), ())
    removal = Removal(bucket.files, f"s3://{bucket.name}/topic", {f"s3://{bucket.name}/topic/metadata/j.json": journal})

    removal.look_again(removal.journals.values())

    [left] = removal.not_deleted
    [version] = [each for path, each in bucket.versions() if path == outside and each in left.reason]
    assert (left.path, left.bytes) == (outside, 3)
    assert f"its bucket keeps versions of it: delete these by hand too ({version})" in left.reason
    assert removal.elsewhere({outside: 3}) == {outside: 3}

    bucket.files.delete(outside)

    assert removal.elsewhere({outside: 3}) == {}
