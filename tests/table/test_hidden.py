"""What a bucket keeps and no listing shows is found: hidden files, open uploads, replaced versions."""

from __future__ import annotations

from pathlib import Path

from keptlog.table.removal.hidden import HiddenFiles, hidden_below
from tests.table.buckets import ABucket, new_bucket
from tests.table.purges import clock_ms


def test_a_hidden_file_has_the_bytes_of_all_its_versions_and_its_delete_ends_them(bucket: ABucket) -> None:
    before_ms = clock_ms() // 1000 * 1000
    folder = f"s3://{bucket.name}/topic"
    bucket.put("topic/x", b"1")
    path = bucket.put("topic/x", b"22")
    bucket.hide(path)
    bucket.put("topic/there")
    found = hidden_below(bucket.files, folder)
    [file] = found.files
    assert (file.path, file.size_bytes, found.replaced, found.not_looked_at) == (path, 3, (), ())
    assert before_ms <= file.modified_ms <= clock_ms()
    bucket.files.delete(file.path)
    assert hidden_below(bucket.files, folder) == HiddenFiles()
    assert [path for path, _ in bucket.versions()] == [f"{folder}/there"]


def test_what_was_written_again_has_replaced_versions_and_is_not_hidden(bucket: ABucket) -> None:
    path = bucket.put("topic/x", b"1")
    bucket.hide(path)
    bucket.put("topic/x", b"2")
    found = hidden_below(bucket.files, f"s3://{bucket.name}/topic")
    assert found.files == ()
    assert {each.kind for each in found.replaced} == {"object version", "delete marker"}
    assert bucket.files.delete_versions(found.replaced) == ()
    assert bucket.files.read_bytes(path) == b"2"
    assert len(bucket.versions()) == 1


def test_an_open_upload_is_a_file_that_a_delete_ends(bucket: ABucket) -> None:
    upload = bucket.client.create_multipart_upload(Bucket=bucket.name, Key="topic/x")
    folder = f"s3://{bucket.name}/topic"
    [file] = hidden_below(bucket.files, folder).files
    assert (file.path, file.size_bytes) == (f"{folder}/x?uploadId={upload['UploadId']}", 0)
    bucket.files.delete(file.path)
    assert hidden_below(bucket.files, folder) == HiddenFiles()


def test_open_uploads_are_found_where_there_are_no_versions_too(s3_endpoint: str) -> None:
    bucket = new_bucket(s3_endpoint, None)
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="topic/x")
    assert len(hidden_below(bucket.files, f"s3://{bucket.name}/topic").files) == 1


def test_a_locked_version_keeps_its_file_hidden(bucket_with_locks: ABucket) -> None:
    bucket = bucket_with_locks
    path = bucket.put("topic/x")
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key="topic/x", LegalHold={"Status": "ON"})
    bucket.hide(path)
    [left] = bucket.files.delete_many([path])
    assert (left.path, left.kind) == (path, "legal hold")
    assert [file.path for file in hidden_below(bucket.files, f"s3://{bucket.name}/topic").files] == [path]
    assert not bucket.files.exists(path)


def test_a_store_that_is_not_looked_at_is_told_as_such(tmp_path: Path, bucket: ABucket) -> None:
    elsewhere = hidden_below(bucket.files, "gs://bucket/topic")
    assert elsewhere == HiddenFiles(not_looked_at=("versions and open uploads of this store (gs) are not looked at",))
    assert hidden_below(bucket.files, f"file://{tmp_path}") == HiddenFiles()


def test_a_store_that_does_not_answer_costs_only_what_was_asked_of_it(bucket: ABucket) -> None:
    missing = hidden_below(bucket.files, "s3://no-such-bucket-of-ours/topic")
    assert (missing.files, missing.replaced, len(missing.unread)) == ((), (), 2)
    assert "bucket no-such-bucket-of-ours can't be asked" in missing.unread[0]
    assert missing.not_looked_at == ()
