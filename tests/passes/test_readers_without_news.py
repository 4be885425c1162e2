"""A reader who asks and gets nothing new costs one listing of his own positions, and no write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles
from tests.passes.test_readers import TOPIC, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    for partition in range(2):
        scene.append(("a", "1"), partition=partition)
    scene.readers.add(TOPIC, "export", now_ms=scene.now_ms)
    assert len(scene.read("export")) == len(scene.read()) == 2
    return scene


@pytest.fixture
def listed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What each listing of positions gave from here on."""
    found: list[list[str]] = []
    list_files = TableFiles.list

    def noted(files: TableFiles, folder: str) -> Iterator[StoredFile]:
        there = list(list_files(files, folder))
        if "/receipts/readers" in folder:
            found.append([each.path for each in there])
        return iter(there)

    monkeypatch.setattr(TableFiles, "list", noted)
    return found


def positions(scene: Scene) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in scene.home.rglob("receipts/readers/search/*/*.json")}


def test_he_writes_nothing_and_lists_his_own_positions_once(scene: Scene, listed: list[list[str]]) -> None:
    """It was a write and a listing for each partition, and a listing of the positions of all readers."""
    before = positions(scene)
    assert scene.read() == []
    assert (positions(scene), len(before)) == (before, 2)
    assert [len(each) for each in listed] == [2]
    assert all("/search/" in path for each in listed for path in each)


def test_only_the_position_that_moves_is_written(scene: Scene) -> None:
    before = positions(scene)
    scene.append(("b", "1"), partition=1)
    assert scene.read() == [(1, b"1")]
    after = positions(scene)
    assert after.keys() == {"0-1.json", "1-2.json"}
    assert after["0-1.json"] == before["0-1.json"]
