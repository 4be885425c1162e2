"""What is read ahead is held once, and never more than there is room for."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from keptlog.storage.files import HELD_BYTES, SMALL_BYTES
from keptlog.storage.read_ahead import asked_at_once
from tests.local_log import LocalFiles


@dataclass(frozen=True)
class Counted(LocalFiles):
    opened: list[str] = field(default_factory=list)

    def open_input(self, path: str, size_bytes: int | None = None) -> pa.NativeFile:
        self.opened.append(path)
        return super().open_input(path, size_bytes)


@pytest.mark.parametrize("size_bytes", [SMALL_BYTES, SMALL_BYTES // 3])
def test_no_more_is_held_than_there_is_room_for(tmp_path: Path, size_bytes: int) -> None:
    inputs = [(str(tmp_path / f"{number:03d}"), size_bytes) for number in range(HELD_BYTES // size_bytes + 3)]
    for path, size in inputs:
        Path(path).touch()
        os.truncate(path, size)
    ahead_of_time = inputs[: HELD_BYTES // size_bytes]
    files = Counted()
    before_bytes = pa.total_allocated_bytes()
    with asked_at_once(files, inputs, 4) as ahead:
        for path, size in [*ahead_of_time * 2, *inputs[-2:]]:
            assert ahead.open_input(path, size).size() == size
        assert pa.total_allocated_bytes() - before_bytes < HELD_BYTES + size_bytes
    assert sorted(files.opened) == [path for path, _ in [*ahead_of_time, *inputs[-2:]]]


def test_what_is_not_small_is_opened_when_it_is_asked_for(tmp_path: Path) -> None:
    files = Counted()
    with asked_at_once(files, [(str(tmp_path / "large"), SMALL_BYTES + 1)], 4) as ahead:
        assert ahead is files
    assert files.opened == []
