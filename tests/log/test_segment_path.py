"""A partition's folder says its number, and whoever has only a path reads it there."""

from __future__ import annotations

import pytest

from keptlog.log.segment_path import (
    is_named_by_keptlog,
    partition_folder,
    partition_in,
    watermarks_folder,
    watermarks_partition_in,
)


def test_what_lies_in_a_folder_of_a_partition_is_that_partitions() -> None:
    location = "s3://lake/users/data"
    segment = f"{partition_folder(location, 17)}/00000000000000000000-run-id.parquet"
    marks = f"{watermarks_folder(location, 17)}/marks-run-id.arrow"
    assert segment.startswith(f"{location}/partition=17/")
    assert marks.startswith(f"{location}/watermarks/partition=17/")
    assert (partition_in(segment), partition_in(marks)) == (17, 17)
    assert (watermarks_partition_in(segment), watermarks_partition_in(marks)) == (None, 17)


@pytest.mark.parametrize("name", ["metadata/00001-id.metadata.json", "data/partition=x/0.parquet", "partition=7"])
def test_a_file_in_no_such_folder_is_no_partitions(name: str) -> None:
    assert partition_in(f"s3://lake/users/{name}") is None


@pytest.mark.parametrize(
    ("name", "partition"), [("data/partition=17/0.parquet", 17), ("metadata/00001-id.metadata.json", None)]
)
def test_a_lake_that_itself_lies_in_a_folder_of_such_a_name_gives_no_file_its_number(
    name: str, partition: int | None
) -> None:
    """All files of such a lake were told of as its partition's."""
    path = f"file:///srv/watermarks/partition=3/lake/users/{name}"
    assert partition_in(path) == partition
    assert watermarks_partition_in(path) is None


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("data/partition=17/00000000000000000000-run-id.parquet", True),
        ("data/partition=17/00000-0-0b1c.parquet", False),
        ("data/watermarks/partition=17/marks-run-id.arrow", False),
        ("data/00000000000000000000-run-id.parquet", False),
    ],
)
def test_a_segment_that_keptlog_has_written_is_told_by_its_name(name: str, is_own: bool) -> None:
    assert is_named_by_keptlog(f"s3://lake/users/{name}") == is_own
