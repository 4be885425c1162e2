"""A home that was moved keeps the path that its files are named by; where an earlier keptlog did not, both are told."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.passes.purge import Purger
from keptlog.table.catalogs import embedded, embedded_catalog, home_location
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.embedded import warehouse_of
from keptlog.table.catalogs.home_location import elsewheres, which_home, why_elsewhere
from keptlog.table.store import LogStore
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, create, forget_id, new_id, new_records, store_at
from tests.table.test_home import content, forgotten

OTHER = "another"


def moved(home: Path, to: Path) -> Path:
    """The home at its new path, with a link at the old one."""
    to.parent.mkdir(exist_ok=True)
    home.rename(to)
    home.symlink_to(to)
    return to


def of_an_earlier_keptlog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that was moved, in which a topic was made later, named by the path by which the home was opened."""
    append_each(create(tmp_path / "home"), [("k", "1")])
    disk = moved(tmp_path / "home", tmp_path / "disk1" / "home")
    with monkeypatch.context() as earlier:
        earlier.setattr(embedded_catalog, "warehouse_named", warehouse_of)
        store_at(disk).create_topic(OTHER, 1, COMPACTED)
    assert location(disk, OTHER) == f"file://{disk}/warehouse/keptlog/{OTHER}"
    append_to(store_at(disk), OTHER)
    return disk


def append_to(store: LogStore, topic: str) -> None:
    store.append(topic, new_records(("k", "1")), new_id(), NOW_MS)


def location(home: Path, *name: str) -> str:
    namespace = name[:-1] or ("keptlog",)
    return open_catalog(home).load_table((*namespace, name[-1])).location()


def ends(store: LogStore) -> dict[str, int]:
    return {topic: store.logs(topic)[0].log_end_offset for topic in store.topics()}


def test_what_is_made_in_a_home_that_was_moved_is_named_by_the_path_that_it_had(tmp_path: Path) -> None:
    first = tmp_path / "home"
    create(first)
    disk = moved(first, tmp_path / "disk1" / "home")
    store_at(disk).create_topic(OTHER, 1, COMPACTED)
    store_at(disk).delete_topic(TOPIC, NOW_MS)
    Purger(store_at(disk)).purge(now_ms=NOW_MS)

    assert location(disk, OTHER) == f"file://{first}/warehouse/keptlog/{OTHER}"


def test_a_second_move_needs_the_first_link_alone(tmp_path: Path) -> None:
    first = tmp_path / "home"
    append_each(create(first), [("k", "1")])
    disk = moved(first, tmp_path / "disk1" / "home")
    store_at(disk).create_topic(OTHER, 1, COMPACTED)
    first.unlink()
    (tmp_path / "disk2").mkdir()
    second = disk.rename(tmp_path / "disk2" / "home")
    first.symlink_to(second)

    append_to(store_at(second), OTHER)
    append_to(store_at(second), TOPIC)

    assert ends(store_at(second)) == {TOPIC: 2, OTHER: 1}


def test_an_older_home_that_was_moved_remembers_the_path_that_its_tables_tell(tmp_path: Path) -> None:
    first = tmp_path / "home"
    append_each(create(first), [("k", "1")])
    forgotten(first)
    disk = moved(first, tmp_path / "disk1" / "home")
    append_to(store_at(disk), TOPIC)
    store_at(disk).create_topic(OTHER, 1, COMPACTED)

    first.unlink()

    assert location_of_home(disk) == [first]
    assert str(why_elsewhere(disk)).startswith(f"home {disk} was moved from {first}, and its catalog names all files")


def location_of_home(home: Path) -> list[Path]:
    return [each.made_at for each in elsewheres(home)]


def test_a_home_of_two_paths_goes_on_while_both_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = of_an_earlier_keptlog(tmp_path, monkeypatch)
    for path in (disk, tmp_path / "home"):
        store = store_at(path)
        assert store.read_only is None
        append_to(store, OTHER)
        append_to(store, TOPIC)
        Purger(store).purge(now_ms=NOW_MS)
    assert ends(store_at(disk)) == {TOPIC: 3, OTHER: 3}


