"""What ``verify_log`` sees: nothing wrong on a log that keptlog made, and each kind of damage under its own name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import keptlog.passes.verify
from keptlog.home import Home, new_id, open_home
from keptlog.log.record import NewRecord, Record
from keptlog.log.retention import retention_of
from keptlog.log.segment import Log
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.check import CHECKS, Outcome
from keptlog.passes.verify import verify_log
from keptlog.storage.schema import SCHEMA
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, write_watermark_file
from keptlog.table.changes.truncate import Truncation
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.passes.test_in_legs import Scene
from tests.table.stores import staged

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return cleaned_home(tmp_path / "home")


def cleaned_home(path: Path) -> Home:
    """One log: offsets 1, 2, 3 clean (b, a, and a stamped tombstone of c), offsets 4, 5, 6 dirty."""
    home = open_home(path)
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
    results = verify_log(home.store, log_of(home), now_ms)
    return {result.name for result in results if result.outcome is Outcome.BROKEN}


def damage(home: Home, segment: int, change: Callable[[list[dict[str, object]]], object]) -> None:
    """Write a segment's file in place, and the table with it, but for what it says of the offsets."""
    was = log_of(home).segments[segment]
    path = local(was.path)
    rows = pq.read_table(path, partitioning=None).to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
    table = home.store.load_table("users")
    files = LiveFiles().of(table)
    (live,) = (file for file in files[0] if file.segment == was)
    now = dataclasses.replace(was, size_bytes=path.stat().st_size, record_count=len(rows))
    FileChange({}, {}, [data_file_of(0, now)], [live], files).land(table)


def local(path: str | None) -> Path:
    assert path
    return Path(path.removeprefix("file://"))


def flip_a_bit(path: Path, at: float) -> None:
    """``at`` says where: 0 at the beginning of the file, 1 at its end."""
    content = bytearray(path.read_bytes())
    content[int(at * (len(content) - 1))] ^= 4
    path.write_bytes(content)


def outcomes(home: Home) -> dict[str, str]:
    return {result.name: str(result.outcome) for result in verify_log(home.store, log_of(home), NOW_MS)}


def swap_offsets(rows: list[dict[str, object]]) -> None:
    rows[0]["offset"], rows[1]["offset"] = rows[1]["offset"], rows[0]["offset"]


def test_a_log_as_keptlog_leaves_it_passes_every_check(home: Home) -> None:
    results = verify_log(home.store, log_of(home), NOW_MS)

    assert [result.name for result in results] == [check.name for check in CHECKS]
    assert all(result.passed for result in results)
    assert results[0].metadata == {"records": 6, "segments": 2, "segments_without_checksums": 0, "problems": 0}


