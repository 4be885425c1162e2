"""What a bucket keeps beside what it lists is among a topic's holders, with its time; so is a lock, with its end."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keptlog.log.holder import Held, Holder, HolderKind, Holdings, Terms
from keptlog.passes.check import Outcome
from keptlog.passes.holders import judged
from keptlog.storage.object_version import ObjectVersion
from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.files import TableFiles
from keptlog.table.io.object_versions import Bucket
from keptlog.table.removal.held import held_in
from keptlog.table.removal.held_versions import held_versions
from keptlog.table.removal.hidden import HiddenFiles
from keptlog.table.removal.journal import read_journal
from keptlog.table.store import LogStore
from tests.table.buckets import ABucket, new_bucket
from tests.table.purges import DAY_MS, MINUTE_MS, clock_ms
from tests.table.stores import TOPIC, append_each, clean
from tests.table.test_purge_of_versions import cleaned_in, key_of, location_of

TERMS = Terms(MINUTE_MS)
TOLD = frozenset(HolderKind) - {HolderKind.METADATA, HolderKind.RETIRED}


@pytest.fixture
def store(bucket: ABucket, tmp_path: Path) -> LogStore:
    return cleaned_in(bucket, tmp_path)


def look(store: LogStore, now_ms: int | None = None) -> Holdings:
    return held_in(lambda: store.load_table(TOPIC), store.files, TERMS, now_ms or clock_ms())


def told(store: LogStore, now_ms: int | None = None) -> list[Held]:
    return [each for each in look(store, now_ms).held if each.kind in TOLD]


def holder(store: LogStore, kind: HolderKind, now_ms: int) -> Holder:
    [found] = [each for each in look(store, now_ms).holders(now_ms) if each.kind is kind]
    return found


def beside(bucket: ABucket, store: LogStore) -> str:
    """A file beside the segments."""
    return bucket.put(key_of(f"{store.describe_topic(TOPIC).location}/data/partition=0/x.parquet"), b"value")


def test_a_hidden_file_is_an_object_version_until_the_grace_has_passed_and_a_purge_ends_it(
    bucket: ABucket, store: LogStore
) -> None:
    assert told(store) == []
    path = beside(bucket, store)
    bucket.hide(path)
    [held] = told(store)
    assert (held.kind, held.path, held.bytes) == (HolderKind.OBJECT_VERSION, path, 5)
    assert held.due_ms(TERMS) == held.since_ms + DAY_MS
    late_ms = clock_ms() + 3 * DAY_MS
    late = holder(store, HolderKind.OBJECT_VERSION, late_ms)
    assert str(late).startswith(f"object version of {TOPIC} keeps 1 file, past its deadline (")
    assert "keptlog purge log deletes what is older than the grace" in str(late).replace(TOPIC, "log")
    store.purge(TOPIC, late_ms)
    assert told(store) == []


def test_an_open_upload_is_staged(bucket: ABucket, store: LogStore) -> None:
    key = key_of(f"{store.describe_topic(TOPIC).location}/data/x.parquet")
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key)
    [held] = told(store)
    assert held.kind is HolderKind.STAGED
    assert "?uploadId=" in (held.path or "")


def test_a_live_file_that_was_written_again_has_a_replaced_version_that_is_told_and_never_late(
    bucket: ABucket, store: LogStore
) -> None:
    live = store.logs(TOPIC)[0].segments[0].path
    bucket.put(key_of(live), store.files.read_bytes(live))
    [held] = told(store)
    assert held.kind is HolderKind.REPLACED_VERSION
    assert (held.path or "").startswith(f"{live}?versionId=")
    assert held.deadline_ms(TERMS) is None


def test_a_live_file_that_somebody_hid_is_lost_and_no_holder(bucket: ABucket, store: LogStore) -> None:
    bucket.hide(store.logs(TOPIC)[0].segments[0].path)
    assert told(store) == []


def test_a_hidden_file_that_a_snapshot_shows_is_of_that_holder(bucket: ABucket, store: LogStore) -> None:
    retired = [each for each in look(store).held if each.kind is HolderKind.RETIRED]
    bucket.hide(retired[0].path or "")
    assert told(store) == []
    assert len([each for each in look(store).held if each.kind is HolderKind.RETIRED]) == len(retired)


def test_old_positions_of_keptlogs_own_are_names_and_numbers(bucket: ABucket, store: LogStore) -> None:
    path = f"{store.describe_topic(TOPIC).location}/metadata/receipts/readers/r/0"
    for _ in range(2):
        bucket.put(key_of(path), b"{}")
    assert told(store) == []


@pytest.mark.parametrize("is_hidden", [True, False])
def test_what_is_late_because_of_a_lock_or_a_hold_names_it_with_its_end_and_who_must_act(
    bucket_with_locks: ABucket, tmp_path: Path, *, is_hidden: bool
) -> None:
    bucket, store = bucket_with_locks, cleaned_in(bucket_with_locks, tmp_path)
    path = beside(bucket, store)
    where = {"Bucket": bucket.name, "Key": key_of(path)}
    until = datetime(2095, 1, 1, tzinfo=UTC)
    bucket.client.put_object_retention(**where, Retention={"Mode": "COMPLIANCE", "RetainUntilDate": until})
    bucket.client.put_object_legal_hold(**where, LegalHold={"Status": "ON"})
    if is_hidden:
        bucket.hide(path)
    assert {each.kind for each in told(store)} <= {HolderKind.OBJECT_VERSION, HolderKind.STAGED}
    late_ms = clock_ms() + 3 * DAY_MS
    assert {each.kind for each in told(store, late_ms)} == {HolderKind.OBJECT_LOCK, HolderKind.LEGAL_HOLD}
    lock = holder(store, HolderKind.OBJECT_LOCK, late_ms)
    assert lock.until_ms == int(until.timestamp() * 1000)
    assert re.search(r"keeps 1 file, past its deadline \(.*\), until 2095-01-01T00:00:00", str(lock))
    hold = holder(store, HolderKind.LEGAL_HOLD, late_ms)
    assert (hold.is_late, hold.until_ms) == (True, None)
    assert "take it off (s3:PutObjectLegalHold)" in str(hold)


@pytest.mark.parametrize("is_hidden", [True, False])
def test_what_a_hold_refused_to_a_purge_names_the_hold_before_its_deadline_too(
    bucket_with_locks: ABucket, tmp_path: Path, *, is_hidden: bool
) -> None:
    """No purge deletes it after the grace, and it is of no run that is under way."""
    bucket, store = bucket_with_locks, cleaned_in(bucket_with_locks, tmp_path)
    [live] = [segment.path for segment in store.logs(TOPIC)[0].segments]
    retired = min(each.path for each in store.files.list(f"{location_of(store)}/data/") if each.path != live)
    [(_, version_id)] = bucket.versions(retired)
    where = {"Bucket": bucket.name, "Key": key_of(retired), "VersionId": version_id}
    bucket.client.put_object_legal_hold(**where, LegalHold={"Status": "ON"})
    if is_hidden:
        bucket.hide(retired)
    staged = beside(bucket, store)

    later_ms = clock_ms() + 60 * MINUTE_MS
    [left] = store.purge(TOPIC, later_ms).not_deleted
    assert left.path == retired
    kinds = {each.path: each.kind for each in told(store, later_ms) if each.kind is not HolderKind.JOURNAL}
    assert kinds == {retired: HolderKind.LEGAL_HOLD, staged: HolderKind.STAGED}
    hold = holder(store, HolderKind.LEGAL_HOLD, later_ms)
    assert (hold.is_late, "take it off (s3:PutObjectLegalHold)" in str(hold)) == (False, True)

    bucket.client.put_object_legal_hold(**where, LegalHold={"Status": "OFF"})
    assert store.purge(TOPIC, later_ms).not_deleted == ()


@pytest.mark.parametrize("is_hidden", [True, False])
def test_an_object_on_hold_whose_key_looks_like_that_of_an_upload_is_told_as_what_it_is(
    bucket_with_locks: ABucket, tmp_path: Path, *, is_hidden: bool
) -> None:
    bucket, store = bucket_with_locks, cleaned_in(bucket_with_locks, tmp_path)
    path = bucket.put(f"{key_of(beside(bucket, store))}?uploadId=an-id", b"value")
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key=key_of(path), LegalHold={"Status": "ON"})
    if is_hidden:
        bucket.hide(path)
    kinds = {each.path: each.kind for each in told(store)}
    assert kinds[path] == (HolderKind.OBJECT_VERSION if is_hidden else HolderKind.STAGED)
    late = {each.path: each.kind for each in told(store, clock_ms() + 3 * DAY_MS)}
    assert late[path] is HolderKind.LEGAL_HOLD


def test_a_purge_that_was_killed_before_its_first_delete_costs_no_request_a_file(
    bucket: ABucket, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_each(store, *([("a", str(number))] for number in range(12)))
    clean(store)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TableFiles, "delete_many", killed)
    with pytest.raises(KeyboardInterrupt):
        store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS)

    asked: list[ObjectVersion] = []
    monkeypatch.setattr(Bucket, "why_kept", lambda _, version: asked.append(version))
    [journal] = [each for each in told(store) if each.kind is HolderKind.JOURNAL]
    assert len(read_journal(store.files, journal.path or "").paths) > 20
    assert 0 < len(asked) <= 10


def test_what_a_killed_purge_left_is_told_where_versions_may_not_be_listed(
    bucket: ABucket, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TableFiles, "delete_many", killed)
    with pytest.raises(KeyboardInterrupt):
        store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS)

    def denied(self: object, prefix: str) -> None:
        raise StoreRefused(f"versions below {prefix} can't be listed", "AccessDenied")

    monkeypatch.setattr(Bucket, "_by_path", denied)
    found = look(store)
    assert HolderKind.JOURNAL in {each.kind for each in found.held}
    assert "versions below" in "".join(found.unread)


def test_what_is_late_is_told_where_versions_may_not_be_listed(
    bucket: ABucket, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = beside(bucket, store)

    def denied(self: object, prefix: str) -> None:
        raise StoreRefused(f"versions below {prefix} can't be listed", "AccessDenied")

    monkeypatch.setattr(Bucket, "_by_path", denied)
    found = look(store, clock_ms() + DAY_MS)
    assert left in {each.path for each in found.held if each.kind is HolderKind.ORPHAN}
    assert "versions below" in "".join(found.unread)


def test_where_there_are_no_versions_no_locks_are_asked_for(bucket: ABucket) -> None:
    without = new_bucket(bucket.client.meta.endpoint_url, None)
    assert bucket.files.may_lock(f"s3://{bucket.name}/a")
    assert not without.files.may_lock(f"s3://{without.name}/a")


def test_a_store_that_does_not_tell_is_told_as_a_fact_and_breaks_nothing() -> None:
    why = "versions and open uploads of this store (gs) are not looked at"
    result = judged(Holdings(TOPIC, TERMS, not_looked_at=(why,)), 0)
    assert (result.outcome, result.passed) == (Outcome.OK, True)
    assert why in result.description
    assert list(held_versions(HiddenFiles(not_looked_at=(why,)), "gs://b/t", set(), TERMS)) == []
