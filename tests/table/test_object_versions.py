"""Versioned buckets: what is deleted is gone, with all its versions, and what is not is named with its reason."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples.lake.s3_server import KEYS
from keptlog.errors import InvalidConfig
from keptlog.storage.object_version import ObjectVersion
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.io.files import TableFiles
from keptlog.table.io.read_only import READ_ONLY
from keptlog.table.io.remote_files import client_properties
from tests.table.buckets import ABucket, new_bucket
from tests.table.purges import clock_ms

FAR = datetime(2090, 1, 1, tzinfo=UTC)
FAR_MS = int(FAR.timestamp() * 1000)


def locked_file(bucket: ABucket, mode: str) -> str:
    path = bucket.put("topic/data/x.parquet")
    retention = {"Mode": mode, "RetainUntilDate": FAR}
    bucket.client.put_object_retention(Bucket=bucket.name, Key="topic/data/x.parquet", Retention=retention)
    return path


def file_on_hold(bucket: ABucket) -> str:
    path = bucket.put("topic/data/x.parquet")
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key="topic/data/x.parquet", LegalHold={"Status": "ON"})
    return path


def requests_of(bucket: ABucket) -> list[str]:
    """The operations that keptlog's own client asks of a store from now on."""
    from keptlog.table.io.s3_client import s3_client  # noqa: PLC0415  # boto3 may be missing

    asked: list[str] = []
    client = s3_client(client_properties(bucket.properties, f"s3://{bucket.name}/x"))
    client.meta.events.register("before-call.s3", lambda model, **_: asked.append(model.name))
    return asked


def test_a_delete_leaves_no_version_and_no_delete_marker(bucket: ABucket) -> None:
    path = bucket.put("topic/data/x.parquet", b"1")
    bucket.put("topic/data/x.parquet", b"2")
    bucket.hide(path)
    bucket.put("topic/data/x.parquet", b"3")
    neighbour = bucket.put("topic/data/x.parquet2")
    bucket.files.delete(path)
    assert [path for path, _ in bucket.versions()] == [neighbour]
    bucket.files.delete(path)


def test_a_delete_leaves_no_version_however_the_scheme_is_written(bucket: ABucket) -> None:
    path = bucket.put("topic/data/x.parquet", b"1")
    bucket.files.delete(path.replace("s3://", "s3a://"))
    assert bucket.versions() == []


def test_what_pyiceberg_deletes_leaves_no_version(bucket: ABucket) -> None:
    path = bucket.put("topic/metadata/00001-x.metadata.json")
    DurableFileIO({**dict(bucket.properties), "log.p0.log-end-offset": "17"}).delete(path)
    assert bucket.versions() == []


def test_a_file_that_could_not_be_written_to_its_end_leaves_no_version(bucket: ABucket) -> None:
    def write() -> None:
        with bucket.files.open_output(f"s3://{bucket.name}/topic/data/x.parquet") as sink:
            sink.write(b"value")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert bucket.versions() == []


def test_many_files_are_deleted_with_a_request_for_a_thousand_versions(bucket: ABucket) -> None:
    asked = requests_of(bucket)
    gone = [ObjectVersion(f"s3://{bucket.name}/{number}", "id", 1, 0, is_latest=False) for number in range(1001)]
    assert bucket.files.delete_versions(gone) == ()
    assert asked == ["DeleteObjects"] * 2


def test_a_bucket_without_versions_is_asked_once_and_costs_no_request_more(s3_endpoint: str) -> None:
    bucket = new_bucket(s3_endpoint, None)
    asked = requests_of(bucket)
    for number in range(3):
        bucket.files.delete(bucket.put(f"topic/{number}"))
    assert bucket.files.delete_many([bucket.put(f"topic/{number}") for number in range(3)]) == ()
    assert asked == ["GetBucketVersioning", *["DeleteObjects"] * 4]
    assert bucket.files.versions_below(f"s3://{bucket.name}/topic").versions == ()
    assert bucket.files.versions_below(f"s3://{bucket.name}/topic").not_looked_at is None
    assert len(asked) == 5
    assert bucket.versions() == []


def test_a_process_that_began_before_versions_were_switched_on_hides_nothing(s3_endpoint: str) -> None:
    """It has asked, and was told that there are none; what a delete answers tells otherwise."""
    bucket = new_bucket(s3_endpoint, None)
    bucket.files.delete(bucket.put("topic/first"))
    bucket.set_versioning("Enabled")
    bucket.put("topic/0", b"an older version")
    assert bucket.files.delete_many([bucket.put(f"topic/{number}") for number in range(3)]) == ()
    assert bucket.versions() == []
    bucket.hide(bucket.put("topic/hidden"))
    assert len(bucket.files.versions_below(f"s3://{bucket.name}/topic").versions) == 2


