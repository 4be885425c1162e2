"""After ``verified`` no byte of key or value is anywhere: not in home and warehouse, in no version of an object.

And the search would find it, in whatever form. Where Spark and Dagster work ``tests/spark/test_erased_bytes.py`` looks.
"""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.erasure.bucket_world import BucketWorld
from tests.erasure.byte_search import files_with, forms_of, is_in, versions_with
from tests.erasure.world import KEY, OTHER, VALUE, World

NEEDLES = [KEY, VALUE]
FILLING = [b"%d knows %s" % (number, part) for number in range(9) for part in (KEY[:-1], VALUE[:-1], bytes(300))]
"""What a codec has met already, so that it does not write down a needle as it is."""


def parquet_of(value: bytes) -> bytes:
    """Nothing of it is readable without decompressing."""
    sink = io.BytesIO()
    columns = {"key": [*FILLING, FILLING[3] + value + FILLING[5]]}
    pq.write_table(pa.table(columns), sink, compression="zstd", write_statistics=False)
    return sink.getvalue()


def arrow_of(value: bytes) -> bytes:
    sink, table = io.BytesIO(), pa.table({"key": [*FILLING, FILLING[3] + value + FILLING[5]]})
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda value: b"before" + value + b"behind",
    "hex": lambda value: value.hex().encode(),
    "HEX": lambda value: value.hex().upper().encode(),
    "base64": base64.b64encode,
    "base64 of more": lambda value: base64.b64encode(b"user=" + value + b";"),
    "base64 of more, moved on": lambda value: base64.b64encode(b"user:=" + value + b";;"),
    "base64, url-safe": base64.urlsafe_b64encode,
    "gzip": lambda value: gzip.compress(value * 9),
    "parquet": parquet_of,
    "arrow": arrow_of,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("needle", [KEY, VALUE, bytes(range(250, 256)) * 2])
def test_the_search_finds_it_in_every_form(form: str, needle: bytes) -> None:
    content = FORMS[form](needle)
    assert is_in("x", content, forms_of(needle))
    assert not is_in("x", content, forms_of(b"somebody-else@example.org"))
    if form in {"gzip", "parquet", "arrow"}:
        assert needle not in content


def test_the_search_finds_it_in_the_name_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / f"{KEY.hex()}.txt"
    path.touch()
    assert files_with([tmp_path], NEEDLES) == [path]


def test_after_verified_nothing_is_in_home_and_warehouse(tmp_path: Path) -> None:
    world = World(tmp_path / "home")
    world.create(partitions=2)
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.append((KEY, VALUE + b" now"))
    assert files_with([tmp_path], [KEY])
    assert files_with([tmp_path], [VALUE])
    world.ask(reason="ticket 5")
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert files_with([tmp_path], NEEDLES) == []
    assert files_with([tmp_path], [OTHER])


def test_after_verified_nothing_is_in_any_version_of_a_bucket(world_in_a_bucket: BucketWorld, tmp_path: Path) -> None:
    world = world_in_a_bucket
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    (first,) = world.store.logs("users")[0].segments
    hidden = world.bucket.put("elsewhere/of-somebody", FORMS["parquet"](KEY))
    world.bucket.hide(hidden)
    assert {path for path, _ in versions_with(world.bucket, NEEDLES)} == {first.path, hidden}
    world.ask()
    assert world.to_deleted().erasure.state == "deleted"
    assert world.verified().erasure.state == "verified"
    assert {path for path, _ in versions_with(world.bucket, NEEDLES)} == {hidden}
    assert files_with([tmp_path], NEEDLES) == []
