"""What is damaged at the source may hold anything: no key is deleted here because of it, and it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.ingest import kafka_logs
from keptlog.ingest.result import IngestResult
from keptlog.log.record import Record
from keptlog.table.store import LogStore
from tests.ingest.directories import FIRST_MS, flipped, records_of, run_import, write_log, write_log_starts
from tests.sources.kafka_log.encoder import batch, whole_batch


def put(offset: int, **values: str) -> bytes:
    """A batch of these keys, from this offset on."""
    pairs = enumerate(values.items(), start=offset)
    return batch([Record(at, key.encode(), value.encode(), FIRST_MS) for at, (key, value) in pairs])


FIRST = [put(0, ada="1", bob="1"), put(2, cat="1", dan="1"), put(4, eve="1")]


def state(store: LogStore) -> dict[str, str]:
    values = {record.key: record.value for record in records_of(store, "t") if record.key}
    return {key.decode(): value.decode() for key, value in values.items() if value}


def reconciled(store: LogStore, there: Path) -> IngestResult:
    return run_import(store, there, "2", skip_corrupt=True, reconcile=True)


@pytest.mark.parametrize(
    "damaged",
    [flipped(put(2, cat="1", dan="1")), whole_batch(b"no record", (2, 3), (FIRST_MS, FIRST_MS), 2)],
    ids=["a flipped bit", "no records under a right checksum"],
)
def test_keys_that_lie_in_a_damage_are_not_gone(store: LogStore, there: Path, damaged: bytes) -> None:
    write_log(there, "t-0", FIRST)
    write_log(there, "u-0", FIRST)
    run_import(store, there, "1")
    file = write_log(there, "t-0", [FIRST[0], damaged, put(5, eve="2"), put(9, fay="1")])
    write_log(there, "u-0", [FIRST[0], put(5, eve="2"), put(9, fay="1")])
    result = reconciled(store, there)
    assert state(store) == {"ada": "1", "bob": "1", "cat": "1", "dan": "1", "eve": "1"}
    [(name, error)] = result.failed.items()
    assert (name, type(error)) == ("t-0", LogCorrupt)
    assert str(error).startswith(f"{file}: {len(damaged)} bytes at position {len(FIRST[0])}, from offset 2 on: ")
    assert str(error).endswith("nothing is deleted here: restore the file, or go on without (--skip-lost)")
    assert [(str(each.topic_partition), each.reconciled) for each in result.committed] == [("u-0", 2)]
    assert not run_import(store, there, "3", skip_corrupt=True, skip_lost=True).failed
    assert state(store) == {"ada": "1", "bob": "1", "cat": "1", "dan": "1", "eve": "2", "fay": "1"}


def test_a_key_whose_newer_record_may_lie_in_a_damage_behind_the_position_is_not_gone(
    store: LogStore, there: Path
) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    before = store.metadata_locations()
    write_log(there, "t-0", [put(1, bob="1"), *FIRST[1:], flipped(put(5, ada="2")), put(9, fay="1")])
    [error] = reconciled(store, there).failed.values()
    assert "from offset 5 on: its checksum is" in str(error)
    assert store.metadata_locations() == before


def test_a_damage_behind_the_position_stops_nothing_where_nothing_is_gone(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    write_log(there, "t-0", [*FIRST, put(5, gus="1"), flipped(put(6, ada="2")), put(9, fay="1")])
    result = reconciled(store, there)
    assert not result.failed
    [intake] = result.committed
    assert (intake.records, intake.reconciled, len(intake.skipped)) == (2, 0, 1)


def test_a_damage_that_was_skipped_before_stops_nothing_where_nothing_is_gone(store: LogStore, there: Path) -> None:
    damaged = [FIRST[0], flipped(FIRST[1]), FIRST[2]]
    write_log(there, "t-0", damaged)
    run_import(store, there, "1", skip_corrupt=True)
    write_log(there, "t-0", [*damaged, put(9, fay="1")])
    result = reconciled(store, there)
    assert not result.failed
    [intake] = result.committed
    assert (intake.records, intake.reconciled, intake.skipped) == (1, 0, ())
    assert state(store) == {"ada": "1", "bob": "1", "eve": "1", "fay": "1"}


def test_a_damage_that_begins_at_the_position_stops_nothing_where_nothing_is_gone(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    write_log(there, "t-0", [*FIRST, flipped(put(5, ada="2")), put(9, fay="1")])
    result = reconciled(store, there)
    assert not result.failed
    [intake] = result.committed
    assert (intake.records, intake.reconciled, len(intake.skipped)) == (1, 0, 1)


def test_a_key_whose_newer_record_may_lie_in_a_damage_at_the_position_is_not_gone(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    write_log(there, "t-0", [put(1, bob="1"), *FIRST[1:], flipped(put(5, ada="2")), put(9, fay="1")])
    [error] = reconciled(store, there).failed.values()
    assert "from offset 5 on: its checksum is" in str(error)
    assert state(store)["ada"] == "1"


def test_a_damage_that_reaches_over_the_log_start_hides_what_lies_behind_it(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    write_log(there, "t-0", [flipped(put(0, ada="1", bob="1", cat="1", dan="1")), FIRST[2], put(9, fay="1")])
    write_log_starts(there, t=2)
    assert "from offset 0 on: " in str(reconciled(store, there).failed["t-0"])
    assert state(store) == {"ada": "1", "bob": "1", "cat": "1", "dan": "1", "eve": "1"}


def test_a_damage_below_the_log_start_hides_nothing(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    write_log(there, "t-0", [flipped(FIRST[0]), *FIRST[1:], put(9, fay="1")])
    write_log_starts(there, t=2)
    assert not reconciled(store, there).failed
    assert state(store) == {"ada": "1", "bob": "1", "cat": "1", "dan": "1", "eve": "1", "fay": "1"}


def odd(offset: int, key: str, value: str | None) -> bytes:
    """A batch of one whole record that no table can hold: its timestamp is in nanoseconds."""
    return batch([Record(offset, key.encode(), value.encode() if value else None, FIRST_MS * 10**6)])


def test_a_record_that_no_table_can_hold_hides_nothing_and_stops_no_comparison(store: LogStore, there: Path) -> None:
    """Before the position and behind it: it is whole, so nothing else can lie in there."""
    kept = [put(2, cat="1"), odd(3, "eve", "1"), put(4, dan="1")]
    write_log(there, "t-0", [put(0, ada="1", bob="1"), *kept])
    run_import(store, there, "1", skip_corrupt=True)
    write_log(there, "t-0", [put(1, bob="1"), *kept, put(5, fay="1"), odd(7, "gil", "1"), put(8, gus="1")])
    result = reconciled(store, there)
    assert not result.failed
    assert [(each.reconciled, len(each.skipped)) for each in result.committed] == [(1, 1)]
    assert state(store) == {"bob": "1", "cat": "1", "dan": "1", "fay": "1", "gus": "1"}


def test_beside_a_damage_a_record_that_no_table_can_hold_is_not_named_as_what_hides_a_key(
    store: LogStore, there: Path
) -> None:
    kept = [*FIRST[1:], odd(5, "eve", "1")]
    write_log(there, "t-0", [FIRST[0], *kept])
    run_import(store, there, "1", skip_corrupt=True)
    write_log(there, "t-0", [put(1, bob="1"), *kept, flipped(put(6, ada="2")), put(9, fay="1")])
    assert "from offset 6 on: its checksum is" in str(reconciled(store, there).failed["t-0"])
    assert state(store)["ada"] == "1"


@pytest.mark.parametrize("offset", [5, 7], ids=["before the position", "behind the position"])
@pytest.mark.parametrize("value", ["2", None], ids=["a value", "a tombstone"])
def test_a_value_that_no_table_can_hold_keeps_its_key_alive_and_a_tombstone_does_not(
    store: LogStore, there: Path, offset: int, value: str | None
) -> None:
    """What the tombstone deleted is gone at its source, and no reader here was told."""
    odd_one = odd(offset, "ada", value)
    before = [odd_one] if offset == 5 else []
    write_log(there, "t-0", [*FIRST, *before, put(6, gus="1")])
    run_import(store, there, "1", skip_corrupt=True)
    behind = [odd_one] if offset == 7 else []
    write_log(there, "t-0", [put(1, bob="1"), *FIRST[1:], *before, put(6, gus="1"), *behind, put(9, fay="1")])
    result = reconciled(store, there)
    assert not result.failed
    assert state(store).get("ada") == ("1" if value else None)
    assert [each.reconciled for each in result.committed] == [0 if value else 1]


@pytest.mark.parametrize("behind", [0, 1, 2], ids=["before the position", "around the position", "behind the position"])
@pytest.mark.parametrize("values", [("2", None), (None, "2"), ("2", None, "3"), ("2", None, "3", None)])
def test_of_several_records_of_a_key_that_no_table_can_hold_the_newest_says_whether_it_is_alive(
    store: LogStore, there: Path, values: tuple[str | None, ...], behind: int
) -> None:
    """A producer that gives nanoseconds gives them for all that it writes, values and tombstones."""
    odd_ones = [odd(6 + number, "ada", value) for number, value in enumerate(values)]
    known = odd_ones[: len(odd_ones) * (2 - behind) // 2]
    write_log(there, "t-0", [*FIRST, put(5, gus="1"), *known])
    run_import(store, there, "1", skip_corrupt=True)
    write_log(there, "t-0", [put(1, bob="1"), *FIRST[1:], put(5, gus="1"), *odd_ones, put(12, fay="1")])
    result = reconciled(store, there)
    assert not result.failed
    assert state(store).get("ada") == ("1" if values[-1] else None)


@pytest.mark.parametrize("value", ["3", None], ids=["a value", "a tombstone"])
def test_a_newest_record_that_no_table_can_hold_may_lie_in_another_part_than_those_before_it(
    store: LogStore, there: Path, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_logs, "_MOST_PART_BYTES", 1)
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    older, newest = odd(6, "ada", None if value else "2"), odd(7, "ada", value)
    write_log(there, "t-0", [put(1, bob="1"), *FIRST[1:], older])
    write_log(there, "t-0", [newest, put(9, fay="1")], base_offset=7)
    result = reconciled(store, there)
    assert not result.failed
    assert state(store).get("ada") == ("1" if value else None)


@pytest.mark.parametrize("cleaned", [FIRST, [put(1, bob="1"), *FIRST[1:]]], ids=["still there", "gone there"])
def test_a_tombstone_that_no_table_can_hold_deletes_its_key_whether_or_not_its_value_is_still_at_the_source(
    store: LogStore, there: Path, cleaned: list[bytes]
) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    write_log(there, "t-0", [*cleaned, odd(6, "ada", None), put(7, gus="1")])
    result = reconciled(store, there)
    assert not result.failed
    assert [each.reconciled for each in result.committed] == [1]
    assert state(store) == {"bob": "1", "cat": "1", "dan": "1", "eve": "1", "gus": "1"}
    assert [record.offset for record in records_of(store, "t") if record.key == b"ada"][-1] == 6


def test_it_deletes_a_value_that_comes_in_with_it_and_none_that_lies_behind_it(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    new = [put(5, ada="2", bob="2"), odd(7, "bob", None), put(8, bob="3"), odd(9, "ada", None), put(10, gus="1")]
    write_log(there, "t-0", [*FIRST[1:], *new, odd(12, "cat", None), odd(13, "cat", "2"), put(14, hal="1")])
    result = reconciled(store, there)
    assert not result.failed
    assert state(store) == {"bob": "3", "cat": "1", "dan": "1", "eve": "1", "gus": "1", "hal": "1"}
    assert [record.offset for record in records_of(store, "t") if record.key == b"ada"][-1] == 9


def test_beside_it_a_key_that_is_gone_gets_another_offset(store: LogStore, there: Path) -> None:
    write_log(there, "t-0", FIRST)
    run_import(store, there, "1")
    write_log(there, "t-0", [put(1, bob="1"), *FIRST[1:], odd(7, "bob", None), put(8, gus="1")])
    assert [each.reconciled for each in reconciled(store, there).committed] == [2]
    deleted = {record.key: record.offset for record in records_of(store, "t") if record.value is None}
    assert deleted == {b"ada": 6, b"bob": 7}
