"""The files that a folder means: all that hold records, in the order in which they were written, or a refusal."""

from __future__ import annotations

import gzip
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from keptlog.errors import InvalidConfig
from keptlog.sources.files import FileSet, Reading, files_below
from keptlog.sources.folder_files import in_order

NOW_MS = 1_700_000_000_000
LINE = '{"key": "k", "value": ""}\n'


def put(path: Path, content: str | bytes = LINE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def names(folder: Path) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in files_below([str(folder)])]


def test_the_last_file_that_a_dataset_was_written_to_has_the_latest_values(tmp_path: Path) -> None:
    rows = pa.table({"key": ["k"] * 12, "value": [str(number) for number in range(12)]})
    ds.write_dataset(rows, tmp_path, format="parquet", max_rows_per_file=1, max_rows_per_group=1)
    records = FileSet(files_below([str(tmp_path)]), Reading(NOW_MS)).records()
    assert [record.value for record in records] == [b"%d" % number for number in range(12)]


@pytest.mark.parametrize(
    "ordered",
    [
        ["changes-2.jsonl", "changes-10.jsonl", "changes-100.jsonl"],
        ["day=8/a.jsonl", "day=9/a.jsonl", "day=10/a.jsonl", "day=11/a.jsonl"],
        ["day=1/part-2.jsonl", "day=1/part-10.jsonl", "day=1x/part-1.jsonl"],
        ["part-0.jsonl", "part-1.jsonl", "part-9of10.jsonl", "part-10of10.jsonl"],
        ["part-08.jsonl", "part-09.jsonl", "part-10.jsonl", "part-99.jsonl", "part-100.jsonl"],
        ["LOAD00000009.jsonl", "LOAD0000000A.jsonl", "LOAD0000000F.jsonl", "LOAD00000010.jsonl", "LOAD0000001A.jsonl"],
        ["01HQ10K4.jsonl", "01HQ9K44.jsonl", "01HQ9ZK4.jsonl", "01HQA0K4.jsonl"],
        ["018f3599-7c1e.jsonl", "018f35aa-7123.jsonl", "018f3c00-79ff.jsonl", "019012ab-7000.jsonl"],
        [f"part-0-018f3599-{ms}-7d10-8a2f-0123456789ab.jsonl" for ms in ("0fff", "12ff", "1c00", "9fff", "a000")],
        [f"1f0d{ms}-9c1e-6d10-8a2f-0123456789ab.jsonl" for ms in ("12ff", "1c00", "a000")],
        ["01hq10k4000000000000000000.jsonl", "01hq9k44000000000000000000.jsonl"],
        [f"{second}1e6d108a2f012345.jsonl" for second in ("659fffff", "65a00000", "66000010", "6600001a")],
        [f"1f1d{ms}9c1e6d108a2f0123456789ab.json" for ms in ("12ff", "1c00", "a000", "b999")],
        [f"2Art{second}QWERTYasdfghjklzxcv.jsonl" for second in ("10xy", "9xyz", "Axyz", "z10y")],
        [f"{day}customerchangelog{number}.jsonl" for day in (20261129, 20261130) for number in (9, 10, 99, 100)],
        [f"20261130T071820batchnumber{number}.jsonl" for number in (9, 10, 11)],
        [f"{number}accountsinalphabetorder.jsonl" for number in (9, 10, 1000, 10000)],
        *([f"{10**digits - 1}.jsonl", f"{10**digits}.jsonl"] for digits in (23, 24, 26, 27, 31, 32)),
        ["173295000000000000099999.jsonl", "1732950000000000000100000.jsonl"],
        ["worker0batch0.jsonl", "worker0batch2.jsonl", "worker0batch10.jsonl", "worker1batch2.jsonl"],
        ["t00p2.jsonl", "t00p10.jsonl", "t01p2.jsonl", "t01p10.jsonl", "t10p2.jsonl"],
        ["a.jsonl", "a1.jsonl", "b.jsonl"],
        ["01.jsonl", "1.jsonl", "1a.jsonl", "x²٣.jsonl"],
        [f"{'9' * 100}.jsonl", f"1{'0' * 100}.jsonl"],
        ["2024-01-31T23.jsonl", "2024-02-01T00.jsonl", "2024-02-01T01.jsonl"],
    ],
)
def test_numbers_in_names_of_a_folder_count_as_numbers(tmp_path: Path, ordered: list[str]) -> None:
    for name in random.Random(7).sample(ordered, len(ordered)):
        put(tmp_path / name)
    assert names(tmp_path) == ordered


