"""Files of several formats are read as one, in order, with the place of the last record and the share that was read."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keptlog.errors import InvalidConfig, InvalidRecord
from keptlog.sources import files
from keptlog.sources.files import FileSet, Reading, files_below
from keptlog.sources.formats import Format

NOW_MS = 1_700_000_000_000


def jsonl(path: Path, *keys: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f'{{"key": "{key}", "value": ""}}\n' for key in keys).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def parquet(path: Path, *keys: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"key": keys, "value": keys}), path)
    return str(path)


def keys(*paths: str) -> list[str]:
    return [(record.key or b"").decode() for record in FileSet(paths, Reading(NOW_MS)).records()]


def test_files_are_read_in_their_order_each_as_its_name_says(tmp_path: Path) -> None:
    paths = [
        jsonl(tmp_path / "z.jsonl", "1", "2"),
        parquet(tmp_path / "y.snappy.parquet", "3"),
        jsonl(tmp_path / "x.ndjson.gz", "4"),
        jsonl(tmp_path / "w.txt", "5"),
    ]
    assert keys(*paths) == ["1", "2", "3", "4", "5"]


def test_a_folder_means_its_files_by_name_without_marks_and_hidden_ones(tmp_path: Path) -> None:
    parquet(tmp_path / "day=2" / "part-0.parquet", "3")
    parquet(tmp_path / "day=1" / "part-1.parquet", "2")
    jsonl(tmp_path / "day=1" / "part-0.jsonl.gz", "1")
    for name in ("_SUCCESS", "_temporary/x.parquet", ".part-0.parquet.crc", "README.md", "day=1/.hidden.jsonl"):
        jsonl(tmp_path / name, "no")
    assert keys(*files_below([str(tmp_path)])) == ["1", "2", "3"]


def test_suffixes_are_known_in_capitals_too(tmp_path: Path) -> None:
    for number, name in enumerate(("a.JSONL", "b.Jsonl.GZ"), start=1):
        jsonl(tmp_path / name, str(number))
    parquet(tmp_path / "c.PARQUET", "3")
    assert keys(*files_below([str(tmp_path)])) == ["1", "2", "3"]


def test_what_seems_to_hold_records_and_is_not_taken_from_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    jsonl(tmp_path / "elsewhere" / "a.jsonl", "1")
    for number, (name, leads_to, why) in enumerate(
        (
            ("b.jsonl.xz", None, "is compressed otherwise than with gzip"),
            ("b.PARQUET.zst", None, "is compressed otherwise than with gzip"),
            ("linked", "../elsewhere", "is a link to a folder, which is not followed"),
            ("b.jsonl", "../nowhere", "leads to no file"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        jsonl(folder / "a.jsonl", "1")
        if leads_to:
            (folder / name).symlink_to(leads_to)
        else:
            (folder / name).write_bytes(b"x")
        with pytest.raises(InvalidConfig, match=f"{name} {why}, so its records would be left out"):
            files_below([str(folder)])


def test_a_folder_without_files_and_a_file_that_is_named_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"has no files that end with \.parquet, \.jsonl"):
        files_below([str(tmp_path)])
    path = jsonl(tmp_path / "a.jsonl", "1")
    with pytest.raises(InvalidConfig, match="is given 2 times"):
        files_below([str(tmp_path), path])


def test_the_place_is_that_of_the_record_that_came_last(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.parquet"
    first.write_text('{"key": "a", "value": ""}\n\n \n{"key": "b", "value": ""}\n')
    parquet(second, "c", "d")
    read = FileSet([str(first), str(second)], Reading(NOW_MS))
    assert [str(read.place) for _ in read.records()] == [
        f"{first}: line 1",
        f"{first}: line 4",
        f"{second}: row 1",
        f"{second}: row 2",
    ]


def test_the_share_is_told_now_and_then_and_is_all_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "REPORT_EVERY", 3)
    told: list[tuple[int, float | None]] = []
    paths = [jsonl(tmp_path / "a.jsonl", *"abcd"), parquet(tmp_path / "b.parquet", *"efgh")]
    read = FileSet(paths, Reading(NOW_MS), lambda each: told.append((each.count, each.share_read)))
    assert len(list(read.records())) == 8
    assert [count for count, _ in told] == [3, 6]
    shares = [share for _, share in told if share is not None]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[1] < 1
    assert read.share_read == 1


def test_standard_input_has_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"key": "a", "value": ""}\n')))
    read = FileSet(["-"], Reading(NOW_MS, partition=2))
    assert [(record.key, record.partition) for record in read.records()] == [(b"a", 2)]
    assert read.share_read is None


def test_parquet_needs_a_file() -> None:
    with pytest.raises(InvalidConfig, match="can't be read from standard input"):
        list(FileSet(["-"], Reading(NOW_MS, Format.PARQUET)).records())


def test_a_compressed_file_that_was_cut_off_is_refused_where_it_ends(tmp_path: Path) -> None:
    path = Path(jsonl(tmp_path / "a.jsonl.gz", *(f"{number}" for number in range(1000))))
    path.write_bytes(path.read_bytes()[:-30])
    read = FileSet([str(path)], Reading(NOW_MS))
    with pytest.raises(InvalidRecord, match="it can't be read further"):
        list(read.records())
    assert read.place.number > 0


def test_parquet_in_a_pipe_is_sent_to_a_file_and_not_to_an_option_that_is_refused_next() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"PAR1xxxxPAR1")
    os.close(writing)
    with pytest.raises(InvalidRecord, match="it is Parquet, which can't be read from standard input or a pipe"):
        keys(f"/dev/fd/{reading}")
    os.close(reading)


def test_the_format_that_is_said_wins_over_the_name(tmp_path: Path) -> None:
    path = parquet(tmp_path / "data", "a")
    assert len(list(FileSet([path], Reading(NOW_MS, Format.PARQUET)).records())) == 1
    with pytest.raises(InvalidRecord, match="it is Parquet: say --format parquet"):
        keys(path)


@pytest.mark.parametrize(
    ("time", "when"), [(1_700_000_000, "1970-01-20T16:13:20.000Z"), (1_700_000_000_000_000, "after the year 9999")]
)
def test_timestamps_that_are_no_milliseconds_are_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, time: int, when: str
) -> None:
    path = tmp_path / "a.jsonl"
    lines = [f'{{"key": "a", "value": "", "timestamp": {each}}}' for each in (5, time, time + 1, 1_700_000_000_000)]
    path.write_text("\n".join(lines))
    assert len(list(FileSet([str(path)], Reading(NOW_MS)).records())) == 4
    [told] = caplog.messages
    assert told == (
        "timestamps are milliseconds, and those of 2 of 4 records are not likely to be: "
        f"{time} would be {when}; were they seconds?"
    )


def test_timestamps_of_rows_that_keep_their_offsets_are_looked_at_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = {"key": ["a"] * 3, "value": [""] * 3, "timestamp": [5, 1_700_000_000, 10**14], "offset": range(3)}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    reading = Reading(NOW_MS, columns={"offset": "offset"})
    assert sum(batch.num_rows for batch in FileSet([str(tmp_path / "a.parquet")], reading).batches()) == 3
    assert [told.partition(": ")[0] for told in caplog.messages] == [
        "timestamps are milliseconds, and those of 2 of 3 records are not likely to be"
    ]
