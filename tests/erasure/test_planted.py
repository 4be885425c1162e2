"""One place at a time still has a value that was to be erased: its request is not ``verified``, and the place is named.

Wherever it is, what is told also says what to do; once that is done the request ends by itself.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.log.record import Record
from keptlog.passes.erasures.erasure_request import ErasureRow
from keptlog.passes.purge import Purger
from keptlog.storage.schema import to_arrow
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, write_watermark_file
from keptlog.table.io.files import TableFiles
from keptlog.table.removal.journal import SWEEP, DeletedFile, Journal, journal_folder, receipt_folder, write_journal
from keptlog.table.store import LogStore
from tests.cli.conftest import Run, home, keptlog
from tests.erasure.bucket_world import BucketWorld
from tests.erasure.byte_search import files_with, versions_with
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, SECOND_MS, VALUE, World
from tests.table.buckets import new_bucket
from tests.table.foreign import table_of
from tests.table.killed import killed_before
from tests.table.test_purge_of_versions import key_of

__all__ = ["home", "keptlog"]


@pytest.fixture
def world(home: Path) -> World:
    return World(home)


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def location_of(world: World) -> str:
    return world.store.describe_topic("users").location


def live_path(world: World) -> Path:
    return local(world.store.logs("users")[0].segments[0].path)


def almost_erased(world: World) -> bytes:
    """A request of which only the last look is left; gives a segment with its record, as it once was live."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    segment = live_path(world).read_bytes()
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    assert files_with([world.home], [KEY, VALUE]) == []
    return segment


def told(world: World, keptlog: Run) -> list[str]:
    """What keeps the request, as ``erasure verify`` says it; neither ``list`` nor ``show`` calls it verified."""
    row = world.verified()
    assert row.erasure.is_open
    assert row.blocked
    for command in (["list", "users"], ["show", "r1"]):
        assert "verified" not in keptlog("erasure", *command).out
    return list(row.blocked)


def require_verified(world: World) -> ErasureRow:
    world.later(SECOND_MS)
    row = world.verified()
    assert (row.erasure.state, row.blocked) == ("verified", ())
    return row


def test_in_a_live_segment(world: World, keptlog: Run) -> None:
    segment = almost_erased(world)
    path = live_path(world)
    own = path.read_bytes()
    path.write_bytes(segment)
    (text,) = told(world, keptlog)
    assert str(path) in text
    path.write_bytes(own)
    require_verified(world)


def test_in_the_active_segment(world: World, keptlog: Run) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    world.clean()
    row = world.verified()
    assert (row.erasure.state, row.next_ms is not None and row.next_ms > world.now_ms) == ("tombstoned", True)
    world.to_deleted()
    require_verified(world)


def test_in_a_retired_segment(world: World, keptlog: Run) -> None:
    world.create(settings={"file.delete.delay.ms": str(10 * DAY_MS)})
    world.append((KEY, VALUE))
    retired = live_path(world)
    world.ask()
    assert world.to_deleted().erasure.state == "compacted"
    assert retired.is_file()
    row = world.row()
    assert (row.erasure.gone is not None, (row.next_ms or 0) > world.now_ms) == (True, True)
    assert world.verified().erasure.is_open
    world.later(11 * DAY_MS)
    world.purge()
    require_verified(world)


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_in_a_tagged_snapshot(world: World, keptlog: Run, kind: str) -> None:
    world.create()
    world.append((KEY, VALUE))
    table = table_of(world.home, "users")
    snapshot_id = table.metadata.current_snapshot_id
    assert snapshot_id is not None
    snapshots = table.manage_snapshots()
    (snapshots.create_tag if kind == "tag" else snapshots.create_branch)(snapshot_id, "audit").commit()
    world.ask()
    world.to_deleted()
    for command in (["list", "users"], ["show", "r1"]):
        assert f"{kind} audit" in keptlog("erasure", *command).out
    (text,) = [each for each in told(world, keptlog) if f"{kind} audit" in each]
    assert f"drop the {kind}" in text
    snapshots = table_of(world.home, "users").manage_snapshots()
    (snapshots.remove_tag if kind == "tag" else snapshots.remove_branch)("audit").commit()
    world.later(SECOND_MS)
    world.purge()
    require_verified(world)


@pytest.mark.parametrize("content", [VALUE, json.dumps({"value": VALUE.decode()}).encode()])
@pytest.mark.parametrize("where", ["", "erasures", "history", "runs", "readers/app", "mine"])
def test_in_what_lies_among_receipts_that_wait_and_is_none(
    world: World, keptlog: Run, where: str, content: bytes
) -> None:
    almost_erased(world)
    path = local(receipt_folder(location_of(world))) / where / "0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    (text,) = [each for each in told(world, keptlog) if str(path) in each]
    assert "move it out of the topic's folder" in text
    path.rename(world.home.parent / "moved.json")
    require_verified(world)


