"""A path in a bucket is taken as it is, by both clients alike; what one takes for no path is refused in words."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.storage.refusal import StoreRefused
from keptlog.table.doctor.catalog_probe import Answer, Probe, probed
from keptlog.table.doctor.scratch import Scratch
from keptlog.table.io.addresses import parts_of
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.io.remote_files import create_remote, list_remote, open_remote
from tests.table.buckets import ABucket


@pytest.mark.parametrize("name", ["w#4", "w?x=1", "50% of it", "a;b", "ünd"])
def test_a_file_that_arrow_writes_is_the_one_that_is_looked_for(bucket: ABucket, name: str) -> None:
    other = bucket.put("w", b"somebody's")
    folder = f"s3://{bucket.name}/{name}"
    path = f"{folder}/data/0.parquet"
    with create_remote(bucket.properties, path) as sink:
        sink.write(b"records")
    assert [each.path for each in list_remote(bucket.properties, folder)] == [path]
    assert bucket.files.read_bytes(path) == b"records"
    assert open_remote(bucket.properties, path, 1 << 30).read() == b"records"
    assert bucket.files.read_bytes(other) == b"somebody's"


@pytest.mark.parametrize("inner", ["/w/0", "w//0", "w/"])
def test_a_folder_without_a_name_is_a_refusal_that_says_what_to_do(bucket: ABucket, inner: str) -> None:
    path = f"s3://{bucket.name}/{inner}/0"
    with pytest.raises(StoreRefused, match="has no name") as caught:
        create_remote(bucket.properties, path)
    assert str(caught.value).startswith(f"{path} can't be reached: a bucket or folder in this path has no name")
    assert "take the double / out of the catalog's warehouse, or of the location of the table" in str(caught.value)
    with pytest.raises(StoreRefused):
        open_remote(bucket.properties, path, 1 << 30)


def test_a_catalog_is_not_called_broken_because_a_path_is_refused(bucket: ABucket) -> None:
    def look(_: Scratch) -> str:
        create_remote(bucket.properties, f"s3://{bucket.name}//0")
        raise AssertionError

    probe = Probe("one", "it is written", "nothing", look, loses=True)
    [result] = probed([probe], None)  # type: ignore[arg-type]  # it asks nothing of it
    assert result.answer is Answer.NOT_LOOKED_AT
    assert "has no name" in result.seen


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("s4://lake/a", "the client for s4:// can't be made (ValueError: Unrecognized filesystem type in URI: s4)"),
        ("abfss://lake/a", "the client for abfss:// can't be made (TypeError: "),
    ],
)
def test_a_store_that_no_client_can_be_made_for_is_bad_settings_and_no_crash(path: str, told: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        create_remote((), path)
    assert str(caught.value).startswith(told)
    assert str(caught.value).endswith(
        ": correct the location of the table, the warehouse of the catalog, or its settings for that store"
    )
    with pytest.raises(InvalidConfig):
        DurableFileIO().new_output(path)


def test_metadata_is_found_under_such_a_name_too(bucket: ABucket) -> None:
    location = f"s3://{bucket.name}/w#4/metadata/0.metadata.json"
    io = DurableFileIO(dict(bucket.properties))
    with io.new_output(location).create() as sink:
        sink.write(b"{}")
    written = io.new_input(location)
    assert (written.exists(), len(written) >= 2, bucket.files.exists(location)) == (True, True, True)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("s3://lake/a/b#c", ("s3", "lake", "lake/a/b#c")),
        ("s3://lake", ("s3", "lake", "lake")),
        ("hdfs://host:8020/a/b", ("hdfs", "host:8020", "/a/b")),
        ("hdfs:///a", ("hdfs", "", "/a")),
    ],
)
def test_a_server_s_name_is_part_of_the_path_where_it_is_a_bucket(path: str, parts: tuple[str, str, str]) -> None:
    assert parts_of(path) == parts