def test_a_home_of_two_paths_that_was_moved_is_told_by_the_path_that_has_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, disk = tmp_path / "home", of_an_earlier_keptlog(tmp_path, monkeypatch)
    (tmp_path / "disk2").mkdir()
    second = disk.rename(tmp_path / "disk2" / "home")
    assert location_of_home(second) == [first, disk]
    first.unlink()
    first.symlink_to(second)

    told = (
        f"home {second} was moved from {disk}, and its catalog names the files of {OTHER} by their paths there: "
        f"nothing may be changed; make {disk} a link to {second}"
    )
    for topic in (TOPIC, OTHER):
        with pytest.raises(InvalidConfig) as refused:
            append_to(store_at(second), topic)
        assert str(refused.value) == told
    with pytest.raises(InvalidConfig, match=f"was moved from {disk}"):
        store_at(second).logs(OTHER)
    assert store_at(second).logs(TOPIC)[0].log_end_offset == 1

    disk.symlink_to(second)
    append_to(store_at(second), OTHER)
    append_to(store_at(second), TOPIC)
    assert ends(store_at(second)) == {TOPIC: 2, OTHER: 2}


def test_nothing_is_appended_to_the_copy_in_which_a_topic_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, disk = tmp_path / "home", of_an_earlier_keptlog(tmp_path, monkeypatch)
    second = tmp_path / "disk2" / "home"
    shutil.copytree(disk, second)
    append_to(store_at(disk), OTHER)
    (second / "catalog.db").write_bytes((disk / "catalog.db").read_bytes())  # by an earlier keptlog, through this one
    first.unlink()
    first.symlink_to(second)
    before = content(disk)

    with pytest.raises(InvalidConfig) as refused:
        append_to(store_at(second), OTHER)

    assert str(refused.value) == (
        f"home {second} is a copy of the home at {disk}, and its catalog names the files of {OTHER} there: nothing may "
        f"be changed through it; copy here what is there alone (cp -an {disk}/warehouse/. {second}/warehouse); then "
        f"move what lies there now aside; then make {disk} a link to {second}"
    )
    assert content(disk) == before
    with pytest.raises(InvalidConfig, match=f"is a copy of the home at {first}, and its catalog names the files there"):
        append_to(store_at(disk), OTHER)

    for path in [each for each in disk.rglob("*") if each.is_file()]:
        there = second / path.relative_to(disk)
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, there)
    disk.rename(tmp_path / "aside")
    disk.symlink_to(second)
    append_to(store_at(second), OTHER)
    Purger(store_at(second)).purge(now_ms=NOW_MS)
    assert ends(store_at(second)) == {TOPIC: 1, OTHER: 3}


def test_a_table_of_another_home_that_somebody_took_in_is_no_part_of_this_one(tmp_path: Path) -> None:
    with_a_foreign_table(tmp_path)
    assert store_at(tmp_path / "home").read_only is None
    append_to(store_at(tmp_path / "home"), TOPIC)
    shutil.rmtree(tmp_path / "theirs")
    append_to(store_at(tmp_path / "home"), TOPIC)


@pytest.mark.parametrize("topic", ["warehouse", "keptlog"])
def test_a_copy_of_an_older_home_is_told_whatever_its_topics_are_called(tmp_path: Path, topic: str) -> None:
    original, copy = tmp_path / "warehouse" / "keptlog" / "home", tmp_path / "copy"
    original.mkdir(parents=True)
    store_at(original).create_topic(topic, 1, COMPACTED)
    forget_id(original)
    shutil.copytree(original, copy)
    before = content(original)

    with pytest.raises(InvalidConfig, match=f"is a copy of the home at {original}"):
        append_to(store_at(copy), topic)

    assert content(original) == before
    assert which_home(original)


def test_an_older_home_that_took_in_a_table_of_another_one_is_no_copy_of_that(tmp_path: Path) -> None:
    home = with_a_foreign_table(tmp_path)
    forget_id(home)
    assert why_elsewhere(home) is None
    append_to(store_at(home), TOPIC)


def with_a_foreign_table(tmp_path: Path) -> Path:
    create(tmp_path / "home")
    theirs = store_at(tmp_path / "theirs")
    theirs.create_topic(OTHER, 1, COMPACTED)
    open_catalog(tmp_path / "home").register_table(("keptlog", OTHER), theirs.metadata_locations()[OTHER])
    return tmp_path / "home"


def test_nobody_waits_for_a_home_that_a_table_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = with_a_foreign_table(tmp_path)
    monkeypatch.setattr(embedded, "_LOOK_WAIT_SECONDS", 0)
    with held(tmp_path / "theirs"):
        append_to(store_at(home), TOPIC)
        assert store_at(home).read_only is None


