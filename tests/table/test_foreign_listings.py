"""What a portal or a proxy answers in place of a store's list is no folder without files: nothing is gone for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.errors import StorageUnavailable
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket, new_bucket
from tests.table.portals import SIGN_IN, portal
from tests.table.stores import NOW_MS, TOPIC, new_id, new_records, values

pytest.importorskip("boto3")
PAGES = {"page": SIGN_IN, "nothing": b"", "other list": b"<ListAllMyBucketsResult/>"}
FOLDER = "s3://lake/keptlog/users"


def _bucket(files: TableFiles) -> Any:
    from keptlog.table.io.object_versions import bucket_of  # noqa: PLC0415  # boto3 may be missing

    return bucket_of(files.properties, FOLDER)


LISTS: dict[str, Callable[[TableFiles], Any]] = {
    "files": lambda files: list(files.list(FOLDER)),
    "versions": lambda files: _bucket(files).of(FOLDER),
    "uploads": lambda files: _bucket(files).uploads_below(FOLDER),
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("look", LISTS.values(), ids=LISTS)
def test_what_is_no_list_is_an_outage(page: bytes, look: Callable[[TableFiles], Any]) -> None:
    said = "answered with 200, and with no list of S3's: see to the endpoint"
    with portal(page) as files, pytest.raises(OSError, match=said):
        look(files)


@pytest.mark.parametrize("versioning", ["Enabled", None])
def test_a_list_without_a_file_is_one(s3_endpoint: str, versioning: str | None) -> None:
    bucket: ABucket = new_bucket(s3_endpoint, versioning)
    folder = f"s3://{bucket.name}/lake"
    assert list(bucket.files.list(folder)) == []
    assert bucket.versions() == []


def test_a_topic_is_not_deleted_while_its_folder_can_t_be_listed(
    s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = new_bucket(s3_endpoint, None)
    place = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://{bucket.name}/lake"}
    store = LogStore(SqlCatalog("keptlog", **place, **dict(bucket.properties)), {}, lambda _: None, new_id)
    store.create_topic(TOPIC, 1, {})
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    sessions = pytest.importorskip("botocore.httpsession").URLLib3Session
    really = sessions.send

    def emptied(session: Any, request: Any) -> Any:
        answer = really(session, request)
        if "list-type=2" in request.url:
            answer._content = b""  # botocore reads it once
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(sessions, "send", emptied)
        with pytest.raises(StorageUnavailable, match="with no list of S3's"):
            store.delete_topic(TOPIC, NOW_MS)
    assert values(store) == [(0, 0, b"1")]
