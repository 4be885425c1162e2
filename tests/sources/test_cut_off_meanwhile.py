"""A file of lines that is cut off while it is read is not appended in part."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from keptlog.errors import InvalidRecord
from keptlog.log.record import NewRecord
from keptlog.sources.files import FileSet, Reading

NOW_MS = 1_700_000_000_000
MANY = 50_000


def lines(first: int, end: int) -> bytes:
    return b"".join(json.dumps({"key": f"{n:09}", "value": f"{n:09}"}).encode() + b"\n" for n in range(first, end))


def read_while_cut_off(path: Path, left_bytes: int) -> list[NewRecord]:
    """Read a file that loses its end once its first record was read."""
    records = FileSet([str(path)], Reading(NOW_MS)).records()
    first = next(records)
    os.truncate(path, left_bytes)
    return [first, *records]


@pytest.mark.parametrize("left_lines", [0, 1, MANY - 1])
def test_it_is_refused_though_it_ends_in_a_whole_line(tmp_path: Path, left_lines: int) -> None:
    path = tmp_path / "users.jsonl"
    path.write_bytes(lines(0, MANY))
    with pytest.raises(InvalidRecord, match="it became shorter while it was read; nothing was appended"):
        read_while_cut_off(path, len(lines(0, left_lines)))


def test_so_is_a_packed_one_that_ends_with_a_part_that_was_packed_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl.gz"
    first = gzip.compress(lines(0, MANY))
    path.write_bytes(first + gzip.compress(lines(MANY, 2 * MANY)))
    with pytest.raises(InvalidRecord, match="it became shorter while it was read; nothing was appended"):
        read_while_cut_off(path, len(first))


def test_one_that_grows_meanwhile_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "users.jsonl"
    path.write_bytes(lines(0, MANY))
    records = FileSet([str(path)], Reading(NOW_MS)).records()
    next(records)
    with path.open("ab") as file:
        file.write(lines(MANY, MANY + 1))
    assert len(list(records)) == MANY
