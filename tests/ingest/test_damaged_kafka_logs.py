"""Damage in a log directory: what is broken stops its topic-partition alone, or is skipped, counted and told."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keptlog.errors import Action, LogCorrupt
from keptlog.ingest import kafka_logs as module
from keptlog.table.store import LogStore
from tests.ingest.directories import (
    FIRST_MS,
    flipped,
    records_of,
    run_import,
    some_batch,
    some_records,
    write_first_dirty,
    write_log,
)
from tests.sources.kafka_log.encoder import BatchOptions, batch, encoded_records, marker, whole_batch


def test_a_corrupt_batch_stops_its_topic_partition_alone_and_names_the_place(store: LogStore, there: Path) -> None:
    file = write_log(there, "t-0", [some_batch(0), flipped(some_batch(10)), some_batch(20)])
    write_log(there, "t-1", [some_batch(0)])
    write_log(there, "u-0", [flipped(some_batch(0)), some_batch(10)])
    result = run_import(store, there, "1")
    message = str(result.failed["t-0"])
    assert isinstance(result.failed["t-0"], LogCorrupt)
    assert f"{file}: " in message
    assert f"position {len(some_batch(0))}, from offset 10 on: its checksum is" in message
    assert store.source_of("t").positions == (None, 10)
    assert "u-0" in result.failed
    assert store.topics() == ["t"]


@pytest.mark.parametrize("note", ["partition.metadata", "leader-epoch-checkpoint"])
def test_a_damaged_note_of_one_log_stops_its_topic_partition_alone(store: LogStore, there: Path, note: str) -> None:
    for name in ("t-0", "t-1", "u-0"):
        write_log(there, name, [some_batch(0)])
    (there / "t-0" / note).write_bytes(bytes(20))
    result = run_import(store, there, "1")
    assert list(result.failed) == ["t-0"]
    assert str(result.failed["t-0"]).startswith(str(there / "t-0" / note))
    assert store.source_of("t").positions == (None, 10)
    assert records_of(store, "u") == some_records(0, 10)


def test_what_is_corrupt_may_be_skipped_and_is_counted(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0), flipped(some_batch(10)), some_batch(20)])
    [ingested] = run_import(store, there, "1", skip_corrupt=True).committed
    assert len(ingested.skipped) == 1
    assert "from offset 10 on" in ingested.skipped[0]
    assert records_of(store, "t") == some_records(0, 10) + some_records(20, 10)
    write_log(there, "t-0", [some_batch(0), flipped(some_batch(10)), some_batch(20), some_batch(30)])
    [more] = run_import(store, there, "2", skip_corrupt=True).committed
    assert (more.skipped, more.records) == ((), 10)


def test_a_damage_is_told_where_it_begins_in_a_gap_before_the_position(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0)])
    run_import(store, there, "1")
    write_log(there, "t-0", [some_batch(0, 5), flipped(some_batch(10)), some_batch(20)])
    [more] = run_import(store, there, "2", skip_corrupt=True).committed
    assert ["from offset 5 on" in line for line in more.skipped] == [True]


def test_a_damage_behind_the_last_record_is_skipped_with_the_records_that_follow_it(
    store: LogStore, there: Path
) -> None:
    """Until then the log ends before it, and it may still be restored."""
    damaged = [some_batch(20), some_batch(5)]
    write_log(there, "t-0", damaged, base_offset=20)
    first = run_import(store, there, "1", skip_corrupt=True)
    assert [each.skipped for each in first.committed] == [()]
    [warning] = first.warnings
    assert warning.startswith("t-0: it ends at 30, and what lies behind is corrupt: ")
    assert "from offset 30 on: offsets 5..14 do not rise from 30" in warning
    write_log(there, "t-0", [*damaged, some_batch(40)], base_offset=20)
    second = run_import(store, there, "2", skip_corrupt=True)
    assert [["from offset 30 on" in line for line in each.skipped] for each in second.committed] == [[True]]
    assert second.warnings == ()


TAILS = {"cut off": some_batch(10)[:-7], "flipped bit": flipped(some_batch(10))}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize("first_dirty", [None, 20])
@pytest.mark.parametrize("skip_corrupt", [False, True])
def test_records_that_are_damaged_before_an_empty_active_segment_come_in_from_a_whole_copy(
    store: LogStore, there: Path, tail: bytes, first_dirty: int | None, *, skip_corrupt: bool
) -> None:
    """The broker's cleaner explains a gap between segments, not one in which damage was seen."""
    file = write_log(there, "t-0", [some_batch(0), tail])
    write_log(there, "t-0", [], base_offset=20)
    if first_dirty is not None:
        write_first_dirty(there, "t", first_dirty)
    [warning] = run_import(store, there, "1", skip_corrupt=skip_corrupt).warnings
    assert warning.startswith(
        "t-0: it ends at 10, since the rest of that segment is damaged, and offsets 10 to 19 come in with a copy that "
        f"has them whole: {file}: {len(tail)} bytes at position {len(some_batch(0))}, from offset 10 on: "
    )
    assert store.source_of("t").positions == (10,)
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    assert run_import(store, there, "2").warnings == ()
    assert records_of(store, "t") == some_records(0, 20)
    assert store.source_of("t").positions == (20,)


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_records_that_are_damaged_before_a_segment_with_a_batch_stop_the_log(
    store: LogStore, there: Path, tail: bytes
) -> None:
    write_log(there, "t-0", [some_batch(0), tail])
    write_log(there, "t-0", [some_batch(20)], base_offset=20)
    write_first_dirty(there, "t", 20)
    stopped = run_import(store, there, "1")
    assert "from offset 10 on" in str(stopped.failed["t-0"])
    [skipped] = run_import(store, there, "2", skip_corrupt=True).committed
    assert ["from offset 10 on" in line for line in skipped.skipped] == [True]


