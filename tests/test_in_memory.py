"""Tests write into memory where there is room, and where TMPDIR says if somebody has set it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from tests import in_memory


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    monkeypatch.setattr(in_memory, "SHARED_MEMORY", tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def room_of(free_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(free_bytes, 0, free_bytes))


def test_a_folder_that_somebody_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    room_of(1 << 40, monkeypatch)
    assert in_memory.folder_in_memory() is None


def test_where_there_is_little_room_files_lie_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR")
    room_of(64 << 20, monkeypatch)
    assert in_memory.folder_in_memory() is None


def test_all_else_is_written_to_memory_and_gone_with_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TMPDIR")
    room_of(1 << 40, monkeypatch)
    folder = in_memory.folder_in_memory()
    assert folder
    assert Path(tempfile.mkdtemp()).parent == Path(folder.name)
    folder.cleanup()
    assert not list(tmp_path.iterdir())