def test_the_order_of_very_many_files_takes_little_memory() -> None:
    """With an object for each character 100 000 files took a gigabyte."""
    paths = [Path(f"year=2026/day=30/part-{number:05}-{number:032x}-c000.snappy.parquet") for number in range(1000)]
    tracemalloc.start()
    try:
        kept = [in_order(path) for path in paths]
        assert tracemalloc.get_traced_memory()[0] < 2**20
    finally:
        tracemalloc.stop()
    assert len(kept) == len(paths)


def test_files_that_are_named_go_in_as_they_were_named(tmp_path: Path) -> None:
    given = [str(put(tmp_path / name)) for name in ("part-10.jsonl", "part-2.jsonl")]
    assert files_below(given) == given


@pytest.mark.parametrize(
    ("mark", "what"),
    [
        ("_delta_log/00000000000000000000.json", "a Delta table"),
        (".hoodie/hoodie.properties", "a Hudi table"),
        ("_spark_metadata/0", "the folder of a Spark stream"),
        ("metadata/v1.metadata.json", "an Iceberg table"),
        ("metadata/00000-a.gz.metadata.json", "an Iceberg table"),
    ],
)
def test_a_folder_of_a_table_is_refused_because_not_all_of_its_files_count(
    tmp_path: Path, mark: str, what: str
) -> None:
    table = tmp_path / "exports" / "users"
    file = put(table / "data" / "a.jsonl")
    put(table / mark, "{}")
    for folder in (tmp_path, table):
        with pytest.raises(InvalidConfig) as caught:
            files_below([str(folder)])
        assert f"{table} is {what}, and its folder may keep files that do not count" in str(caught.value)
    assert files_below([str(file)]) == [str(file)]


def test_the_files_of_an_iceberg_table_are_refused_also_where_only_their_folder_is_given(tmp_path: Path) -> None:
    put(tmp_path / "data" / "a.jsonl")
    put(tmp_path / "metadata" / "v1.metadata.json", "{}")
    with pytest.raises(InvalidConfig, match=f"{tmp_path} is an Iceberg table"):
        files_below([str(tmp_path / "data")])


def test_what_can_not_be_listed_beside_a_folder_called_data_leaves_no_records_out(tmp_path: Path) -> None:
    put(tmp_path / "data" / "a.jsonl")
    (tmp_path / "metadata").symlink_to("metadata")
    assert names(tmp_path / "data") == ["a.jsonl"]


def test_a_folder_called_metadata_is_one_like_others(tmp_path: Path) -> None:
    put(tmp_path / "metadata" / "a.jsonl")
    put(tmp_path / "metadata" / "2026-11-30.metadata.json")
    put(tmp_path / "metadata" / "users.metadata.json")
    kept = ["2026-11-30.metadata.json", "a.jsonl", "users.metadata.json"]
    assert names(tmp_path) == [f"metadata/{name}" for name in kept]


@pytest.mark.parametrize("name", ["00003-2f6a.metadata.json", "v12.gz.metadata.json", "v1.metadata.json.gz"])
def test_one_that_has_a_metadata_file_of_icebergs_is_of_a_table(tmp_path: Path, name: str) -> None:
    put(tmp_path / "data" / "a.jsonl")
    put(tmp_path / "metadata" / name, "{}")
    with pytest.raises(InvalidConfig, match=f"{tmp_path} is an Iceberg table"):
        files_below([str(tmp_path)])


