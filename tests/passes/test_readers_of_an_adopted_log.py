"""A reader who has not met the tombstones that an adoption gives up is told in its commit, and starts over."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import TombstonesMissed
from keptlog.home import new_id
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.readers import Readers
from tests.passes.story import LOG, SETTINGS, Story, T
from tests.table.foreign import current_id, delete_rows, expire, set_properties, update_rows


class Scene(Story):
    """The reader has read two values; what came since is a tombstone and another value."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.append(("a", "1"), ("c", "1"))
        self.readers.add(T, "search", now_ms=self.now_ms)
        assert self.read() == [0, 1]
        self.first = current_id(self.home, T)
        self.append(("c", None), ("d", "1"))

    @property
    def readers(self) -> Readers:
        return Readers(self.real.store, new_id)

    def read(self, name: str = "search") -> list[int]:
        return [record.offset for _, record in self.readers.read(T, name)]

    def missed(self) -> str | None:
        [standing] = self.readers.list([T], now_ms=self.now_ms)
        return standing.missed


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, SETTINGS)


def test_who_is_behind_a_tombstone_that_another_program_deleted_is_told(scene: Scene) -> None:
    delete_rows(scene.home, "offset = 2", T)
    assert scene.repair(adopt=True).lost == {LOG: ((2, 2),)}
    told = f"1 tombstone between offsets 2 and 2 of t-0 went at {iso_time(scene.now_ms)}"
    assert scene.missed() == told
    with pytest.raises(TombstonesMissed, match=told):
        scene.read()
    scene.readers.add(T, "search", now_ms=scene.now_ms, start_over=True)
    assert scene.read() == [0, 1, 3]


def test_so_is_who_is_behind_one_that_was_rolled_back(scene: Scene) -> None:
    scene.append(("e", None))
    scene.roll_back(scene.first)
    assert scene.repair(adopt=True).lost == {LOG: ((2, 4),)}
    assert scene.missed() == f"2 tombstones between offsets 2 and 4 of t-0 went at {iso_time(scene.now_ms)}"


def test_or_one_that_was_given_a_value(scene: Scene) -> None:
    update_rows(scene.home, [2], b"changed", T)
    assert scene.repair(adopt=True).lost == {}
    with pytest.raises(TombstonesMissed):
        scene.read()


def test_where_nobody_can_tell_what_is_lost_that_is_said(scene: Scene) -> None:
    last = current_id(scene.home, T)
    scene.roll_back(scene.first)
    expire(scene.home, last, topic=T)
    assert not scene.repair(adopt=True).is_exact
    assert scene.missed() == (
        f"what may have been tombstones between offsets 2 and 3 of t-0 went at {iso_time(scene.now_ms)}"
    )


def test_who_has_met_it_is_not_told_and_nobody_is_for_values(scene: Scene) -> None:
    assert scene.read() == [2, 3]
    scene.append(("e", "1"))
    delete_rows(scene.home, "offset = 2 or offset = 4", T)
    assert scene.repair(adopt=True).lost == {LOG: ((2, 2), (4, 4))}
    assert scene.missed() is None
    assert scene.read() == []


def test_a_registration_that_is_damaged_refuses_no_adoption(scene: Scene) -> None:
    scene.readers.add(T, "other", now_ms=scene.now_ms)
    set_properties(scene.home, {"log.reader.other": "{"}, T)
    delete_rows(scene.home, "offset = 2", T)
    scene.repair(adopt=True)
    scene.readers.remove(T, "other")
    assert scene.missed()
