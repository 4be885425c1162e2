"""A file whose time is still to come has no age that can be told: it is neither taken for young nor for gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keptlog.log.examination import holder_problem
from keptlog.log.holder import HolderKind, Terms
from keptlog.passes.check import Outcome
from keptlog.passes.holders import judged
from keptlog.table.held import held_in, held_lines
from keptlog.table.store import LogStore
from tests.erasure.world import HOUR_MS, KEY, VALUE, World
from tests.erasure.world import new_id as erasure_id
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms
from tests.table.stores import TOPIC

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