def test_a_lock_that_came_with_versions_is_told_by_a_process_that_began_before(s3_endpoint: str) -> None:
    bucket = new_bucket(s3_endpoint, None)
    bucket.files.delete(bucket.put("topic/first"))
    bucket.set_versioning("Enabled")
    locks = {"ObjectLockEnabled": "Enabled"}
    bucket.client.put_object_lock_configuration(Bucket=bucket.name, ObjectLockConfiguration=locks)
    path = bucket.put("topic/data/x.parquet")
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key="topic/data/x.parquet", LegalHold={"Status": "ON"})
    assert [each.kind for each in bucket.files.delete_many([path])] == ["legal hold"]
    with pytest.raises(PermissionError, match="legal hold"):
        bucket.files.delete(path)


def test_a_delete_leaves_no_marker_of_its_folder(s3_endpoint: str) -> None:
    """Arrow's client puts an empty object there: after a topic was deleted, there were ten."""
    bucket = new_bucket(s3_endpoint, None)
    path = f"s3://{bucket.name}/topic/data/partition=0/x.parquet"
    bucket.files.write_bytes(path, b"value")
    bucket.files.delete(path)
    assert "Contents" not in bucket.client.list_objects_v2(Bucket=bucket.name)


def test_versions_that_were_kept_before_versioning_was_suspended_go_too(s3_endpoint: str) -> None:
    """Moto deletes all versions of a key of a suspended bucket at once, so what is sent counts as well."""
    bucket = new_bucket(s3_endpoint, None)
    path = bucket.put("topic/x", b"written without versions")
    bucket.set_versioning("Enabled")
    bucket.put("topic/x", b"written with them")
    bucket.set_versioning("Suspended")
    there = bucket.versions()
    assert "null" in {version_id for _, version_id in there}
    assert [each.version_id for each in bucket.files.versions_below(f"s3://{bucket.name}/topic").versions] == ["null"]
    sent: list[tuple[str, str]] = []
    requests_of(bucket)
    from keptlog.table.io.s3_client import s3_client  # noqa: PLC0415  # boto3 may be missing

    def listen(params: Mapping[str, Any], **_: object) -> None:
        sent.extend((f"s3://{bucket.name}/{each['Key']}", each["VersionId"]) for each in params["Delete"]["Objects"])

    events = s3_client(client_properties(bucket.properties, f"s3://{bucket.name}/x")).meta.events
    events.register("provide-client-params.s3.DeleteObjects", listen)
    bucket.files.delete(path)
    events.unregister("provide-client-params.s3.DeleteObjects", listen)  # the next test may have the same client
    assert sorted(sent) == there
    assert bucket.versions() == []


@pytest.mark.parametrize(
    ("mode", "remedy"),
    [
        ("COMPLIANCE", "nobody can delete it before: purge again after 2090-01-01T00:00:00.000Z"),
        ("GOVERNANCE", "purge again after 2090-01-01T00:00:00.000Z, or have it deleted by who may bypass governance"),
    ],
)
def test_a_locked_version_is_named_with_its_date_and_who_must_act(
    bucket_with_locks: ABucket, mode: str, remedy: str
) -> None:
    bucket = bucket_with_locks
    path = locked_file(bucket, mode)
    [left] = bucket.files.delete_many([path, bucket.put("topic/data/y.parquet")])
    [(_, version_id)] = bucket.versions()
    assert (left.path, left.version_id, left.kind, left.until_ms) == (path, version_id, "object lock", FAR_MS)
    assert left.bytes == len(b"value")
    assert f"object lock ({mode.lower()}) until 2090-01-01T00:00:00.000Z; {remedy}" in str(left)
    assert bucket.files.still_there([path]) == (left,)
    with pytest.raises(PermissionError, match=f"{version_id}.* is still there: object lock"):
        bucket.files.delete(path)


def test_a_legal_hold_is_named_until_it_is_taken_off(bucket_with_locks: ABucket) -> None:
    bucket = bucket_with_locks
    path = file_on_hold(bucket)
    [left] = bucket.files.delete_many([path])
    assert (left.path, left.kind, left.until_ms) == (path, "legal hold", None)
    assert "whoever put it on must take it off" in str(left)
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key="topic/data/x.parquet", LegalHold={"Status": "OFF"})
    assert bucket.files.delete_many([path]) == ()
    assert bucket.versions() == []


def test_a_version_that_is_locked_and_on_hold_is_named_for_both(bucket_with_locks: ABucket) -> None:
    locked_file(bucket_with_locks, "COMPLIANCE")
    bucket_with_locks.client.put_object_legal_hold(
        Bucket=bucket_with_locks.name, Key="topic/data/x.parquet", LegalHold={"Status": "ON"}
    )
    path = f"s3://{bucket_with_locks.name}/topic/data/x.parquet"
    assert {each.kind for each in bucket_with_locks.files.delete_many([path])} == {"object lock", "legal hold"}


