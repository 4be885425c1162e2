"""A case of ``recovery``: which files tell of a clean that was whole, and which of one that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.kinds import recovery

CASES: dict[str, tuple[list[str], dict[str, int], list[str]]] = {
    "crash_between_the_renames_to_swap": (
        ["0.log.swap", "0.index.cleaned", "0.log", "0.index", "10.log", "10.index", "20.log", "20.index"],
        {"0.log.swap": 20},
        ["0.log", "0.index", "10.log", "10.index", "20.log", "20.index"],
    ),
    "swap_above_a_cleaned_index": (
        ["0.index.cleaned", "10.log.swap", "0.log", "10.log", "20.log"],
        {"10.log.swap": 20},
        ["0.log", "10.log", "20.log"],
    ),
    "swap_below_a_cleaned_log": (
        ["0.log.swap", "20.log.cleaned", "0.log", "10.log", "20.log"],
        {"0.log.swap": 20},
        ["0.log", "20.log"],
    ),
    "two_swaps_are_one_range": (
        ["0.log.swap", "20.log.swap", "0.log", "10.log", "20.log", "30.log"],
        {"0.log.swap": 10, "20.log.swap": 30},
        ["0.log", "20.log", "30.log"],
    ),
    "deleted_segment_of_which_nothing_was_left": (
        ["0.log.deleted", "0.index.deleted", "10.log", "20.log"],
        {},
        ["10.log", "20.log"],
    ),
    "deleted_segment_beside_a_swap": (
        ["0.log.deleted", "10.log.swap", "10.log", "20.log", "30.log"],
        {"10.log.swap": 30},
        ["10.log", "30.log"],
    ),
    "deleted_segment_behind_another": (["0.log", "10.log.deleted", "20.log"], {}, ["0.log", "20.log"]),
    "cleaned_segment_that_never_was_live": (["0.log", "10.log.cleaned"], {}, ["0.log"]),
    "nine_segments_into_one": (
        ["0.log.swap", *(f"{base}.log" for base in range(0, 100, 10))],
        {"0.log.swap": 90},
        ["0.log", "90.log"],
    ),
    "untouched_segments_below_a_swap": (
        ["0.log", "10.log", "20.log", "20.log.swap"],
        {"20.log.swap": 30},
        ["0.log", "10.log", "20.log"],
    ),
    "untouched_segments_below_a_deleted_one": (
        ["0.log", "10.log", "20.log", "30.log.deleted"],
        {},
        ["0.log", "10.log", "20.log"],
    ),
    "torn_clean_below_all_that_is_left": (
        ["10.log", "20.log", "0.index.cleaned", "0.log.deleted"],
        {},
        ["10.log", "20.log"],
    ),
    "files_of_no_segment": (["0.log", "leader-epoch-checkpoint", "partition.metadata"], {}, ["0.log"]),
    "snapshot_of_producers": (["0.log", "0.snapshot", "10.snapshot.deleted"], {}, ["0.log", "0.snapshot"]),
    "neighbours_of_one_offset": (["0.log", "1.log", "0.log.deleted", "1.log.deleted"], {}, ["0.log", "1.log"]),
}


def case(files: list[str], swap_next_offset: dict[str, int], left: list[str]) -> dict[str, object]:
    return {"name": "r", "files": files, "swap_next_offset": swap_next_offset, "expect": {"files": left}}


@pytest.mark.parametrize("name", CASES)
def test_the_files_that_kafka_leaves_are_left(name: str, tmp_path: Path) -> None:
    (difference,) = recovery.run(case(*CASES[name]), tmp_path)
    assert difference.adr == 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("crash_between_the_renames_to_swap", ["0.log", "20.log"]),
        ("swap_below_a_cleaned_log", ["0.log", "10.log", "20.log"]),
        ("deleted_segment_of_which_nothing_was_left", ["0.log", "10.log", "20.log"]),
        ("cleaned_segment_that_never_was_live", ["0.log", "10.log"]),
        ("untouched_segments_below_a_swap", ["0.log"]),
        ("untouched_segments_below_a_deleted_one", ["0.log", "10.log", "20.log", "30.log"]),
    ],
)
def test_other_files_than_kafkas_are_told(name: str, wrong: list[str], tmp_path: Path) -> None:
    files, swap_next_offset, _ = CASES[name]
    with pytest.raises(AssertionError):
        recovery.run(case(files, swap_next_offset, wrong), tmp_path)
