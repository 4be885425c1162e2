"""What is dated by a time still to come, a file or a commit, has no age that can be told: it is not taken for young."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from keptlog.log.holder import HolderKind, Terms
from keptlog.log.told.examination import holder_problem
from keptlog.passes.check import Outcome
from keptlog.passes.holders import check_gone, judged, look_for_holders
from keptlog.table.removal.held import held_in, held_lines
from keptlog.table.store import LogStore
from tests.erasure.world import HOUR_MS, KEY, VALUE, World
from tests.erasure.world import new_id as erasure_id
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms
from tests.table.stores import TOPIC, append_each, clean, create

TERMS = Terms(delete_delay_ms=MINUTE_MS)
YEAR_MS = 365 * DAY_MS


def put(store: LogStore, path: str, modified_ms: int, topic: str = TOPIC) -> Path:
    place = f"{store.describe_topic(topic).location}/{path}"
    store.files.write_bytes(place, b"value")
    local = Path(place.removeprefix("file://"))
    os.utime(local, (modified_ms / 1000, modified_ms / 1000))
    return local


@pytest.fixture
def purged(tmp_path: Path) -> LogStore:
    store = cleaned(tmp_path)
    store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    return store


@pytest.mark.parametrize("path", ["data/partition=0/copy.parquet", "metadata/gc/none.json", "metadata/x-m0.avro"])
def test_g8_does_not_pass_while_there_is_one_and_nobody_is_told_a_deadline(purged: LogStore, path: str) -> None:
    now_ms = clock_ms()
    put(purged, path, now_ms + 10 * YEAR_MS)
    found = held_in(lambda: purged.load_table(TOPIC), purged.files, TERMS, now_ms + YEAR_MS)
    [held] = [each for each in found.held if each.kind is not HolderKind.METADATA]
    assert (held.kind, held.written_ms, held.deadline_ms(TERMS)) == ("post-dated", None, None)
    result = judged(found, now_ms + YEAR_MS)
    assert result.outcome is Outcome.NOT_LOOKED_AT
    assert "keep 1 post-dated file: its time is still to come" in result.description
    [holder] = found.post_dated(now_ms + YEAR_MS)
    problem = holder_problem(holder)
    assert (problem.cause, problem.command) == ("the clock of whoever wrote it is fast, or its time was set", None)


def test_a_purge_leaves_it_and_says_so_and_sweeps_it_once_its_time_can_be_told(purged: LogStore) -> None:
    now_ms = clock_ms()
    local = put(purged, "data/partition=0/copy.parquet", now_ms + 10 * YEAR_MS)
    receipt = purged.purge(TOPIC, now_ms + YEAR_MS)
    assert local.exists()
    assert [(each.holder, Path(each.path).name) for each in receipt.held] == [("post-dated", "copy.parquet")]
    [line] = held_lines(receipt.held)
    assert "no purge deletes it" in line
    os.utime(local)
    purged.purge(TOPIC, now_ms + 2 * DAY_MS)
    assert not local.exists()


@pytest.mark.parametrize("ahead_ms", [0, HOUR_MS // 2])
def test_a_storage_whose_clock_is_a_little_ahead_has_staged_files(purged: LogStore, ahead_ms: int) -> None:
    now_ms = clock_ms()
    local = put(purged, "data/partition=0/copy.parquet", now_ms + ahead_ms)
    found = held_in(lambda: purged.load_table(TOPIC), purged.files, TERMS, now_ms)
    assert judged(found, now_ms).outcome is Outcome.OK
    assert [each.kind for each in found.held if each.kind is not HolderKind.METADATA] == ["staged"]
    assert [each.holder for each in purged.purge(TOPIC, now_ms).held] == ["staged"]
    assert local.exists()


def test_a_look_as_of_an_earlier_time_takes_no_file_for_post_dated(purged: LogStore) -> None:
    put(purged, "data/partition=0/copy.parquet", clock_ms())
    earlier_ms = clock_ms() - YEAR_MS
    found = held_in(lambda: purged.load_table(TOPIC), purged.files, TERMS, earlier_ms)
    assert [each.kind for each in found.held if each.kind is not HolderKind.METADATA] == ["staged"]


def test_an_erasure_waits_for_it_because_it_may_be_as_old_as_can_be(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    world.append((KEY, VALUE))
    world.ask()
    local = put(world.store, f"data/partition=0/{erasure_id()}.parquet", world.now_ms + YEAR_MS, "users")
    row = world.to_deleted()
    assert row.erasure.state == "unreferenced"
    assert any("1 post-dated file" in text and local.name in text for text in row.blocked)
    local.unlink()
    assert world.row().erasure.state == "deleted"


def cleaned_by_a_clock_ahead(home: Path, ahead_ms: int, tag: str | None = None) -> LogStore:
    """A log with three retired segments, replaced by a machine whose clock is ahead by so much."""
    store = create(home)
    append_each(store, [("a", "1")], [("a", "2")], [("b", "3"), ("a", "4")])
    table = store.load_table(TOPIC)
    if tag:
        table.manage_snapshots().create_tag(table.metadata.current_snapshot_id or 0, tag).commit()
    store.committer.catalog.now_ms = lambda: clock_ms() + ahead_ms  # type: ignore[attr-defined]
    clean(store)
    store.committer.catalog.now_ms = clock_ms  # type: ignore[attr-defined]
    return store


def test_g8_does_not_pass_while_older_snapshots_keep_what_a_clock_ahead_has_replaced(tmp_path: Path) -> None:
    store, now_ms = cleaned_by_a_clock_ahead(tmp_path, YEAR_MS), clock_ms()
    result = check_gone(store, TOPIC, [0], now_ms)[0]
    assert result.outcome is Outcome.NOT_LOOKED_AT
    assert "keep 3 retired segments until" in result.description
    assert "which is still to come: the clock of that commit was ahead" in result.description
    [holder] = look_for_holders(store, TOPIC, now_ms).post_dated(now_ms)
    problem = holder_problem(holder)
    assert (problem.cause, problem.command) == ("the clock of whoever wrote it is fast, or its time was set", None)


def test_a_purge_as_of_the_time_that_is_told_deletes_that(tmp_path: Path) -> None:
    store, now_ms = cleaned_by_a_clock_ahead(tmp_path, YEAR_MS), clock_ms()
    store.purge(TOPIC, now_ms)
    [holder] = look_for_holders(store, TOPIC, now_ms).post_dated(now_ms)
    told = re.search(r"KEPTLOG_NOW_MS=(\d+) keptlog purge", holder.remedy)
    assert told
    assert len(store.purge(TOPIC, int(told[1])).deleted_files) == 3
    assert check_gone(store, TOPIC, [0], now_ms)[0].outcome is Outcome.OK


def test_what_a_tag_keeps_of_that_goes_once_the_tag_is_dropped(tmp_path: Path) -> None:
    store = cleaned_by_a_clock_ahead(tmp_path, YEAR_MS, tag="audit")
    now_ms = clock_ms()
    [holder] = look_for_holders(store, TOPIC, now_ms).post_dated(now_ms)
    assert (holder.kind, "once no run and no reader is at work: drop the tag" in holder.remedy) == ("tag", True)
    told = re.search(r"; after that KEPTLOG_NOW_MS=(\d+) keptlog purge", holder.remedy)
    assert told
    assert not store.purge(TOPIC, int(told[1])).deleted_files
    store.load_table(TOPIC).manage_snapshots().remove_tag("audit").commit()
    assert len(store.purge(TOPIC, int(told[1])).deleted_files) == 3


def test_what_was_replaced_before_that_keeps_its_deadline(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    store.committer.catalog.now_ms = lambda: clock_ms() + YEAR_MS  # type: ignore[attr-defined]
    append_each(store, [("b", "5")])
    clean(store)
    late_ms = clock_ms() + 2 * DAY_MS
    result = check_gone(store, TOPIC, [0], late_ms)[0]
    assert (result.outcome, result.metadata["late_files"]) == (Outcome.BROKEN, 3)


@pytest.mark.parametrize(("ahead_ms", "as_of_ms"), [(HOUR_MS // 2, 0), (0, -YEAR_MS)])
def test_a_commit_of_a_clock_a_little_ahead_and_a_look_as_of_an_earlier_time_pass(
    tmp_path: Path, ahead_ms: int, as_of_ms: int
) -> None:
    store = cleaned_by_a_clock_ahead(tmp_path, ahead_ms)
    store.clock_guard.clock_ms = clock_ms
    assert check_gone(store, TOPIC, [0], clock_ms() + as_of_ms)[0].outcome is Outcome.OK
