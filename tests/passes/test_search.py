"""A search for keys through all that lies below a topic's location: each place by itself, and what is no answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from keptlog.home import new_id
from keptlog.kernels.offset_map import map_dirty
from keptlog.log.record import Record
from keptlog.log.search import FileFindings, FileKind, SearchedFile
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.storage.key_hash import KeyHasher
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, write_watermark_file
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.searching import Searcher
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create, staged, step_for

HASHER = KeyHasher(b"secret")
WANTED = "wanted-user"


@dataclass
class Searched:
    """A topic with other keys, and how it is searched."""

    store: LogStore
    folder: Path

    def __call__(self, *keys: str, others: tuple[SearchedFile, ...] = ()) -> list[FileFindings]:
        searcher = Searcher(self.store, in_process_engine(self.store.files), HASHER)
        hashes = [HASHER.hash(key.encode()) for key in keys or (WANTED,)]
        return searcher.search(TOPIC, hashes, new_id(), others=others)

    def table(self) -> Table:
        return self.store.load_table(TOPIC)

    def where(self, *keys: str) -> list[FileFindings]:
        """The findings that are not clear."""
        return [each for each in self(*keys) if not each.is_clear]


@pytest.fixture
def searched(tmp_path: Path) -> Searched:
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "1")], [("a", "2"), ("c", None)])
    return Searched(store, Path(store.load_table(TOPIC).location().removeprefix("file://")))


def test_where_no_file_has_the_key_every_file_is_clear(searched: Searched) -> None:
    found = searched()
    files = [path for path in searched.folder.rglob("*") if path.is_file()]
    assert len(found) == len(files) > 5
    assert all(each.is_clear for each in found)
    assert {each.kind for each in found} == {FileKind.SEGMENT, FileKind.MANIFEST, FileKind.METADATA}


def test_hits_say_of_each_key_how_many_records_where_and_whether_with_a_value(searched: Searched) -> None:
    first, second = sorted(searched.where("a", "c"), key=lambda each: each.file.path)
    a, c = (HASHER.hash(key) for key in (b"a", b"c"))
    assert [(hit.key_hash, hit.partition, hit.records, hit.has_value) for hit in first.hits] == [(a, 0, 1, True)]
    of_second = {hit.key_hash: (hit.lowest_offset, hit.highest_offset, hit.has_value) for hit in second.hits}
    assert of_second == {a: (2, 2, True), c: (3, 3, False)}


def live(searched: Searched) -> None:
    append_each(searched.store, [(WANTED, "1")])


def retired(searched: Searched) -> None:
    append_each(searched.store, [(WANTED, "1")], [(WANTED, "2"), ("z", "1")])
    outcome = clean(searched.store)
    for segment in outcome.added:  # so that only what was replaced still has it
        Path(segment.path.removeprefix("file://")).unlink()


def staged_by_a_run(searched: Searched) -> None:
    staged(searched.store, TOPIC, 0, [Record(90, WANTED.encode(), b"1", NOW_MS)])


def orphaned_elsewhere(searched: Searched) -> None:
    """Where no segment lies, and under no name of one."""
    staged_by_a_run(searched)
    (path,) = searched.folder.rglob("*-staged-*")
    path.rename(searched.folder / "metadata" / "x.bin")


def in_watermarks(searched: Searched) -> None:
    marks = {"key": [WANTED.encode()], "version": [1], "expires_ms": [2]}
    path = f"{searched.store.data_location(TOPIC)}/watermarks/partition=0/marks-old.arrow"
    by_timestamp = Strategy(StrategyKind.TIMESTAMP)
    write_watermark_file(searched.store.files, path, by_timestamp, pa.table(marks, schema=WATERMARKS_SCHEMA))


def in_the_map_of_a_run_that_died(searched: Searched) -> None:
    append_each(searched.store, [(WANTED, "1"), ("y", "1")], [("z", "1")])
    log = searched.store.logs(TOPIC)[0]
    step = step_for(log)
    mapped = map_dirty(searched.store.files, step, step.segments)
    mapped.offset_map.write(searched.store.files, f"{searched.store.data_location(TOPIC)}/staging/run/map.arrow")
    for segment in log.segments:
        Path(segment.path.removeprefix("file://")).unlink()


def in_streams(searched: Searched) -> None:
    """As a comparison is stored."""
    path = searched.folder / "data" / "staging" / "run" / "compared.arrow"
    path.parent.mkdir(parents=True)
    with path.open("wb") as sink:
        for keys in ([], [b"a"], [WANTED.encode()]):
            table = pa.table({"key": pa.array(keys, pa.binary())})
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)


def in_a_row_group_of_many(searched: Searched) -> None:
    """By another program, with text for keys and a dictionary of them."""
    path = searched.folder / "data" / "theirs.parquet"
    keys = [f"k{number % 50}" for number in range(1000)] + [WANTED]
    pq.write_table(pa.table({"key": keys, "offset": range(1001)}), path, row_group_size=100)


def in_bounds_of_a_manifest(searched: Searched) -> None:
    """As another engine writes them, that knows nothing of what is personal."""
    path = searched.folder / "data" / "partition=0" / "theirs.parquet"
    schema = pq.read_schema(next((searched.folder / "data").rglob("*.parquet")))
    table = searched.table()
    rows: dict[str, list[Any]] = {"partition": [0], "offset": [0], "timestamp": [0], "timestamp_type": [0]}
    rows |= {"key": [WANTED.encode()], "value": [None], "headers": [[]], "delete_horizon": [None]}
    pq.write_table(pa.table([pa.array(rows[field.name], field.type) for field in schema], schema=schema), path)
    with table.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "full"})
        change.add_files([f"file://{path}"])
    path.unlink()


PLANTED = [
    live,
    retired,
    staged_by_a_run,
    orphaned_elsewhere,
    in_watermarks,
    in_the_map_of_a_run_that_died,
    in_streams,
    in_a_row_group_of_many,
    in_bounds_of_a_manifest,
]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_key_is_found_wherever_it_lies(searched: Searched, plant: Callable[[Searched], None]) -> None:
    assert not searched.where()
    plant(searched)
    found = [each for each in searched() if each.hits]
    assert found
    assert {hit.key_hash for each in found for hit in each.hits} == {HASHER.hash(WANTED.encode())}


def test_an_older_version_of_an_object_is_looked_at_beside_what_is_listed(searched: Searched, tmp_path: Path) -> None:
    append_each(searched.store, [(WANTED, "1")])
    (found,) = searched.where()
    kept = tmp_path / "version"
    Path(found.file.path.removeprefix("file://")).rename(kept)
    (missing,) = searched.where()
    assert missing.is_gone
    assert not missing.hits
    others = (SearchedFile(str(kept), kept.stat().st_size),)
    assert [each.file.path for each in searched(others=others) if each.hits] == [str(kept)]


def a_half_written_segment(folder: Path) -> Path:
    (whole, *_) = (folder / "data").rglob("*.parquet")
    path = folder / "data" / "partition=0" / "half.parquet"
    path.write_bytes(whole.read_bytes()[:-200])
    return path


def a_damaged_segment(folder: Path) -> Path:
    (whole, *_) = (folder / "data").rglob("*.parquet")
    key = pq.read_metadata(whole).row_group(0).column(4)
    content = bytearray(whole.read_bytes())
    content[key.data_page_offset + key.total_compressed_size - 3] ^= 1
    whole.write_bytes(content)
    return whole


def four_bytes_of_a_segment(folder: Path) -> Path:
    path = folder / "data" / "x.parquet"
    path.write_bytes(b"PAR1")
    return path


def half_watermarks(folder: Path) -> Path:
    path = folder / "data" / "x.arrow"
    table = pa.table({"key": pa.array([b"k" * 99] * 99, pa.binary())})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    path.write_bytes(path.read_bytes()[:-500])
    return path


def half_a_manifest(folder: Path) -> Path:
    whole, path = next((folder / "metadata").glob("*-m0.avro")), folder / "metadata" / "half.avro"
    path.write_bytes(whole.read_bytes()[:-30])
    return path


def half_a_journal(folder: Path) -> Path:
    path = folder / "metadata" / "gc" / "x.json"
    path.parent.mkdir()
    path.write_text('{"snapshots": [1')
    return path


def json_that_nobody_knows(folder: Path) -> Path:
    path = folder / "export.json"
    path.write_text("{}")
    return path


def text(folder: Path) -> Path:
    path = folder / "data" / "notes.txt"
    path.write_text(f"{WANTED} wants to be erased")
    return path


def columns_that_are_no_segments(folder: Path) -> Path:
    path = folder / "data" / "theirs.parquet"
    pq.write_table(pa.table({"user": [WANTED]}), path)
    return path


def keys_that_are_numbers(folder: Path) -> Path:
    path = folder / "data" / "theirs.parquet"
    pq.write_table(pa.table({"key": [1]}), path)
    return path


def statistics(folder: Path) -> Path:
    path = folder / "metadata" / "x.stats"
    path.write_bytes(b"PFA1 and so on")
    return path


UNREADABLE = [
    a_half_written_segment,
    a_damaged_segment,
    four_bytes_of_a_segment,
    half_watermarks,
    half_a_manifest,
    half_a_journal,
    json_that_nobody_knows,
    text,
    columns_that_are_no_segments,
    keys_that_are_numbers,
    statistics,
]


@pytest.mark.parametrize("plant", UNREADABLE)
def test_a_file_that_cannot_be_searched_was_not_looked_at(searched: Searched, plant: Callable[[Path], Path]) -> None:
    path = plant(searched.folder)
    (found,) = searched.where()
    assert (Path(found.file.path.removeprefix("file://")), found.hits, found.is_gone) == (path, (), False)
    assert found.problem
    assert WANTED not in found.problem
    assert path.name not in found.problem, "whoever tells of it names the file himself"


def test_a_broken_file_hides_nothing_of_the_others_nor_of_its_own_beginning(searched: Searched) -> None:
    live(searched)
    text(searched.folder)
    path = searched.folder / "data" / "streams"
    table = pa.table({"key": pa.array([WANTED.encode()], pa.binary())})
    with path.open("wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
        writer.write_table(pa.table({"key": pa.array([b"x"], pa.binary())}))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"\x00\x00\x00\x00\x01\x00\x00\x00x", b"\x00\x00\x00\x00\xff\xff\xff\x00x"))
    told = {Path(each.file.path).name: (bool(each.hits), bool(each.problem)) for each in searched.where()}
    assert len(told) == 3
    assert told["notes.txt"] == (False, True)
    assert told["streams"] == (True, True)
    assert sorted(told.values()) == [(False, True), (True, False), (True, True)]


def test_an_empty_file_has_nothing_in_it(searched: Searched) -> None:
    (searched.folder / "data" / "empty").write_bytes(b"")
    assert not searched.where()


def test_a_file_that_is_gone_since_the_listing_says_so(searched: Searched) -> None:
    (found,) = [each for each in searched(others=(SearchedFile("file:///nowhere/x", 1),)) if not each.is_clear]
    assert (found.is_gone, found.problem) == (True, None)


def test_a_key_that_is_a_word_of_the_metadata_is_no_hit(searched: Searched) -> None:
    assert not searched.where("append", "0", "main", TOPIC)