@pytest.mark.parametrize("age_ms", [0, 3 * DAY_MS])
@pytest.mark.parametrize(
    "where", ["data/partition=0", "data", "data/staged/run-7", "metadata", "metadata/receipts", ""]
)
def test_in_a_file_that_nobody_refers_to(world: World, keptlog: Run, where: str, age_ms: int) -> None:
    """An orphan if it is old, what a run has staged if it is young; and wherever somebody may have put it."""
    segment = almost_erased(world)
    path = local(location_of(world)) / where / "0-copy.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(segment)
    at = time.time() - age_ms / 1000
    os.utime(path, (at, at))
    (text,) = [each for each in told(world, keptlog) if str(path) in each]
    if "receipts" in where:
        path.unlink()  # no purge looks there
    else:
        assert text
        world.later(SECOND_MS)
        world.purge()
    require_verified(world)


def test_in_a_staged_file_that_the_clean_of_a_killed_process_has_left(world: World, keptlog: Run) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    folder = live_path(world).parent
    staged = folder / f"{0:020d}-staged-by-nobody.parquet"
    shutil.copyfile(live_path(world), staged)
    world.ask()
    for _ in range(3):
        world.later(2 * HOUR_MS)
        world.clean()
        world.purge(grace_ms=30 * DAY_MS)
    row = world.row()
    assert row.erasure.state == "unreferenced"
    for command in (["list", "users"], ["show", "r1"]):
        assert str(staged) in keptlog("erasure", *command).out
    assert told(world, keptlog)
    world.purge()
    require_verified(world)


def test_in_a_file_of_watermarks(world: World, keptlog: Run) -> None:
    almost_erased(world)
    path = f"{location_of(world)}/data/watermarks/partition=0/old-marks.arrow"
    local(path).parent.mkdir(parents=True)
    marks = pa.table({"key": [KEY], "version": [1], "expires_ms": [2**60]}, schema=WATERMARKS_SCHEMA)
    with TableFiles().durable_at_end() as files:
        write_watermark_file(files, path, "header v", marks)
    (text,) = [each for each in told(world, keptlog) if path in each]
    assert text
    world.later(SECOND_MS)
    world.purge()
    require_verified(world)


def purge_now(now_ms: int, store: LogStore) -> None:
    store.purge("users", now_ms, 0)


def test_in_a_file_that_the_journal_of_a_killed_purge_names(world: World, keptlog: Run) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    value_file = live_path(world)
    world.ask()
    for _ in range(2):
        world.later(2 * HOUR_MS)
        world.clean()
    world.later(SECOND_MS)
    journals = local(journal_folder(location_of(world)))
    for number in range(20):  # until it dies between the commit that expires and the first delete
        assert killed_before(world.home, partial(purge_now, world.now_ms), number)
        expired = len(table_of(world.home, "users").metadata.snapshots) == 1
        if expired and value_file.exists() and any(journals.glob("*.json")):
            break
    row = world.row()
    assert (row.erasure.state, str(value_file) in " ".join(row.blocked)) == ("unreferenced", True)
    assert told(world, keptlog)
    world.purge()
    assert not value_file.exists()
    require_verified(world)


def test_in_a_file_that_only_a_journal_names(world: World, keptlog: Run) -> None:
    segment = almost_erased(world)
    path = f"{location_of(world)}/data/partition=0/0-doomed.parquet"
    local(path).write_bytes(segment)
    journal = Journal((), (), (DeletedFile(path, len(segment)),), SWEEP)
    write_journal(TableFiles(), f"{journal_folder(location_of(world))}0.json", journal)
    assert any(path in each for each in told(world, keptlog))
    world.later(SECOND_MS)
    world.purge(grace_ms=30 * DAY_MS)  # a journal is carried out, however young the file is
    assert not local(path).exists()
    require_verified(world)


def test_in_a_file_elsewhere_that_only_a_journal_names(world: World, keptlog: Run) -> None:
    """Another program has brought it in; a purge has taken its snapshot, and deletes nothing there."""
    segment = almost_erased(world)
    elsewhere = world.home.parent / "elsewhere.parquet"
    elsewhere.write_bytes(segment)
    journal = Journal((), (), (DeletedFile(f"file://{elsewhere}", len(segment)),))
    write_journal(TableFiles(), f"{journal_folder(location_of(world))}0.json", journal)
    (text,) = told(world, keptlog)
    assert f"{elsewhere} (segment) has 1 record of 1 key" in text
    elsewhere.unlink()
    require_verified(world)


@pytest.mark.parametrize("is_folder", [True, False])
def test_behind_a_link(world: World, keptlog: Run, *, is_folder: bool) -> None:
    """No listing enters a link to a folder; and to delete a link deletes nothing of what it leads to."""
    segment = almost_erased(world)
    disk = world.home.parent / "disk"
    disk.mkdir()
    (disk / "0-x.parquet").write_bytes(segment)
    link = local(location_of(world)) / "data" / "moved"
    link.symlink_to(disk if is_folder else disk / "0-x.parquet")
    world.later(2 * DAY_MS)
    purged = Purger(world.store).purge(["users"], now_ms=world.now_ms)
    [left] = purged.receipts["users"].not_deleted
    assert (left.path, str(disk) in left.reason) == (f"file://{link}", True)
    assert any(str(link) in each for each in told(world, keptlog))
    link.unlink()
    require_verified(world)