def test_a_marker_that_may_be_damaged_before_an_empty_active_segment_leaves_its_transaction_open(
    store: LogStore, there: Path
) -> None:
    open_batch = some_batch(10, options=BatchOptions(producer_id=7, is_transactional=True))
    write_log(there, "t-0", [some_batch(0), open_batch, flipped(marker(20, 7, 1))])
    write_log(there, "t-0", [], base_offset=21)
    run_import(store, there, "1")
    assert store.source_of("t").positions == (10,)
    write_log(there, "t-0", [some_batch(0), open_batch, marker(20, 7, 1)])
    assert run_import(store, there, "2").warnings == ()
    assert records_of(store, "t") == some_records(0, 20)


def test_records_that_came_in_before_their_copy_was_damaged_stop_nothing(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", [some_batch(0), some_batch(10)])
    write_log(there, "t-0", [], base_offset=20)
    assert run_import(store, there, "1").warnings == ()
    write_log(there, "t-0", [some_batch(0), flipped(some_batch(10))])
    result = run_import(store, there, "2")
    assert result.failed == {}
    [warning] = result.warnings
    assert "offsets 10 to 19 count as here, as they are if an earlier copy had them whole" in warning
    assert records_of(store, "t") == some_records(0, 20)


def test_a_torn_log_ends_as_of_when_its_damaged_segment_was_written(store: LogStore, there: Path) -> None:
    file = write_log(there, "t-0", [some_batch(0), some_batch(10)[:-7]])
    write_log(there, "t-0", [], base_offset=20)
    os.utime(file, (FIRST_MS / 1000, FIRST_MS / 1000))
    run_import(store, there, "1")
    assert store.source_of("t").as_of_ms == {0: FIRST_MS}


def undecodable(offset: int) -> bytes:
    """A batch with the right checksum that does not hold what it promises."""
    return whole_batch(b"no record", (offset, offset), (FIRST_MS, FIRST_MS), 1)


def test_segments_before_one_that_cannot_be_decoded_land(
    store: LogStore, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEAST_PART_BYTES", 1)
    monkeypatch.setattr(module, "_MOST_PART_BYTES", 1)
    write_log(there, "t-0", [some_batch(0)])
    write_log(there, "t-0", [some_batch(10)], base_offset=10)
    write_log(there, "t-0", [undecodable(20), some_batch(21)], base_offset=20)
    result = run_import(store, there, "1")
    assert "from offset 20 on" in str(result.failed["t-0"])
    assert records_of(store, "t") == some_records(0, 20)
    assert store.source_of("t").positions == (20,)
    [rest] = run_import(store, there, "2", skip_corrupt=True).committed
    assert (rest.records, len(rest.skipped)) == (10, 1)


def test_a_timestamp_that_microseconds_cannot_hold_stops_at_its_offset(store: LogStore, there: Path) -> None:
    nanoseconds = [replace(record, timestamp_ms=FIRST_MS * 10**6) for record in some_records(10, 1)]
    write_log(there, "t-0", [some_batch(0), batch(nanoseconds)])
    message = str(run_import(store, there, "1").failed["t-0"])
    assert "t-0" in message
    assert "the record at offset 10 has the timestamp" in message
    assert message.endswith(
        "which no table can hold: mend its producer, and skip what can't be stored (--skip-corrupt)"
    )
    assert records_of(store, "t") == some_records(0, 10)


@pytest.mark.parametrize("what", ["a timestamp", "a header"])
def test_a_record_that_no_table_can_hold_costs_only_itself(store: LogStore, there: Path, what: str) -> None:
    """It is whole, and so are its neighbours in the batch."""
    before, odd, behind = some_records(10, 3)
    odd = replace(odd, timestamp_ms=FIRST_MS * 10**6) if what == "a timestamp" else odd
    content = batch([before, odd, behind])
    if what == "a header":
        named = replace(odd, headers=(("\u00e4", b"1"),))
        payload = encoded_records([before, named, behind], 10, before.timestamp_ms)
        assert payload.count("\u00e4".encode()) == 1
        times_ms = before.timestamp_ms, behind.timestamp_ms
        content = whole_batch(payload.replace("\u00e4".encode(), b"\xff\xff"), (10, 12), times_ms, 3)
    write_log(there, "t-0", [some_batch(0), content, some_batch(13)])
    stopped = run_import(store, there, "1")
    assert "the record at offset 11 has" in str(stopped.failed["t-0"])
    assert records_of(store, "t") == some_records(0, 11)
    [rest] = run_import(store, there, "2", skip_corrupt=True).committed
    assert len(rest.skipped) == 1
    assert "the record at offset 11 has" in rest.skipped[0]
    assert records_of(store, "t") == [*some_records(0, 11), *some_records(12, 11)]


@pytest.mark.parametrize(
    ("number", "action"),
    [(errno.EACCES, Action.FIX_STORAGE), (errno.EMFILE, Action.FIX_STORAGE), (errno.ENOENT, Action.RETRY)],
)
def test_a_segment_that_a_task_may_not_read_is_told_to_programs_as_that(
    store: LogStore, there: Path, monkeypatch: pytest.MonkeyPatch, number: int, action: Action
) -> None:
    """The task said so, and on its way to whoever had asked for it that became ``retry``."""
    file = write_log(there, "t-0", [some_batch(0)])
    really = Path.open

    def refuse(path: Path, *how: Any, **more: Any) -> Any:
        if path == file:
            raise OSError(number, os.strerror(number))
        return really(path, *how, **more)

    monkeypatch.setattr(Path, "open", refuse)
    told = run_import(store, there, "1").failed["t-0"]
    assert str(told).startswith(f"{file} can't be read: {os.strerror(number)}; ")
    assert told.action is action
