"""A file of another format than Parquet in a topic's table is told as what it is: no damage, and no bug."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from tests.cli.conftest import Run
from tests.table.foreign import current_id, expire, table_of

BOUNDS = {2: bytes(8), 3: bytes(8)}
METRICS: dict[str, Any] = {
    "AVRO": {},  # Iceberg's writer of this format counts nothing
    "ORC": {"lower_bounds": BOUNDS, "upper_bounds": BOUNDS, "null_value_counts": {4: 0, 5: 0, 8: 1}},
}
LOOKS = ["read users", "files users", "topic describe users", "restore users --to jsonl {}", "repair users --adopt"]


@pytest.fixture(params=["AVRO", "ORC"])
def other(request: pytest.FixtureRequest, keptlog: Run, lines: Callable[..., str], home: Path) -> str:
    """A topic to which another program has added a file of this format."""
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"})).code == 0
    table = table_of(home, "users")
    path = Path(table.location().removeprefix("file://")) / "data" / f"0.{request.param.lower()}"
    path.write_bytes(b"rows")
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{path}",
        file_format=FileFormat(request.param),
        partition=Record(0),
        record_count=1,
        file_size_in_bytes=4,
        **METRICS[request.param],
    )
    file.spec_id = table.spec().spec_id
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(file)
    return str(request.param)


@pytest.mark.parametrize("command", LOOKS)
def test_who_meets_it_is_told_the_format_and_who_wrote_it(
    keptlog: Run, other: str, tmp_path: Path, command: str
) -> None:
    told = keptlog(*command.format(tmp_path / "out.jsonl").split())
    assert told.code != 0
    assert f"0.{other.lower()} is in {other}, and segments are Parquet files: another program wrote it; " in told.err
    assert "keptlog repair users brings back what was acknowledged" in told.err
    assert "damaged" not in told.err


def test_a_repair_takes_it_out(keptlog: Run, other: str) -> None:
    assert keptlog("repair", "users", "--yes").code == 0
    assert [row["value"] for row in keptlog("read", "users", "--json").json_lines] == ["1"]


def test_where_no_repair_is_possible_any_more_it_says_so_and_what_helps(keptlog: Run, home: Path, other: str) -> None:
    current = current_id(home, "users")
    earlier = [each.snapshot_id for each in table_of(home, "users").snapshots() if each.snapshot_id != current]
    expire(home, *earlier, topic="users")
    told = keptlog("repair", "users", "--dry-run")
    assert told.code != 0
    assert f"is in {other}, and segments are Parquet files: another program wrote it; no repair can bring" in told.err
    assert "put it right with the program that wrote it" in told.err