def test_only_what_was_refused_is_asked_for_its_lock(bucket_with_locks: ABucket) -> None:
    path = locked_file(bucket_with_locks, "COMPLIANCE")
    others = [bucket_with_locks.put(f"topic/data/{number}") for number in range(3)]
    asked = requests_of(bucket_with_locks)
    assert len(bucket_with_locks.files.delete_many([path, *others])) == 1
    assert asked.count("HeadObject") == 1


def test_a_refused_version_stays_below_its_delete_marker(bucket_with_locks: ABucket) -> None:
    """Without the marker it would be the current object again, for every reader."""
    path = locked_file(bucket_with_locks, "COMPLIANCE")
    bucket_with_locks.hide(path)
    assert [each.kind for each in bucket_with_locks.files.delete_many([path])] == ["object lock"]
    assert len(bucket_with_locks.versions()) == 2
    assert list(bucket_with_locks.files.list(f"s3://{bucket_with_locks.name}/topic")) == []


def test_what_a_policy_refuses_is_told_in_the_words_of_the_store(bucket: ABucket) -> None:
    path = bucket.put("topic/data/x.parquet")
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject*", "Resource": "arn:aws:s3:::*"}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    bucket.client.put_bucket_policy(Bucket=bucket.name, Policy=json.dumps(policy))
    [left] = bucket.files.delete_many([path])
    assert (left.path, left.kind, left.why) == (path, "refused", "AccessDenied: Access Denied")
    assert left.remedy == "allow its deletion (s3:DeleteObjectVersion), then purge again"


