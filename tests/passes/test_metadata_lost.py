"""An observer sees that the files which say what a topic holds are lost, cut off or back, also without a commit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.passes.observer import CHECKING_MS, Observer, Overview
from keptlog.table.io.files import local_path
from keptlog.table.store import LogStore
from tests.passes.conftest import NOW_MS

KINDS = ["metadata file", "manifest list", "manifest"]


def file_of(store: LogStore, topic: str, kind: str) -> Path:
    table = store.load_table(topic)
    snapshot = table.current_snapshot()
    assert snapshot
    paths = [table.metadata_location, snapshot.manifest_list, snapshot.manifests(table.io)[0].manifest_path]
    path = local_path(paths[KINDS.index(kind)])
    assert path
    return Path(path)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("harm", [Path.unlink, cut_off])
def test_a_file_that_is_lost_or_cut_off_since_is_seen_at_the_next_look_and_when_it_is_back(
    store: LogStore, kind: str, harm: Callable[[Path], None]
) -> None:
    """The sensors judged the topic as it was, for as long as nobody committed; no commit can be made to it."""
    observer = Observer(store, lambda: 0)
    assert not observer.look(NOW_MS).unreadable
    path = file_of(store, "b", kind)
    content = path.read_bytes()

    harm(path)
    for _ in range(2):
        seen = observer.look(NOW_MS)
        assert str(path) in str(seen.unreadable["b"])
        assert logs(seen) == ["a-0", "c-0"]

    path.write_bytes(content)
    seen = observer.look(NOW_MS)
    assert (seen.unreadable, logs(seen)) == ({}, ["a-0", "b-0", "c-0"])


def test_while_nothing_is_lost_no_topic_is_read_again(store: LogStore, looked_at: list[str]) -> None:
    observer = Observer(store, lambda: 0)
    observer.look(NOW_MS)
    looked_at.clear()
    observer.look(NOW_MS)
    assert looked_at == []


def test_a_slow_disk_is_asked_about_some_topics_at_each_look_and_about_all_in_turn(store: LogStore) -> None:
    observer = Observer(store, lambda: 0)
    observer.look(NOW_MS)
    for topic in "abc":
        file_of(store, topic, "manifest").unlink()
    seen_lost: set[str] = set()
    for _ in range(3):
        clock = itertools.count(0, CHECKING_MS // 2 + 1)
        observer.monotonic_ms = lambda clock=clock: next(clock)  # type: ignore[misc]
        before = set(seen_lost)
        seen_lost |= observer.look(NOW_MS).unreadable.keys()
        assert len(seen_lost - before) == 1
    assert seen_lost == set("abc")


def logs(seen: Overview) -> list[str]:
    return [str(each.log.topic_partition) for each in seen.assessments]