def with_a_foreign_table_in_an_own_folder(tmp_path: Path, *, is_deleted: bool) -> Path:
    """A home with another's table under the name of a topic that it had itself; that one's folder is still there."""
    home, theirs = create(tmp_path / "home"), create(tmp_path / "theirs")
    home.create_topic(OTHER, 1, COMPACTED)
    if is_deleted:
        home.delete_topic(TOPIC, NOW_MS)
        Purger(home).purge(now_ms=NOW_MS)
    else:
        open_catalog(tmp_path / "home").drop_table(("keptlog", TOPIC))  # as another engine does, that leaves the files
    open_catalog(tmp_path / "home").register_table(("keptlog", TOPIC), theirs.metadata_locations()[TOPIC])
    folder = tmp_path / "home" / "warehouse" / "keptlog" / TOPIC / "metadata"
    assert folder.is_dir()
    assert bool(list(folder.glob("*.metadata.json"))) is not is_deleted
    return tmp_path / "home"


@pytest.mark.parametrize("is_deleted", [True, False], ids=["its metadata is gone", "its metadata is left"])
@pytest.mark.parametrize(
    "without", [(), ("theirs",), ("home",), ("home", "theirs")], ids=["both have ids", "not theirs", "not it", "none"]
)
def test_a_table_that_was_taken_in_is_no_part_of_a_home_that_has_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...], *, is_deleted: bool
) -> None:
    home = with_a_foreign_table_in_an_own_folder(tmp_path, is_deleted=is_deleted)
    for each in without:
        forget_id(tmp_path / each)
    monkeypatch.setattr(embedded, "_LOOK_WAIT_SECONDS", 0)

    with held(tmp_path / "theirs"):
        assert why_elsewhere(home) is None
    assert why_elsewhere(home) is None
    append_to(store_at(home), OTHER)


@pytest.mark.parametrize("has_id", [False, True], ids=["none has an id", "the original has one"])
def test_a_copy_is_one_by_its_files_while_nobody_can_ask_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_id: bool
) -> None:
    original, copy = older_copy(tmp_path, monkeypatch, has_id=has_id)
    monkeypatch.setattr(embedded, "_LOOK_WAIT_SECONDS", 0)

    with held(original):
        assert f"home {copy} is a copy of the home at {original}" in str(why_elsewhere(copy))


def test_a_copy_is_one_also_where_its_catalog_names_what_was_committed_in_the_original_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, copy = older_copy(tmp_path, monkeypatch, has_id=True)
    named = store_at(original).metadata_locations()[TOPIC]
    with contextlib.closing(sqlite3.connect(copy / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute("update iceberg_tables set metadata_location = ? where table_name = ?", (named, TOPIC))

    assert f"home {copy} is a copy of the home at {original}" in str(why_elsewhere(copy))


@contextlib.contextmanager
def held(home: Path) -> Iterator[None]:
    """Another process has its catalog meanwhile."""
    with contextlib.closing(sqlite3.connect(home / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute("begin exclusive")
        yield


@pytest.mark.parametrize("has_id", [False, True], ids=["none has an id", "the original has one"])
def test_a_copy_of_an_older_home_is_one_whatever_was_made_in_it_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_id: bool
) -> None:
    original, copy = older_copy(tmp_path, monkeypatch, has_id=has_id)
    before = content(original)

    with pytest.raises(InvalidConfig, match=f"is a copy of the home at {original}, and its catalog names the files of"):
        append_to(store_at(copy), TOPIC)

    assert content(original) == before


def older_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_id: bool) -> tuple[Path, Path]:
    """A home, and a copy without an id in which an earlier keptlog made a topic; ``has_id``: the home went on since."""
    original, copy = tmp_path / "home", tmp_path / "copy"
    append_each(create(original), [("k", "1")])
    forget_id(original)
    shutil.copytree(original, copy)
    with monkeypatch.context() as earlier:
        earlier.setattr(embedded_catalog, "warehouse_named", warehouse_of)
        earlier.setattr(home_location, "elsewheres", lambda _: [])
        store_at(copy).create_topic(OTHER, 1, COMPACTED)
    forget_id(copy)
    if has_id:
        append_to(store_at(original), TOPIC)
    return original, copy
