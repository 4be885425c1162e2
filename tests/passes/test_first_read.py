"""A registered reader who stops in his first read has a state, and no position: what goes then is told to him too."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from keptlog.errors import TombstonesMissed
from keptlog.home import new_id
from tests.passes.test_readers import TOPIC, Scene


def test_who_stopped_in_his_first_read_is_told_what_went_meanwhile_too(tmp_path: Path) -> None:
    """He had no position yet. He began anew on top of what he had taken, and kept a deleted key for ever."""
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1"))
    assert [record.offset for _, record in islice(scene.readers.read(TOPIC, "search"), 1)] == [0]
    assert scene.readers.list(now_ms=scene.now_ms)[0].position == 0
    scene.after(1).append(("a", None))
    scene.after(1).clean()
    scene.after(8 * 24).clean()
    assert scene.tombstones() == []
    with pytest.raises(TombstonesMissed, match="1 tombstone between offsets 2 and 2 of users-0 went"):
        scene.read()
    scene.readers.add(TOPIC, "search", now_ms=scene.now_ms, start_over=True)
    assert scene.read() == [(1, b"1")]


def test_so_is_he_where_records_went_from_the_head_of_the_log(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1"))
    next(scene.readers.read(TOPIC, "search"))
    scene.store.delete_records(scene.store.logs(TOPIC)[0].topic_partition, 2, new_id())
    assert scene.readers.list(now_ms=scene.now_ms)[0].missed
    with pytest.raises(TombstonesMissed, match="at offset 0 of users-0, whose records below 2 were removed"):
        scene.read()


def test_who_stopped_in_his_first_read_gets_all_of_it_again_if_nothing_went(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1"))
    next(scene.readers.read(TOPIC, "search"))
    assert scene.read() == [(0, b"1"), (1, b"1")]
    assert scene.read() == []


def test_who_found_a_log_empty_and_comes_after_its_head_went_has_missed_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    assert scene.read() == []
    scene.append(("a", "1"), ("b", "1"))
    scene.store.delete_records(scene.store.logs(TOPIC)[0].topic_partition, 1, new_id())
    assert scene.read() == [(1, b"1")]