def test_all_versions_are_found_over_many_pages(bucket: ABucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        for content in (b"1", b"22", b"333"):
            bucket.put(f"topic/{number}", content)
    bucket.hide(f"s3://{bucket.name}/topic/1")
    bucket.put("topicality/1", b"1")
    bucket.put("topicality/1", b"2")
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    below = bucket.files.versions_below(f"s3://{bucket.name}/topic")
    found = [(each.path[-1], each.kind, each.size_bytes) for each in below.versions]
    two = [("object version", 1), ("object version", 2)]
    expected = [(name, *each) for name in "0123" for each in two]
    assert sorted(found) == sorted([*expected, ("1", "object version", 3), ("1", "delete marker", 0)])
    assert {path[-1] for path in below.current} == {"0", "2", "3"}
    assert not any(each.is_current for each in below.versions)
    bucket.files.delete_many([f"s3://{bucket.name}/topic/{number}" for number in range(4)])
    assert {path for path, _ in bucket.versions()} == {f"s3://{bucket.name}/topicality/1"}


def test_a_version_says_from_when_on_it_was_not_what_readers_get(bucket: ABucket) -> None:
    before_ms = clock_ms() // 1000 * 1000
    path = bucket.put("topic/x", b"1")
    bucket.put("topic/x", b"2")
    bucket.hide(path)
    versions = bucket.files.versions_below(f"s3://{bucket.name}/topic/").versions
    assert [each.is_delete_marker for each in versions].count(True) == 1
    assert all(before_ms <= each.modified_ms <= each.since_ms <= clock_ms() for each in versions)


def test_a_version_is_read_like_a_file_also_by_a_task(bucket: ABucket) -> None:
    path = f"s3://{bucket.name}/topic/data/x.parquet"
    for number in (1, 2):
        with bucket.files.open_output(path) as sink:
            pq.write_table(pa.table({"number": [number] * 10_000, "other": range(10_000)}), sink)
    [old] = bucket.files.versions_below(f"s3://{bucket.name}/topic").versions
    files = pickle.loads(pickle.dumps(bucket.files))  # noqa: S301  # our own
    with files.open_input(old.location) as source:
        assert pq.read_table(source, columns=["number"])["number"].unique().to_pylist() == [1]
    with files.open_input(old.location) as source:
        assert (source.size(), len(source.read())) == (old.size_bytes, old.size_bytes)
    bucket.files.delete(path)
    with pytest.raises(FileNotFoundError, match=old.version_id):
        files.open_input(old.location)


KILLED_WRITER = """
import os, sys
from keptlog.table.io.remote_files import create_remote
sink = create_remote(eval(sys.argv[1]), sys.argv[2])
sink.write(b"v" * 2**24)
sink.flush()
os._exit(9)
"""


def test_an_upload_that_nobody_completed_is_found_and_aborted(bucket: ABucket) -> None:
    """What a writer leaves that was killed: Arrow has sent the first part."""
    path = f"s3://{bucket.name}/topic/data/x.parquet"
    writer = [sys.executable, "-c", KILLED_WRITER, repr(bucket.properties), path]
    assert subprocess.run(writer, check=False).returncode == 9
    [upload] = bucket.files.uploads_below(f"s3://{bucket.name}/topic")
    assert upload.path == path
    assert bucket.files.uploads_below(f"s3://{bucket.name}/top") == ()
    bucket.files.delete(upload.location)
    assert bucket.files.delete_many([upload.location]) == ()
    assert bucket.files.uploads_below(f"s3://{bucket.name}/topic") == ()


@pytest.mark.parametrize("versioning", [None, "Enabled"])
def test_an_object_whose_key_looks_like_that_of_an_upload_is_deleted(s3_endpoint: str, versioning: str | None) -> None:
    bucket = new_bucket(s3_endpoint, versioning)
    for delete in (bucket.files.delete, lambda path: bucket.files.delete_many([path])):
        path = bucket.put("topic/data/x?uploadId=an-id")
        delete(path)
        assert bucket.versions() == []


def test_an_object_on_hold_whose_key_looks_like_that_of_an_upload_is_named_for_the_hold(
    bucket_with_locks: ABucket,
) -> None:
    path = bucket_with_locks.put(key := "topic/data/x?uploadId=an-id")
    bucket_with_locks.client.put_object_legal_hold(Bucket=bucket_with_locks.name, Key=key, LegalHold={"Status": "ON"})
    [left] = bucket_with_locks.files.delete_many([path])
    assert (left.path, left.kind) == (path, "legal hold")


def test_local_files_have_no_versions(tmp_path: os.PathLike[str]) -> None:
    path = f"file://{tmp_path}/x"
    TableFiles().write_bytes(path, b"1")
    assert [each.path for each in TableFiles().still_there([path, f"{path}y"])] == [path]
    below = TableFiles().versions_below(f"file://{tmp_path}")
    assert (below.versions, below.not_looked_at) == ((), None)
    assert TableFiles().delete_many([path, f"{path}y"]) == ()
    assert TableFiles().still_there([path]) == ()


def test_a_local_file_that_stays_is_named_with_its_reason(tmp_path: os.PathLike[str]) -> None:
    folder = f"file://{tmp_path}/folder"
    TableFiles().write_bytes(f"{folder}/x", b"1")
    [left] = TableFiles().delete_many([folder, f"{folder}/x"])
    assert (left.path, left.kind) == (folder, "refused")
    assert "Error: " in left.why


def test_a_read_only_home_deletes_no_version(bucket: ABucket) -> None:
    path = bucket.put("topic/x")
    bucket.put("topic/x")
    files = TableFiles((*bucket.properties, (READ_ONLY, "this home is a copy")))
    versions = files.versions_below(f"s3://{bucket.name}/topic").versions
    for change in (
        lambda: files.delete(path),
        lambda: files.delete_many([path]),
        lambda: files.delete_versions(versions),
        lambda: files.delete(f"{path}?uploadId=x"),
    ):
        with pytest.raises(InvalidConfig, match="this home is a copy"):
            change()
    assert len(bucket.versions()) == 2


def test_the_client_takes_the_role_that_the_catalog_names(bucket: ABucket, monkeypatch: pytest.MonkeyPatch) -> None:
    from keptlog.table.io.s3_client import s3_client  # noqa: PLC0415  # boto3 may be missing

    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", dict(bucket.properties)["s3.endpoint"])
    role = ("s3.role-arn", "arn:aws:iam::123456789012:role/purger")
    used: list[str] = []
    client = s3_client(client_properties((*bucket.properties, role), f"s3://{bucket.name}/x"))
    client.meta.events.register("before-send.s3", lambda request, **_: used.append(str(request.headers)))
    assert client.list_buckets()["Buckets"]
    assert "x-amz-security-token" in used[0].lower()
    assert "someone" not in used[0]


def test_a_store_that_does_not_answer_is_an_os_error_of_one_line() -> None:
    files = TableFiles(tuple({"s3.endpoint": "http://127.0.0.1:1", **KEYS}.items()))
    with pytest.raises(OSError, match="bucket nowhere can't be asked whether it keeps versions") as raised:
        files.delete("s3://nowhere/x")
    assert "\n" not in str(raised.value)


def test_settings_of_the_catalog_that_are_nested_stand_in_nobodys_way(bucket: ABucket) -> None:
    """As PyIceberg's ``auth`` is."""
    path = bucket.put("lake/users/data/x.parquet")
    files = TableFiles((("auth", {"type": "basic", "basic": {"username": "me"}}), *bucket.properties))
    assert files.exists(path)
    assert [each.path for each in files.list(f"s3://{bucket.name}/lake")] == [path]
    assert list(files.delete_many([path])) == []
    assert bucket.versions() == []