@pytest.mark.parametrize(
    ("segment", "change", "found"),
    [
        pytest.param(0, lambda rows: rows[1].update(key=b"b"), {"G1"}, id="a key twice in the clean section"),
        pytest.param(0, lambda rows: rows[1].update(key=None), {"G1"}, id="a clean record without a key"),
        pytest.param(0, swap_offsets, {"G2", "G3"}, id="two records in the wrong order"),
        pytest.param(0, lambda rows: rows[0].update(offset=0), {"G3"}, id="an offset outside of its segment"),
        pytest.param(1, lambda rows: rows[2].update(offset=9), {"G3"}, id="an offset behind the log end"),
        pytest.param(1, lambda rows: rows.pop(1), {"G4"}, id="a dirty record gone"),
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


def test_a_segment_before_the_log_start_that_a_clean_has_made_is_no_damage(tmp_path: Path) -> None:
    """A deletion of records has moved the log start into a segment, of which a clean then left what lies before it."""
    scene = Scene(tmp_path)
    scene.commit_max_bytes = 10**12
    scene.append(*[(f"a{number}", "1") for number in range(4)]).append(*[(f"b{number}", "1") for number in range(3)])
    scene.append(("a2", "2"), ("a3", "2")).append(("z", "2"))
    scene.store.delete_records(TopicPartition("t", 0), 2, "deletion")
    scene.clean()
    [log] = scene.store.logs("t")
    assert log.segments[0].last_offset < log.log_start_offset == 2
    assert scene.broken == []
    assert [old.segment for old in retention_of(log, scene.now_ms).old] == [log.segments[0]]


def test_a_segment_before_the_log_start_that_was_never_cleaned_is_no_damage(tmp_path: Path) -> None:
    """A deletion of records has moved the log start into a segment, and a truncation has taken what lay behind."""
    store, log = open_home(tmp_path / "ingested").store, TopicPartition("users", 0)
    store.create_topic("users", 1, {"cleanup.policy": "delete"})
    records = [Record(40, None, b"v", NOW_MS), Record(42, b"k", None, NOW_MS), Record(47, b"k", b"v", NOW_MS)]
    arrived = [Arrival(OffsetRange(0, None, 40, 50), tuple(staged(store, "users", 0, records)))]
    store.ingest("users", arrived, SourceIdentity("users"), 1, "ingest")
    store.delete_records(log, 45, "deletion")
    Truncation(log, 45, new_id(), new_id).commit(store.committer, store.files)
    [left] = store.logs("users")
    assert [(each.base_offset, each.last_offset) for each in left.segments] == [(40, 42)]
    assert [each.description for each in verify_log(store, left, NOW_MS) if not each.passed] == []


def test_gaps_of_the_source_are_no_damage(ingested: Home) -> None:
    assert broken(ingested) == set()


def test_a_record_between_such_gaps_that_is_stamped_is_seen(ingested: Home) -> None:
    damage(ingested, 0, lambda rows: rows[1].update(delete_horizon=NOW_MS * 1000))
    assert broken(ingested) == {"G4"}


ONLY_G1 = {"G1": "broken", "max_compaction_lag": "ok"} | dict.fromkeys(("G2", "G3", "G4", "G5"), "not looked at")


def described(home: Home) -> str:
    return verify_log(home.store, log_of(home), NOW_MS)[0].description


def test_a_segment_whose_file_is_gone_breaks_the_first_guarantee_and_is_named(home: Home) -> None:
    path = log_of(home).segments[0].path
    local(path).unlink()

    assert outcomes(home) == ONLY_G1
    assert described(home) == (
        f"users-0: segment {path} (offsets 1 to 3) is missing from storage though the table lists it; put the file "
        "back from a copy of the storage"
    )


def test_a_segment_that_lacks_records_breaks_the_first_guarantee_and_is_named(home: Home) -> None:
    table = home.store.load_table("users")
    files = LiveFiles().of(table)
    was = files[0][0].segment
    FileChange({}, {}, [data_file_of(0, dataclasses.replace(was, record_count=4))], [files[0][0]], files).land(table)

    assert outcomes(home) == ONLY_G1
    assert f"{was.path} has 3 records, not 4" in described(home)


def test_a_segment_that_was_cut_short_breaks_the_first_guarantee_and_is_named(home: Home) -> None:
    path = log_of(home).segments[1].path
    local(path).write_bytes(local(path).read_bytes()[:50])

    assert outcomes(home) == ONLY_G1
    assert f"{path} has 50 bytes, not" in described(home)


@pytest.mark.parametrize("at", [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1])
def test_a_flipped_bit_is_seen_wherever_it_is(home: Home, at: float) -> None:
    path = log_of(home).segments[0].path
    flip_a_bit(local(path), at)

    assert outcomes(home)["G1"] == "broken"
    assert path in described(home)


def test_a_bit_of_a_value_is_only_seen_if_every_byte_is_read_and_that_is_told(home: Home) -> None:
    path = local(log_of(home).segments[1].path)
    values = next(
        chunk
        for chunk in map(pq.read_metadata(path).row_group(0).column, range(pq.read_metadata(path).num_columns))
        if chunk.path_in_schema == "value"
    )
    content = bytearray(path.read_bytes())
    content[values.data_page_offset + values.total_compressed_size - 1] ^= 4
    path.write_bytes(content)

    first, *_ = verify_log(home.store, log_of(home), NOW_MS, every_byte=False)
    assert first.passed
    assert first.description.endswith("Values were not read.")
    assert broken(home) == {"G1"}
    assert outcomes(home)["G2"] == "ok"


def test_segments_without_checksums_are_counted_and_no_failure(home: Home) -> None:
    damage(home, 0, lambda rows: rows)

    first, *_ = verify_log(home.store, log_of(home), NOW_MS)

    assert first.passed
    assert "1 of 2 segments have no checksums" in first.description
    assert "before format 1.1" in first.description


def test_storage_that_does_not_answer_breaks_nothing_and_passes_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswering(_self: TableFiles, path: str, _: int | None = None) -> NoReturn:
        raise OSError(5, "Input/output error", path)

    log = log_of(home)
    monkeypatch.setattr(TableFiles, "open_input", unanswering)

    results = verify_log(home.store, log, NOW_MS)

    assert {result.name: str(result.outcome) for result in results} == ONLY_G1 | {"G1": "not looked at"}
    assert "Input/output error" in results[0].description
    assert "1 segment behind it" in results[0].description


def test_what_was_replaced_and_purged_while_it_was_looked_at_breaks_nothing(home: Home) -> None:
    log = log_of(home)
    damage(home, 0, lambda rows: rows)
    table = home.store.load_table("users")
    files = LiveFiles().of(table)
    FileChange({}, {}, [], [files[0][0]], files).land(table)
    local(log.segments[0].path).unlink()

    results = verify_log(home.store, log, NOW_MS)

    assert {str(result.outcome) for result in results if result.name != "max_compaction_lag"} == {"not looked at"}
    assert "verify again" in results[0].description


@pytest.mark.parametrize("damaged", ["lost", "cut short", "a bit flipped"])
def test_damaged_watermarks_break_the_first_guarantee_and_are_named(home: Home, damaged: str) -> None:
    home.store.alter_topic("users", {"compaction.strategy": "timestamp"})
    path = f"{home.store.data_location('users')}/watermarks/marks.arrow"
    marks = pa.table({"key": [b"a"], "version": [7], "expires_ms": [9]}, schema=WATERMARKS_SCHEMA)
    write_watermark_file(home.store.files, path, log_of(home).config.strategy, marks)
    home.store.load_table("users").transaction().set_properties({"log.p0.watermarks": path}).commit_transaction()
    assert broken(home) == set()

    match damaged:
        case "lost":
            local(path).unlink()
        case "cut short":
            local(path).write_bytes(local(path).read_bytes()[:-1])
        case _:
            content = local(path).read_bytes()
            local(path).write_bytes(content.replace((7).to_bytes(8, "little"), (6).to_bytes(8, "little")))

    assert broken(home) == {"G1"}
    assert outcomes(home)["G2"] == "ok"
    assert path in described(home)


def test_one_broken_log_or_topic_hides_nothing_of_the_others(home: Home) -> None:
    local(log_of(home).segments[0].path).write_bytes(b"this is no Parquet file")
    for topic in ("fine", "odd"):
        home.store.create_topic(topic, 1, {"cleanup.policy": "compact"})
    home.store.load_table("odd").transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()

    found = home.verify(now_ms=NOW_MS)

    passed = {name: [result.name for result in results if result.passed] for name, results in found.items()}
    all_checks = [*(check.name for check in CHECKS), "G8"]
    # The clock is weeks ahead of the storage's, and nobody has purged what the clean replaced.
    assert passed == {"users-0": ["max_compaction_lag"], "fine-0": all_checks, "odd": []}
    assert [str(result.outcome) for result in found["odd"]] == ["broken", *["not looked at"] * 6]
    assert "log.p0.log-end-offset='many'" in found["odd"][0].description


def test_a_late_log_breaks_the_lag_alone(home: Home) -> None:
    home.store.alter_topic("users", {"max.compaction.lag.ms": str(HOUR_MS)})

    assert broken(home, NOW_MS + HOUR_MS) == set()
    assert broken(home, NOW_MS + 2 * HOUR_MS) == {"max_compaction_lag"}


def test_a_log_that_is_not_compacted_has_no_lag_to_break(home: Home) -> None:
    home.store.alter_topic("users", {"max.compaction.lag.ms": str(HOUR_MS), "cleanup.policy": "delete"})

    assert broken(home, NOW_MS + 2 * HOUR_MS) == set()


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
