"""After ``verified`` no byte of key or value is anywhere: not in home and warehouse, in no version of an object, not in
Spark's local folders, not in Dagster's storage. And that the search would find it, wherever it were.
"""

from __future__ import annotations

import base64
import gzip
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.passes.erasure_request import ErasureRequest
from keptlog.spark.jobs import spark_engine
from tests.erasure.byte_search import files_with, forms_of, is_in, versions_with
from tests.erasure.test_planted import WorldInABucket, world_in_a_bucket
from tests.erasure.world import DAY_MS, HOUR_MS, KEY, OTHER, SECOND_MS, SETTINGS, VALUE, World
from tests.orchestration.conftest import World as DagsterWorld
from tests.table.conftest import s3_endpoint

__all__ = ["s3_endpoint", "world_in_a_bucket"]
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


def test_after_verified_nothing_is_in_any_version_of_a_bucket(
    world_in_a_bucket: WorldInABucket, tmp_path: Path
) -> None:
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


@pytest.fixture
def with_dagster(tmp_path: Path) -> Iterator[DagsterWorld]:
    """Its storage lies on the disk, below ``instance.root_directory``."""
    with dg.instance_for_test() as instance:
        yield DagsterWorld(tmp_path / "home", instance)


def spark_folders() -> list[Path]:
    return [Path(name) for name in os.environ["SPARK_LOCAL_DIRS"].split(",")]


@pytest.mark.timeout(600)
def test_after_verified_nothing_is_where_spark_and_dagster_work(
    spark: SparkSession, with_dagster: DagsterWorld, tmp_path: Path
) -> None:
    """The jobs of Dagster clean on Spark and purge, and Spark looks the files through."""
    world = with_dagster
    roots = [tmp_path, Path(world.instance.root_directory), *spark_folders()]
    home = open_home(world.path)
    eraser = replace(home.eraser, engine=spark_engine(lambda: spark, home.store.files))
    world.store.create_topic("users", 1, SETTINGS)
    records = [NewRecord(OTHER, b"%d" % number, world.now_ms) for number in range(100)]
    world.store.append("users", [NewRecord(KEY, VALUE, world.now_ms), *records], new_id(), world.now_ms)
    assert files_with(roots, [KEY])
    request = ErasureRequest("r1", ["users"], [KEY], reason="ticket 5")
    asked = eraser.request(eraser.propose(request, now_ms=world.now_ms), now_ms=world.now_ms)
    assert dict(asked.failed) == {}
    for _ in range(3):
        world.now_ms += 2 * HOUR_MS
        assert world.clean("users-0", requested=True).success
        world.now_ms += SECOND_MS
        config = {"ops": {"delete_retired_files": {"config": {"orphan_grace_ms": 0}}}}
        assert world.run_job("purge", dg.RunRequest(run_config=config)).success
    world.now_ms += DAY_MS
    found = eraser.verify(now_ms=world.now_ms)
    assert [(row.erasure.state, row.blocked) for row in found.rows] == [("verified", ())]
    assert files_with(roots, NEEDLES) == []
    assert files_with(roots, [OTHER])
    for root in roots:
        planted = root / "planted.log"
        planted.write_bytes(FORMS["base64"](KEY))
        assert files_with(roots, NEEDLES) == [planted]
        planted.unlink()
