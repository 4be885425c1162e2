"""A reader whose topic is deleted while he reads is told so, and leaves no position in a folder that nobody owns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import StalePlan, StorageUnavailable, UnknownTopic
from keptlog.table.catalogs.catalog import EmbeddedCatalog, open_catalog
from keptlog.table.doctor.unowned import unowned_folders
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.reading.readers import PositionFiles
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
