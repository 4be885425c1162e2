"""A reader who registers while an earlier registration is being forgotten keeps what he stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.prefixes import READER_PREFIX
from tests.passes.test_readers import TOPIC, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1"))
    scene.read()
    return scene


def start_over(scene: Scene) -> None:
    scene.readers.add(TOPIC, "search", now_ms=scene.now_ms, start_over=True)


def remove(scene: Scene) -> None:
    scene.readers.remove(TOPIC, "search")


def positions(scene: Scene) -> list[int | None]:
    return [each.position for each in scene.readers.list(now_ms=scene.now_ms)]


@pytest.mark.parametrize("act", [start_over, remove])
@pytest.mark.parametrize("is_listed", [False, True])
def test_what_another_one_has_read_since_stays(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, act: Callable[[Scene], None], *, is_listed: bool
) -> None:
    """It was deleted: whatever was not of one's own registration was."""
    really = TableFiles.list

    def slowly(files: TableFiles, folder: str) -> Iterator[StoredFile]:
        is_registered = READER_PREFIX + "search" in scene.store.load_table(TOPIC).properties
        if not folder.endswith("/readers/search") or is_registered != (act is start_over):
            return really(files, folder)
        monkeypatch.setattr(TableFiles, "list", really)
        before = [*really(files, folder)]
        start_over(scene)
        assert scene.read() == [(0, b"1"), (1, b"1")]
        return iter([*really(files, folder)] if is_listed else before)

    monkeypatch.setattr(TableFiles, "list", slowly)
    act(scene)
    assert TableFiles.list is really
    assert positions(scene) == [2, 0]
    assert scene.read() == []
