"""What a list of names and sizes tells of a log's files."""

from __future__ import annotations

from dataclasses import replace

from keptlog.log.told.stored_files import wrong_files
from tests.building import log, segment

SIZES = {"0-9.parquet": 100, "10-19.parquet": 80, "marks": 5}


def test_files_as_the_table_says_are_nothing_to_tell() -> None:
    whole = log([segment(0, 9), segment(10, 19, size=80)])
    assert wrong_files(replace(whole, watermarks_path="marks"), SIZES.get) == []


def test_each_missing_or_damaged_file_is_named_once_with_its_path() -> None:
    broken = log([segment(0, 9, size=99), segment(10, 19, size=80), segment(20, 29)])
    found = wrong_files(replace(broken, watermarks_path="lost"), SIZES.get)
    assert {each.path: (str(each), each.is_missing) for each in found} == {
        "0-9.parquet": (
            "0-9.parquet has 100 bytes, not 99: it is damaged; put the file back from a copy of the storage",
            False,
        ),
        "20-29.parquet": (
            "t-0: segment 20-29.parquet (offsets 20 to 29) is missing from storage though the table lists it; put the "
            "file back from a copy of the storage",
            True,
        ),
        "lost": (
            "t-0: file lost with its watermarks is missing from storage though the table lists it; put the file back "
            "from a copy of the storage, or give up its watermarks: keptlog repair t --adopt (if another program "
            "has changed the topic, keptlog repair t comes first)",
            True,
        ),
    }
