"""A large file is damaged if it comes so twice: a page with status 200 in place of a part of it is none."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest

from examples.lake.s3_server import KEYS, client_of
from keptlog.errors import LogCorrupt
from keptlog.log.record import Record
from keptlog.log.segment import Segment
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.storage.schema import to_arrow
from keptlog.storage.segment_reader import open_segment
from keptlog.storage.segment_writer import SegmentWriter
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, read_any_watermarks, write_watermark_file
from keptlog.table.io.files import TableFiles
from tests.table.counted_s3 import CountedS3, Request, counted_s3

PAGE = ("200 OK", "SignIn")


@pytest.fixture(scope="module")
def store() -> Iterator[CountedS3]:
    with counted_s3() as store:
        client_of(store.endpoint).create_bucket(Bucket="lake")
        yield store


@pytest.fixture(scope="module")
def files(store: CountedS3) -> TableFiles:
    return TableFiles(tuple(sorted({"s3.endpoint": store.endpoint, **KEYS}.items())))


@pytest.fixture
def segment(store: CountedS3, files: TableFiles) -> Segment:
    """So large that Arrow reads it, in parts."""
    store.refuse = lambda _: None
    value = random.Random(5).randbytes(3 * 2**20)
    records = [Record(offset=n, key=b"%d" % n, value=value[n:], timestamp_ms=1_700_000_000_000) for n in range(2)]
    writer = SegmentWriter(files, lambda base: f"s3://lake/users/data/{base}.parquet", target_bytes=2**30)
    writer.write(to_arrow(0, records))
    (written,) = writer.finish()
    return written


def all_of(files: TableFiles, segment: Segment) -> int:
    with open_segment(files, segment) as opened:
        return sum(opened.read(number).num_rows for number in range(len(opened.row_groups)))


def pages(store: CountedS3, first: int, last: int | None) -> None:
    """From the so-many-th request for a segment on, until the last."""
    asked = count(1)

    def refuse(request: Request) -> tuple[str, str] | None:
        if "parquet" not in request.path:
            return None
        number = next(asked)
        return PAGE if number >= first and (last is None or number <= last) else None

    store.refuse = refuse


@pytest.mark.parametrize("at", [1, 2, 3])
def test_one_page_is_no_damage(store: CountedS3, files: TableFiles, segment: Segment, at: int) -> None:
    """Arrow sends requests side by side: which part is the second changes, and a part of values is asked for again."""
    pages(store, at, at)
    try:
        assert all_of(files, segment) == 2
    except OSError as error:
        assert "came damaged from the storage, and whole when it was asked again" in str(error)  # noqa: PT017


@pytest.mark.parametrize("at", [1, 2, 3])
def test_pages_from_then_on_are_no_damage(store: CountedS3, files: TableFiles, segment: Segment, at: int) -> None:
    pages(store, at, None)
    with pytest.raises(OSError, match="with no answer of S3's"):
        all_of(files, segment)


def test_what_comes_damaged_twice_is_damaged(store: CountedS3, files: TableFiles, segment: Segment) -> None:
    client, key = client_of(store.endpoint), segment.path.removeprefix("s3://lake/")
    stored = bytearray(client.get_object(Bucket="lake", Key=key)["Body"].read())
    stored[len(stored) // 2] ^= 1
    client.put_object(Bucket="lake", Key=key, Body=bytes(stored))
    with pytest.raises(LogCorrupt, match="damaged"):
        all_of(files, segment)
    client.put_object(Bucket="lake", Key=key, Body=b"<html>")
    with pytest.raises(LogCorrupt, match="6 bytes"):
        all_of(files, segment)


def test_one_page_in_place_of_watermarks_is_no_damage(store: CountedS3, files: TableFiles) -> None:
    store.refuse = lambda _: None
    keys = [random.Random(5).randbytes(6 * 2**20)]
    path, watermarks = "s3://lake/users/data/marks.parquet", pa.table([keys, [1], [2]], WATERMARKS_SCHEMA)
    write_watermark_file(files, path, Strategy(StrategyKind.TIMESTAMP), watermarks)
    pages(store, 2, 2)
    assert read_any_watermarks(files, path, "users")[0].equals(watermarks)
