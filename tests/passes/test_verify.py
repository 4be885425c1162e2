"""What ``verify_log`` sees: nothing wrong on a log that keptlog made, and each kind of damage under its own name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import keptlog.passes.verify
from keptlog.home import Home, open_home
from keptlog.log.record import NewRecord, Record
from keptlog.log.segment import Log
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.verify import CHECKS, verify_log
from keptlog.storage.schema import SCHEMA
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.table.stores import staged

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One log: offsets 1, 2, 3 clean (b, a, and a stamped tombstone of c), offsets 4, 5, 6 dirty."""
    home = open_home(tmp_path / "home")
    home.store.create_topic("users", 1, {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)})
    old_ms = NOW_MS - 2 * HOUR_MS
    append(home, [("a", "1"), ("b", "1"), ("a", "2"), ("c", None)], old_ms)
    cleaner = dataclasses.replace(home.cleaner(lambda: None), engine=in_process_engine(home.store.files))  # type: ignore[arg-type,return-value]
    carry_out(cleaner, cleaner.plan(now_ms=NOW_MS), "clean")
    append(home, [("a", "3"), ("b", "2"), ("c", "1")], NOW_MS)
    return home


def append(home: Home, records: list[tuple[str, str | None]], timestamp_ms: int) -> None:
    new = [NewRecord(key.encode(), value.encode() if value else None, timestamp_ms, 0) for key, value in records]
    home.store.append("users", new, f"append-{timestamp_ms}", NOW_MS)


def log_of(home: Home) -> Log:
    (log,) = home.store.logs("users")
    return log


def broken(home: Home, now_ms: int = NOW_MS) -> set[str]:
    return {result.name for result in verify_log(home.store, log_of(home), now_ms) if not result.passed}


def damage(home: Home, segment: int, change: Callable[[list[dict[str, object]]], object]) -> None:
    """Rewrite a segment's file in place, which nothing in keptlog ever does."""
    path = Path(log_of(home).segments[segment].path.removeprefix("file://"))
    rows = pq.read_table(path, partitioning=None).to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)


def swap_offsets(rows: list[dict[str, object]]) -> None:
    rows[0]["offset"], rows[1]["offset"] = rows[1]["offset"], rows[0]["offset"]


def test_a_log_as_keptlog_leaves_it_passes_every_check(home: Home) -> None:
    results = verify_log(home.store, log_of(home), NOW_MS)

    assert [result.name for result in results] == [check.name for check in CHECKS]
    assert all(result.passed for result in results)
    assert results[0].metadata == {"records": 6, "segments": 2, "problems": 0}


@pytest.mark.parametrize(
    ("segment", "change", "found"),
    [
        pytest.param(0, lambda rows: rows[1].update(key=b"b"), {"G1"}, id="a key twice in the clean section"),
        pytest.param(0, lambda rows: rows[1].update(key=None), {"G1"}, id="a clean record without a key"),
        pytest.param(0, lambda rows: rows.pop(1), {"G1"}, id="a clean record gone"),
        pytest.param(0, swap_offsets, {"G2", "G3"}, id="two records in the wrong order"),
        pytest.param(0, lambda rows: rows[0].update(offset=0), {"G3"}, id="an offset outside of its segment"),
        pytest.param(1, lambda rows: rows[2].update(offset=9), {"G3"}, id="an offset behind the log end"),
        pytest.param(1, lambda rows: rows.pop(1), {"G1", "G4"}, id="a dirty record gone"),
        pytest.param(1, lambda rows: rows[0].update(delete_horizon=NOW_MS * 1000), {"G4"}, id="a dirty record stamped"),
        pytest.param(0, lambda rows: rows[2].update(delete_horizon=None), {"G5"}, id="a clean tombstone not stamped"),
        pytest.param(0, lambda rows: rows[2].update(value=b"1"), {"G5"}, id="a delete horizon on a value"),
    ],
)
def test_damage_is_seen_as_the_guarantee_that_it_breaks(
    home: Home, segment: int, change: Callable[[list[dict[str, object]]], object], found: set[str]
) -> None:
    damage(home, segment, change)

    assert broken(home) == found


@pytest.fixture
def ingested(tmp_path: Path) -> Home:
    """A dirty log whose source has offsets 40, 42 and 47 left of [40, 50)."""
    home = open_home(tmp_path / "ingested")
    home.store.create_topic("users", 1, {"cleanup.policy": "compact"})
    segments = staged(home.store, "users", 0, [Record(offset, b"k", b"v", NOW_MS) for offset in (40, 42, 47)])
    arrived = [Arrival(OffsetRange(0, None, 40, 50), tuple(segments))]
    home.store.ingest("users", arrived, SourceIdentity("users"), 1, "ingest")
    return home


def test_gaps_of_the_source_are_no_damage(ingested: Home) -> None:
    assert broken(ingested) == set()


def test_a_record_that_goes_from_between_such_gaps_or_is_stamped_is_seen(ingested: Home) -> None:
    damage(ingested, 0, lambda rows: rows[1].update(delete_horizon=NOW_MS * 1000))
    assert broken(ingested) == {"G4"}
    damage(ingested, 0, lambda rows: rows.pop(1))
    assert broken(ingested) == {"G1"}


def test_a_segment_whose_file_is_gone_breaks_the_first_guarantee_and_is_named(home: Home) -> None:
    path = Path(log_of(home).segments[0].path.removeprefix("file://"))
    path.unlink()

    first, *_ = verify_log(home.store, log_of(home), NOW_MS)

    assert not first.passed
    assert path.name in first.description


def test_a_late_log_breaks_the_lag_alone(home: Home) -> None:
    home.store.alter_topic("users", {"max.compaction.lag.ms": str(HOUR_MS)})

    assert broken(home, NOW_MS + HOUR_MS) == set()
    assert broken(home, NOW_MS + 2 * HOUR_MS) == {"max_compaction_lag"}


def test_a_repeated_key_is_found_however_many_passes_it_takes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keptlog.passes.verify, "RECORDS_PER_PASS", 1)
    assert broken(home) == set()

    damage(home, 0, lambda rows: rows[1].update(key=b"b"))

    assert broken(home) == {"G1"}


def test_keys_whose_hashes_collide_are_told_apart(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keptlog.passes.verify, "hash", lambda _key: 7, raising=False)
    assert broken(home) == set()

    damage(home, 0, lambda rows: rows[1].update(key=b"b"))

    assert broken(home) == {"G1"}


def test_problems_name_offsets_and_never_keys(home: Home) -> None:
    damage(home, 0, lambda rows: rows[1].update(key=b"b"))

    first, *_ = verify_log(home.store, log_of(home), NOW_MS)

    assert first.description == "offsets 1 and 2 have the same key"


@pytest.mark.parametrize("offset", [2, 3, 5, 6])
def test_a_log_that_begins_or_is_dirty_from_the_middle_of_a_segment_on_is_fine(home: Home, offset: int) -> None:
    home.store.delete_records(TopicPartition("users", 0), offset, "delete")

    assert broken(home) == set()


def test_what_lies_below_the_log_start_is_not_judged_by_its_keys(home: Home) -> None:
    home.store.delete_records(TopicPartition("users", 0), 2, "delete")

    damage(home, 0, lambda rows: rows[1].update(key=b"b"))

    assert broken(home) == set()