def test_in_a_record_of_a_partition_that_the_topic_does_not_have(world: World, keptlog: Run) -> None:
    """Nobody can say that it came after the request, as of one in a partition that was added since."""
    almost_erased(world)
    path = live_path(world).with_name("0-strange.parquet")
    for partition in (7, -1):
        pq.write_table(to_arrow(partition, [Record(0, KEY, VALUE, 1)]), path)
        assert any(str(path) in each for each in told(world, keptlog))
    path.unlink()
    require_verified(world)


def test_in_a_record_without_an_offset_beside_one_that_came_later(world: World, keptlog: Run) -> None:
    almost_erased(world)
    path = live_path(world).with_name("0-strange.parquet")
    rows = to_arrow(0, [Record(offset, KEY, VALUE, 1) for offset in (5000, 5001)])
    at = rows.schema.get_field_index("offset")
    pq.write_table(rows.set_column(at, "offset", pa.array([None, 5001], pa.int64())), path)
    assert any(str(path) in each for each in told(world, keptlog))
    path.unlink()
    require_verified(world)


@pytest.mark.parametrize(
    "content",
    [
        b"{half of a journal with " + VALUE,
        VALUE,
        json.dumps({"key": KEY.decode(), "value": VALUE.decode()}).encode(),
    ],
)
def test_in_a_journal_that_can_t_be_read(world: World, keptlog: Run, content: bytes) -> None:
    """A purge sets it aside for whoever wants to know what it was, and it has to be looked at by somebody."""
    almost_erased(world)
    folder = local(journal_folder(location_of(world)))
    folder.mkdir(exist_ok=True)
    (folder / "1.json").write_bytes(content)
    assert any(str(folder / "1.json") in each for each in told(world, keptlog))
    world.later(SECOND_MS)
    world.purge()
    aside = local(receipt_folder(location_of(world))) / "unreadable" / "1.json"
    assert aside.read_bytes() == content
    (text,) = [each for each in told(world, keptlog) if str(aside) in each]
    assert "move it out of the topic's folder" in text
    aside.rename(world.home.parent / "moved.json")
    require_verified(world)


def almost_erased_in(world: BucketWorld) -> bytes:
    """As ``almost_erased``, in a bucket."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    (segment,) = world.store.logs("users")[0].segments
    content = world.store.files.read_bytes(segment.path)
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    assert versions_with(world.bucket, [KEY, VALUE]) == []
    return content


def require_open_until_purged(world: BucketWorld, path: str) -> None:
    """One old version in a bucket keeps the request open, is named, and goes with a purge."""
    row = world.verified()
    assert (row.erasure.is_open, [path in each for each in row.blocked]) == (True, [True])
    world.later(SECOND_MS)
    world.purge()
    assert versions_with(world.bucket, [KEY, VALUE]) == []
    require_verified(world)


@pytest.mark.parametrize("is_hidden", [True, False])
def test_in_an_old_version_of_an_object(world_in_a_bucket: BucketWorld, is_hidden: bool) -> None:
    """Below a delete marker, or below a newer version."""
    world = world_in_a_bucket
    segment = almost_erased_in(world)
    key = f"{key_of(location_of(world))}/data/partition=0/0-copy.parquet"
    path = world.bucket.put(key, segment)
    if is_hidden:
        world.bucket.hide(path)
    else:
        world.bucket.put(key, b"")
    assert [found for found, _ in versions_with(world.bucket, [KEY, VALUE])] == [path]
    require_open_until_purged(world, path)


def test_in_an_old_version_that_a_legal_hold_keeps(tmp_path: Path, s3_endpoint: str) -> None:
    (tmp_path / "home").mkdir()
    world = BucketWorld(tmp_path / "home", bucket=new_bucket(s3_endpoint, locks=True))
    segment, bucket = almost_erased_in(world), world.bucket
    path = bucket.put(f"{key_of(location_of(world))}/data/partition=0/0-copy.parquet", segment)
    bucket.client.put_object_legal_hold(Bucket=bucket.name, Key=key_of(path), LegalHold={"Status": "ON"})
    bucket.hide(path)
    ((_, version_id),) = versions_with(bucket, [KEY, VALUE])
    world.later(SECOND_MS)
    result = Purger(world.store).purge(["users"], now_ms=world.now_ms, orphan_grace_ms=0)
    assert "legal hold" in str(result.failed["users"])
    row = world.verified()
    assert (row.erasure.is_open, [path in each for each in row.blocked]) == (True, [True])
    bucket.client.put_object_legal_hold(
        Bucket=bucket.name, Key=key_of(path), VersionId=version_id, LegalHold={"Status": "OFF"}
    )
    world.later(SECOND_MS)
    world.purge()
    require_verified(world)
