"""A partition's folder says its number, and whoever has only a path reads it there."""

from __future__ import annotations

import pytest

from keptlog.log.segment_path import partition_folder, partition_in


@pytest.mark.parametrize("location", ["s3://lake/users/data", "file:///lake/users/data/watermarks"])
def test_what_lies_in_the_folder_of_a_partition_is_that_partitions(location: str) -> None:
    assert partition_folder(location, 17) == f"{location}/partition=17"
    assert partition_in(f"{partition_folder(location, 17)}/00000000000000000000-run-id.parquet") == 17


@pytest.mark.parametrize("name", ["metadata/00001-id.metadata.json", "data/partition=x/0.parquet", "partition=7"])
def test_a_file_in_no_such_folder_is_no_partitions(name: str) -> None:
    assert partition_in(f"s3://lake/users/{name}") is None
