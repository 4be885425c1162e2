"""A file outside of its topic's folder that somebody deleted is not gone while its bucket keeps versions of it."""

from __future__ import annotations

import pytest

from keptlog.table.io.files import TableFiles
from keptlog.table.removal.journal import DeletedFile, Journal
from keptlog.table.removal.removal import Removal
from tests.table.buckets import ABucket


def removal_of(bucket: ABucket, outside: str) -> Removal:
    journal = Journal((), (DeletedFile(outside, 3),), ())
    return Removal(bucket.files, f"s3://{bucket.name}/topic", {f"s3://{bucket.name}/topic/metadata/j.json": journal})


def test_it_is_told_as_not_deleted_until_its_versions_are_deleted_too(bucket: ABucket) -> None:
    outside = bucket.put("beside/x.parquet", b"123")
    bucket.hide(outside)
    removal = removal_of(bucket, outside)

    removal.look_again(removal.journals.values())

    [left] = removal.not_deleted
    [version] = [each for path, each in bucket.versions() if path == outside and each in left.reason]
    assert (left.path, left.bytes) == (outside, 3)
    assert f"its bucket keeps versions of it: delete these by hand too ({version})" in left.reason
    assert removal.elsewhere({outside: 3}) == {outside: 3}

    bucket.files.delete(outside)

    assert removal.elsewhere({outside: 3}) == {}


def test_where_versions_may_not_be_listed_nobody_is_told_to_delete_it_once_more(
    bucket: ABucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "versions can't be listed: AccessDenied")

    monkeypatch.setattr(TableFiles, "still_there", refused)
    outside = bucket.put("beside/x.parquet", b"123")
    bucket.hide(outside)
    removal = removal_of(bucket, outside)

    removal.look_again(removal.journals.values())

    [left] = removal.not_deleted
    assert "nobody can tell whether its bucket keeps versions of it (PermissionError: " in left.reason
