"""A reader whose topic is deleted while he reads is told so, and leaves no position in a folder that nobody owns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keptlog.errors import StalePlan, StorageUnavailable, UnknownTopic
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
from keptlog.table.doctor.unowned import unowned_folders
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.reading.read import Reader
from keptlog.table.reading.readers import PositionFiles
from keptlog.table.store import LogStore
from tests.logs import open_store
from tests.passes.test_readers import SETTINGS, TOPIC, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1"))
    return scene


def read_on(scene: Scene, meanwhile: Callable[[], object]) -> None:
    records = scene.readers.read(TOPIC, "search")
    next(records)
    meanwhile()
    list(records)


def begin(scene: Scene, meanwhile: Callable[[], object]) -> None:
    records = scene.readers.read(TOPIC, "search")
    meanwhile()
    next(records)


def commit(scene: Scene, meanwhile: Callable[[], object]) -> None:
    before_he_writes(meanwhile)
    scene.readers.commit(TOPIC, "search", {0: 1})


_waiting: list[Callable[[], object]] = []


def before_he_writes(happens: Callable[[], object]) -> None:
    _waiting.append(happens)


@pytest.fixture(autouse=True)
def _between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what waits happen between a reader's last look and his first write."""
    real = PositionFiles.write

    def write(files: PositionFiles, *what: object) -> None:
        if _waiting:
            _waiting.pop()()
        real(files, *what)  # type: ignore[arg-type]

    monkeypatch.setattr(PositionFiles, "write", write)


def positions(scene: Scene) -> list[Path]:
    return sorted((scene.home / "warehouse").rglob("receipts/readers/**/*.json"))


WAYS = [read_on, begin, commit]


@pytest.mark.parametrize("go_on", WAYS)
def test_he_is_told_that_there_is_no_such_topic_and_leaves_nothing(
    scene: Scene, go_on: Callable[[Scene, Callable[[], object]], None]
) -> None:
    with pytest.raises(UnknownTopic, match="no topic 'users'"):
        go_on(scene, lambda: open_store(scene.home).delete_topic(TOPIC, scene.now_ms))
    assert positions(scene) == []
    assert unowned_folders(scene.store) == []


@pytest.mark.parametrize("go_on", WAYS)
def test_he_leaves_nothing_in_a_topic_that_was_made_anew_either(
    scene: Scene, go_on: Callable[[Scene, Callable[[], object]], None]
) -> None:
    def anew() -> None:
        other = open_store(scene.home)
        other.delete_topic(TOPIC, scene.now_ms)
        other.create_topic(TOPIC, 1, SETTINGS)

    with pytest.raises(StalePlan, match="was deleted and created again meanwhile"):
        go_on(scene, anew)
    assert positions(scene) == []


def test_what_he_has_read_stays_his_where_another_program_has_renamed_the_topic(scene: Scene) -> None:
    """It may get its name back, and he has the records."""
    catalog = open_catalog(scene.home)
    catalog.create_namespace("theirs")
    read_on(scene, lambda: catalog.rename_table((NAMESPACE, TOPIC), ("theirs", "users")))
    catalog.rename_table(("theirs", "users"), (NAMESPACE, TOPIC))
    assert scene.read() == []


def test_so_it_does_where_the_catalog_can_not_say_whether_the_topic_is_there(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would have him throw away what he has taken, and he would not get it again."""

    def down(*_: object) -> None:
        raise OSError("the catalog is away")

    with monkeypatch.context() as patch:
        read_on(scene, lambda: patch.setattr(EmbeddedCatalog, "load_table", down))
        with pytest.raises(StorageUnavailable):
            scene.store.load_table(TOPIC)
    assert scene.read() == []


def test_who_looks_at_one_topic_and_then_at_another_of_its_name_gets_all_of_that(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the log that he had read became his position in the other one, whose first records he never got."""
    scene.store.create_topic("new", 2, SETTINGS)
    scene.readers.add("new", "search", now_ms=scene.now_ms)
    records = [NewRecord(b"k", str(number).encode(), scene.now_ms, 0) for number in range(3)]
    scene.store.append("new", records, new_id(), scene.now_ms)

    def reader(store: LogStore, *what: Any, **how: Any) -> Reader:
        monkeypatch.setattr(LogStore, "reader", real)
        found = real(store, *what, **how)
        catalog = open_catalog(scene.home)
        catalog.rename_table((NAMESPACE, TOPIC), (NAMESPACE, "old"))
        catalog.rename_table((NAMESPACE, "new"), (NAMESPACE, TOPIC))
        return found

    real = LogStore.reader
    monkeypatch.setattr(LogStore, "reader", reader)
    with pytest.raises(StalePlan, match="was deleted and created again meanwhile"):
        scene.read()
    assert scene.read() == [(0, b"0"), (1, b"1"), (2, b"2")]
