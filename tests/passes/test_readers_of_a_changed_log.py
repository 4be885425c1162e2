"""A reader of a log that somebody else has changed gets nothing, and stays where he is, until it is repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.home import new_id
from keptlog.passes.readers import Readers
from tests.passes.story import SETTINGS, Story, T
from tests.table.foreign import current_id, delete_rows, roll_back


class Scene(Story):
    """A log of three records, the second a tombstone, and a reader who has read none of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.append(("a", "1"))
        self.first = current_id(self.home, T)
        self.append(("a", None), ("b", "1"))
        self.readers.add(T, "search", now_ms=self.now_ms)

    @property
    def readers(self) -> Readers:
        return Readers(self.real.store, new_id)

    def read(self) -> list[int]:
        return [record.offset for _, record in self.readers.read(T, "search")]

    def position(self) -> int:
        standing = self.readers.standing(T, "search")
        assert standing
        return standing[1].of(0)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, SETTINGS)


def test_what_a_rollback_hides_is_not_passed_over_and_read_after_the_repair(scene: Scene) -> None:
    roll_back(scene.home, scene.first, T)
    with pytest.raises(LogCorrupt, match="was rolled back from"):
        scene.read()
    assert scene.position() == 0
    scene.repair()
    assert scene.read() == [0, 1, 2]


def test_nor_is_what_another_program_has_deleted(scene: Scene) -> None:
    delete_rows(scene.home, "offset = 1", T)
    with pytest.raises(LogCorrupt, match="another program changed it"):
        scene.read()
    assert scene.position() == 0
    scene.repair()
    assert scene.read() == [0, 1, 2]


def test_who_reads_by_other_means_can_not_say_that_he_has_read_it(scene: Scene) -> None:
    roll_back(scene.home, scene.first, T)
    with pytest.raises(LogCorrupt, match="was rolled back from"):
        scene.readers.commit(T, "search", {0: 3})
    assert scene.position() == 0
    scene.repair()
    scene.readers.commit(T, "search", {0: 3})
    assert scene.read() == []


def test_a_rollback_between_the_looks_gives_what_was_there(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read and what is stored are of one snapshot, and that one was keptlog's."""
    look = Readers._look  # the second look

    def late(readers: Readers, *what: str) -> object:
        monkeypatch.setattr(Readers, "_look", look)
        roll_back(scene.home, scene.first, T)
        return look(readers, *what)

    monkeypatch.setattr(Readers, "_look", late)
    assert scene.read() == [0, 1, 2]
    assert scene.position() == 3
