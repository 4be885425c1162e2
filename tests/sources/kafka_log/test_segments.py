"""Which files of a log count, in whatever state a broker left them (``LogLoader`` of Kafka)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.log.record import Record
from keptlog.sources.kafka_log.batches import NO_END
from keptlog.sources.kafka_log.segments import segments_to_read
from tests.sources.kafka_log.encoder import batch, write_segment

OLD = {0: 99, 100: 199, 200: 299, 300: 399}
"""Base offsets and last offsets."""


def write(folder: Path, segments: Mapping[int, int], suffix: str = "") -> None:
    for base, last in segments.items():
        records = [Record(offset, b"k", b"v", 1) for offset in sorted({base, last})]
        write_segment(folder, base, batch(records), suffix)


def names(folder: Path) -> list[str]:
    return [segment.path.name.lstrip("0") for segment in segments_to_read(folder)]


def test_segments_come_in_the_order_of_their_offsets_and_end_where_the_next_begins(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    found = [(each.base_offset, each.end_offset, each.is_last) for each in segments_to_read(tmp_path)]
    assert found == [(0, 100, False), (100, 200, False), (200, 300, False), (300, NO_END, True)]


def test_other_files_are_no_segments(tmp_path: Path) -> None:
    write(tmp_path, {0: 1})
    for name in ("00000000000000000000.index", "leader-epoch-checkpoint", "00000000000000000002.snapshot", "x.log"):
        (tmp_path / name).touch()
    assert names(tmp_path) == [".log"]


def test_deleted_and_half_cleaned_files_are_overlooked(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    write(tmp_path, {0: 50}, ".deleted")
    write(tmp_path, {100: 150}, ".cleaned")
    assert names(tmp_path) == [".log", "100.log", "200.log", "300.log"]


def test_a_swap_takes_the_place_of_all_segments_up_to_its_end(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    write(tmp_path, {100: 250}, ".swap")
    assert names(tmp_path) == [".log", "100.log.swap", "300.log"]


def test_several_swaps_take_the_place_of_everything_between_them(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    write(tmp_path, {0: 10, 200: 299}, ".swap")
    assert names(tmp_path) == [".log.swap", "200.log.swap", "300.log"]


def test_a_swap_without_records_takes_the_place_of_its_own_base_only(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    write_segment(tmp_path, 100, b"", ".swap")
    assert names(tmp_path) == [".log", "100.log.swap", "200.log", "300.log"]


def test_a_swap_at_or_behind_a_cleaned_file_is_void(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    write(tmp_path, {0: 20, 100: 150, 200: 350}, ".swap")
    (tmp_path / f"{100:020d}.timeindex.cleaned").touch()
    assert names(tmp_path) == [".log.swap", "100.log", "200.log", "300.log"]


def test_the_last_segment_is_the_last_with_any_bytes(tmp_path: Path) -> None:
    write(tmp_path, {0: 1, 2: 3})
    write_segment(tmp_path, 4, b"")
    assert [segment.is_last for segment in segments_to_read(tmp_path)] == [False, True, True]


def test_a_folder_that_is_gone_can_be_tried_again(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="try again"):
        segments_to_read(tmp_path / "gone-0")