def test_a_file_that_can_not_be_read_is_refused_only_if_its_name_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Path.open

    def opened(path: Path, *how: Any, **more: Any) -> Any:
        if path.name in {"README.md", "000000_0", "a.jsonl.1"}:
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, *how, **more)

    monkeypatch.setattr(Path, "open", opened)
    put(tmp_path / "a.jsonl")
    (tmp_path / "README.md").touch()
    assert names(tmp_path) == ["a.jsonl"]
    for name in ("000000_0", "a.jsonl.1"):
        (tmp_path / name).touch()
        with pytest.raises(InvalidConfig, match=rf"{name} can't be read \(Permission denied\)"):
            files_below([str(tmp_path)])
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("e.pq", b"", "seems to be Parquet, but its name does not end with .parquet"),
        ("000000_0", b"PAR1rest", "seems to be Parquet, but its name does not end with .parquet"),
        ("export.snappy", b"PAR1rest", "seems to be Parquet, but its name does not end with .parquet"),
        ("day=1/e.Avro", b"", "seems to be Avro, which is not taken"),
        ("users+0+0000000000", b"Obj\x01rest", "seems to be Avro, which is not taken"),
        ("e.csv.gz", b"", "seems to be CSV, which is not taken"),
        ("e.csv.zst", b"", "seems to be CSV, which is not taken"),
        ("e.orc", b"", "seems to be ORC, which is not taken"),
        ("000000_0", b"ORC\nrest", "seems to be ORC, which is not taken"),
        ("a.jsonl.1", LINE, "seems to be JSON lines, but its name does not end with .jsonl"),
        ("a.JSON.bak", f"\ufeff\n{LINE}", "seems to be JSON lines, but its name does not end with .jsonl"),
        ("a.jsonl.2026-11-30", "null\n", "seems to be JSON lines, but its name does not end with .jsonl"),
        ("a.jsonl-20261130.gz", gzip.compress(b"{}"), "seems to be JSON lines, but its name does not end with .jsonl"),
        ("a.jsonl.2.zst", b"", "is compressed otherwise than with gzip"),
    ],
)
def test_a_file_of_records_is_not_left_out_because_of_its_name(
    tmp_path: Path, name: str, content: str | bytes, why: str
) -> None:
    put(tmp_path / "a.jsonl")
    put(tmp_path / "README.md", "P")
    put(tmp_path / "a.jsonl.md5", "d41d8cd98f00b204e9800998ecf8427e")
    put(tmp_path / "a.jsonl.0", "")
    put(tmp_path / "b.avsc", "{}")
    put(tmp_path / "_marks" / "x.csv")
    assert names(tmp_path) == ["a.jsonl"]
    put(tmp_path / name, content)
    with pytest.raises(InvalidConfig) as caught:
        files_below([str(tmp_path)])
    assert f"{tmp_path / name} {why}" in str(caught.value)
    mend = "rename it if it is whole, " if "Parquet," in why else ""
    mend = "write it as JSON lines or Parquet, " if "not taken" in why else mend
    assert f"would be left out: {mend}take it away" in str(caught.value)


def test_a_partition_of_a_column_that_begins_with_an_underscore_is_no_mark(tmp_path: Path) -> None:
    for name in ("_day=8/a.jsonl", "_day=10/a.jsonl", "_temporary/a.jsonl", ".day=9/a.jsonl", "_day=8/_SUCCESS"):
        put(tmp_path / name)
    assert names(tmp_path) == ["_day=8/a.jsonl", "_day=10/a.jsonl"]


def test_what_is_no_file_is_not_looked_into(tmp_path: Path) -> None:
    """Nobody writes into the pipe, and a look would never end."""
    put(tmp_path / "a.jsonl")
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.csv")
    assert names(tmp_path) == ["a.jsonl"]


def test_a_link_that_leads_nowhere_is_not_left_out_either(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl")
    (tmp_path / "b.csv").symlink_to("gone.csv")
    with pytest.raises(InvalidConfig, match=r"b\.csv seems to be CSV"):
        files_below([str(tmp_path)])
