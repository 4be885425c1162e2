"""A topic in a versioned bucket: after its purges no version of what was deleted is there, and nothing else is gone."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from keptlog.errors import Action, LogCorrupt
from keptlog.passes.purge import Purger
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.removal.topic_storage import drafts_among
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import COMPACTED, TOPIC, append_each, clean, new_id, values


def catalog_in(bucket: ABucket, home: Path) -> Catalog:
    return load_catalog(
        "keptlog",
        **{
            "type": "sql",
            "uri": f"sqlite:///{home}/catalog.db",
            "warehouse": f"s3://{bucket.name}/warehouse",
            "py-io-impl": f"{DurableFileIO.__module__}.{DurableFileIO.__name__}",
            **dict(bucket.properties),
        },
    )


def cleaned_in(bucket: ABucket, home: Path) -> LogStore:
    """A log of which three segments were replaced by one."""
    store = LogStore(catalog_in(bucket, home), {}, time.sleep, new_id)
    store.create_topic(TOPIC, 1, COMPACTED | {"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")], [("a", "2")], [("b", "3"), ("a", "4")])
    clean(store)
    return store


def location_of(store: LogStore) -> str:
    return store.describe_topic(TOPIC).location


def key_of(path: str) -> str:
    return path.split("/", maxsplit=3)[3]


def kept_beside(bucket: ABucket, store: LogStore) -> list[tuple[str, str]]:
    """Versions below the topic that are not the only one of a file which a listing shows."""
    location = location_of(store)
    there = bucket.versions(location)
    paths = [path for path, _ in there]
    current = {file.path for file in store.files.list(location)}
    return [(path, version_id) for path, version_id in there if path not in current or paths.count(path) > 1]


def test_after_a_purge_no_version_of_a_retired_file_is_there(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    retired = store.purge(TOPIC, clock_ms() + 2 * DAY_MS).deleted_files
    assert len(retired) == 3
    there = {path for path, _ in bucket.versions(location_of(store))}
    assert there.isdisjoint(file.path for file in retired)
    assert kept_beside(bucket, store) == []
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4")]


def put_beside(bucket: ABucket, store: LogStore, name: str) -> str:
    """A file beside the segments, which somebody has deleted as one does who knows no versions."""
    path = bucket.put(f"{key_of(location_of(store))}/data/partition=0/{name}", b"value of old")
    bucket.hide(path)
    return path


def drafts_of(store: LogStore) -> list[dict[str, Any]]:
    paths = drafts_among(location_of(store), (file.path for file in store.files.list(location_of(store))))
    return [json.loads(store.files.read_bytes(path))["content"] for path in paths]


def test_what_somebody_elses_delete_only_hid_is_swept_after_the_grace_and_in_a_receipt(
    bucket: ABucket, tmp_path: Path
) -> None:
    store = cleaned_in(bucket, tmp_path)
    store.purge(TOPIC, clock_ms())
    hidden = put_beside(bucket, store, "old.parquet")
    early = store.purge(TOPIC, clock_ms())
    assert early.deleted_orphans == ()
    assert [(file.path, file.bytes, file.holder) for file in early.held] == [(hidden, 12, "object version")]
    late = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert (hidden, 12) in [(file.path, file.bytes) for file in late.deleted_orphans]
    assert kept_beside(bucket, store) == []
    [told] = [file for draft in drafts_of(store) for file in draft["files"] if file["path"] == hidden]
    assert (told["bytes"], told["why"]) == (12, "orphan")
    assert store.purge(TOPIC, clock_ms() + 2 * DAY_MS).deleted_orphans == ()


def test_the_sweep_of_a_hidden_file_makes_no_snapshot(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    put_beside(bucket, store, "old.parquet")
    before = store.load_table(TOPIC).current_snapshot()
    assert store.purge(TOPIC, clock_ms() + 2 * DAY_MS).deleted_orphans
    assert store.load_table(TOPIC).current_snapshot() == before


def test_an_upload_that_nobody_completed_is_aborted_after_the_grace_and_in_a_receipt(
    bucket: ABucket, tmp_path: Path
) -> None:
    store = cleaned_in(bucket, tmp_path)
    key = f"{key_of(location_of(store))}/data/partition=0/half.parquet"
    upload = bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key)
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="another/half.parquet")
    path = f"s3://{bucket.name}/{key}?uploadId={upload['UploadId']}"
    began_ms = 1_289_422_113_000  # so moto says of all
    early = store.purge(TOPIC, began_ms)
    assert (path, "staged") in [(file.path, file.holder) for file in early.held]
    late = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert path in [file.path for file in late.deleted_orphans]
    open_now = bucket.client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
    assert [each["Key"] for each in open_now] == ["another/half.parquet"]


def test_a_live_file_that_somebody_hid_is_the_way_back_and_nothing_is_deleted(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    [segment] = store.logs(TOPIC)[0].segments
    bucket.hide(segment.path)
    before = bucket.versions()
    with pytest.raises(LogCorrupt, match="its bucket still has it, so take its delete marker away, and purge again"):
        store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert bucket.versions() == before
    [marker] = [each for each in store.files.versions_below(location_of(store)).versions if each.is_delete_marker]
    store.files.delete_versions([marker])
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert values(store) == [(0, 2, b"3"), (0, 3, b"4")]


def test_a_file_that_somebody_hid_stays_as_long_as_a_tag_shows_it(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    [live] = store.logs(TOPIC)[0].segments
    retired = next(file.path for file in store.files.list(f"{location_of(store)}/data") if file.path != live.path)
    before_clean = store.load_table(TOPIC).snapshots()[-2]
    with store.load_table(TOPIC).manage_snapshots() as change:
        change.create_tag(before_clean.snapshot_id, "audit")
    bucket.hide(retired)
    kept = bucket.versions(retired)
    assert len(kept) == 2
    assert store.purge(TOPIC, clock_ms() + 2 * DAY_MS).deleted_orphans == ()
    assert bucket.versions(retired) == kept
    with store.load_table(TOPIC).manage_snapshots() as change:
        change.remove_tag("audit")
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert bucket.versions(retired) == []


def test_a_live_file_that_was_written_over_keeps_its_versions_until_it_goes_itself(
    bucket: ABucket, tmp_path: Path
) -> None:
    store = cleaned_in(bucket, tmp_path)
    [segment] = store.logs(TOPIC)[0].segments
    bucket.put(key_of(segment.path), b"not a segment")
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert len(bucket.versions(segment.path)) == 2


def test_of_what_keptlog_writes_again_only_the_newest_version_stays(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    path = f"{location_of(store)}/metadata/receipts/readers/audit/0.json"
    for number in range(3):
        store.files.write_bytes(path, str(number).encode())
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert store.files.read_bytes(path) == b"2"
    assert len(bucket.versions(path)) == 1


def test_a_locked_segment_is_named_with_its_date_and_tried_again(bucket_with_locks: ABucket, tmp_path: Path) -> None:
    bucket = bucket_with_locks
    store = cleaned_in(bucket, tmp_path)
    [live] = store.logs(TOPIC)[0].segments
    retired = sorted(file.path for file in store.files.list(f"{location_of(store)}/data") if file.path != live.path)
    until = datetime(2090, 1, 1, tzinfo=UTC)
    bucket.client.put_object_retention(
        Bucket=bucket.name, Key=key_of(retired[0]), Retention={"Mode": "COMPLIANCE", "RetainUntilDate": until}
    )
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key=key_of(retired[1]), LegalHold={"Status": "ON"})
    result = Purger(store).purge([TOPIC], now_ms=clock_ms() + 2 * DAY_MS)
    left = {file.path: file.reason for file in result.receipts[TOPIC].not_deleted}
    assert set(left) == set(retired[:2])
    assert "object lock (compliance) until 2090-01-01T00:00:00.000Z; nobody can delete it before" in left[retired[0]]
    assert "legal hold; whoever put it on must take it off" in left[retired[1]]
    assert retired[0] in str(result.failed[TOPIC])
    assert [file.path for file in result.receipts[TOPIC].deleted_files] == [retired[2]]
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key=key_of(retired[1]), LegalHold={"Status": "OFF"})
    again = Purger(store).purge([TOPIC], now_ms=clock_ms() + 2 * DAY_MS)
    assert [file.path for file in again.receipts[TOPIC].not_deleted] == [retired[0]]
    assert bucket.versions(retired[1]) == []


def test_a_hidden_version_that_is_locked_is_named_too(bucket_with_locks: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket_with_locks, tmp_path)
    path = bucket_with_locks.put(f"{key_of(location_of(store))}/data/partition=0/old.parquet")
    bucket_with_locks.client.put_object_legal_hold(
        Bucket=bucket_with_locks.name, Key=key_of(path), LegalHold={"Status": "ON"}
    )
    bucket_with_locks.hide(path)
    receipt = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert [(file.path, "legal hold" in file.reason) for file in receipt.not_deleted] == [(path, True)]
    assert path not in [file.path for file in receipt.deleted_orphans]


def test_after_the_deletion_of_a_topic_nothing_of_it_is_in_the_bucket(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    location = location_of(store)
    hidden = put_beside(bucket, store, "old.parquet")
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key=f"{key_of(location)}/data/half.parquet")
    deletion = store.delete_topic(TOPIC, clock_ms())
    assert deletion.is_over
    assert hidden in [file.path for file in deletion.deleted_files]
    receipts = f"{location}/metadata/receipts/"
    assert [path for path, _ in bucket.versions(location) if not path.startswith(receipts)] == []
    assert "Uploads" not in bucket.client.list_multipart_uploads(Bucket=bucket.name)


@pytest.mark.parametrize("is_hidden", [False, True])
def test_what_a_purge_could_not_delete_is_named_too_if_its_topic_can_not_be_deleted_wholly(
    bucket_with_locks: ABucket, tmp_path: Path, *, is_hidden: bool
) -> None:
    bucket, store = bucket_with_locks, cleaned_in(bucket_with_locks, tmp_path)
    [live] = [segment.path for log in store.logs(TOPIC) for segment in log.segments]
    retired = min(file.path for file in store.files.list(f"{location_of(store)}/data/") if file.path != live)
    held = [retired, live]
    for path in held:
        bucket.client.put_object_legal_hold(Bucket=bucket.name, Key=key_of(path), LegalHold={"Status": "ON"})
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    if is_hidden:
        bucket.hide(retired)
    deletion = store.delete_topic(TOPIC, clock_ms())
    assert sorted(file.path for file in deletion.not_deleted) == sorted(held)


def test_what_locks_and_holds_alone_keep_is_no_error_to_be_tried_again_at_once(
    bucket_with_locks: ABucket, tmp_path: Path
) -> None:
    """A script that repeats what may pass would repeat this for ever: somebody has to act, or a date to come."""
    bucket, store = bucket_with_locks, cleaned_in(bucket_with_locks, tmp_path)
    live = {segment.path for log in store.logs(TOPIC) for segment in log.segments}
    listed = sorted(file.path for file in store.files.list(f"{location_of(store)}/data/"))
    held, refused = [path for path in listed if path not in live][:2]
    where = {"Bucket": bucket.name, "Key": key_of(held)}
    bucket.client.put_object_legal_hold(**where, LegalHold={"Status": "ON"})
    until = datetime(2095, 1, 1, tzinfo=UTC)
    bucket.client.put_object_retention(**where, Retention={"Mode": "COMPLIANCE", "RetainUntilDate": until})

    resource = f"arn:aws:s3:::{bucket.name}/{key_of(refused)}"
    statement = {"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject*", "Resource": resource}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    bucket.client.put_bucket_policy(Bucket=bucket.name, Policy=json.dumps(policy))
    both = Purger(store).purge(now_ms=clock_ms() + 2 * DAY_MS)
    bucket.client.delete_bucket_policy(Bucket=bucket.name)
    assert sorted(file.path for file in both.receipts[TOPIC].not_deleted) == sorted([held, refused])
    assert both.failed[TOPIC].action is Action.RETRY

    failed = Purger(store).purge(now_ms=clock_ms() + 2 * DAY_MS).failed[TOPIC]
    assert (failed.action, "then purge again" in str(failed)) == (Action.FIX_STORAGE, True)

    deletion = store.delete_topic(TOPIC, clock_ms())
    assert deletion.unfinished
    assert deletion.unfinished.action is Action.FIX_STORAGE
    assert "purge again" not in str(deletion.unfinished)
    [left] = deletion.not_deleted
    again = f"run keptlog topic delete {TOPIC} again"
    assert f"whoever put it on must take it off (s3:PutObjectLegalHold), then {again}" in left.reason
    assert f"nobody can delete it before: {again} after 2095-01-01T00:00:00" in left.reason
    assert left.told == {"path": held, "bytes": left.bytes, "reason": left.reason}

    failed = Purger(store).purge(now_ms=clock_ms()).failed[TOPIC]
    assert failed.action is Action.FIX_STORAGE


def test_a_topic_that_lives_long_leaves_no_version_of_its_old_metadata(bucket: ABucket, tmp_path: Path) -> None:
    store = cleaned_in(bucket, tmp_path)
    with store.load_table(TOPIC).transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "1"})
    append_each(store, *[[("a", str(number))] for number in range(3)])
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert kept_beside(bucket, store) == []
