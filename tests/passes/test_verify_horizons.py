"""``verify_log`` compares tombstones and delete horizons record by record, and reads values only where it must."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import keptlog.storage.segment_reader
from keptlog.home import Home
from keptlog.passes.check import Outcome
from keptlog.passes.verify import verify_log
from keptlog.storage.segment_reader import SegmentFile
from tests.passes.test_verify import NOW_MS, cleaned_home, damage, local, log_of, outcomes


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return cleaned_home(tmp_path / "home")


def move_the_horizon(rows: list[dict[str, object]]) -> None:
    rows[1]["delete_horizon"], rows[2]["delete_horizon"] = rows[2]["delete_horizon"], None


@pytest.mark.parametrize("viewed_from_bytes", [0, 2**20])
def test_a_delete_horizon_on_another_record_than_the_tombstone_is_seen_and_both_are_named(
    home: Home, monkeypatch: pytest.MonkeyPatch, viewed_from_bytes: int
) -> None:
    monkeypatch.setattr(keptlog.storage.segment_reader, "VIEWED_FILE_BYTES", viewed_from_bytes)
    damage(home, 0, move_the_horizon)

    name = local(log_of(home).segments[0].path).name
    (found,) = (each for each in verify_log(home.store, log_of(home), NOW_MS) if each.name == "G5")
    assert found.outcome is Outcome.BROKEN
    assert found.description == (
        f"{name} has 1 tombstone without a delete horizon, at offset 3; "
        f"{name} has 1 value with a delete horizon, at offset 2"
    )


def test_who_reads_no_values_says_that_horizons_were_only_counted(home: Home) -> None:
    damage(home, 0, move_the_horizon)

    results = verify_log(home.store, log_of(home), NOW_MS, every_byte=False)
    (found,) = (each for each in results if each.name == "G5")
    assert found.passed
    assert found.description.endswith("In 1 segment they were only counted, for values were not read.")
    damage(home, 0, lambda rows: rows[1].update(delete_horizon=None))
    results = verify_log(home.store, log_of(home), NOW_MS, every_byte=False)
    (found,) = (each for each in results if each.name == "G5")
    assert found.outcome is Outcome.BROKEN
    assert found.description.endswith("has 1 tombstone but 0 delete horizons")


@pytest.mark.parametrize("tombstones", [0, 3])
def test_values_are_not_decoded_where_statistics_tell_which_records_are_tombstones(
    home: Home, monkeypatch: pytest.MonkeyPatch, tombstones: int
) -> None:
    value, horizon = (None, NOW_MS * 1000) if tombstones else (b"1", None)
    damage(home, 0, lambda rows: [each.update(value=value, delete_horizon=horizon) for each in rows])
    read, columns = SegmentFile._read, list[str]()

    def reading(self: SegmentFile, parquet: object, row_group: int, names: list[str] | None) -> pa.Table:
        columns.extend(names or ())
        return read(self, parquet, row_group, names)  # type: ignore[arg-type]

    monkeypatch.setattr(SegmentFile, "_read", reading)
    monkeypatch.setattr(SegmentFile, "read_through", lambda _: None)
    assert outcomes(home)["G5"] == "ok"
    assert "offset" in columns
    assert "value" not in columns


def test_the_clean_part_of_a_segment_that_is_also_dirty_is_judged(home: Home) -> None:
    def change(rows: list[dict[str, object]]) -> None:
        rows[0]["key"] = None
        rows[1]["value"] = None
        rows[2]["delete_horizon"] = None

    damage(home, 0, change)
    table = home.store.load_table("users")
    table.transaction().set_properties({"log.p0.first-dirty-offset": "3"}).commit_transaction()

    results = {each.name: each for each in verify_log(home.store, log_of(home), NOW_MS)}
    assert {name for name, each in results.items() if each.outcome is Outcome.BROKEN} == {"G1", "G5"}
    assert results["G1"].description.endswith("has 1 record without a key, at offset 1")
    assert results["G5"].description.endswith("has 1 tombstone without a delete horizon, at offset 2")
