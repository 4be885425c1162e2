"""A home knows where it was made; nothing may be changed through a copy of it, or where it was moved to."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import open_home
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.purge import Purger
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.home_location import why_elsewhere
from keptlog.table.io.files import TableFiles
from keptlog.table.io.read_only import require_writable
from keptlog.table.store import LogStore
from tests.table.stores import (
    COMPACTED,
    NOW_MS,
    TOPIC,
    append_each,
    clean,
    create,
    forget_id,
    new_id,
    new_records,
    rewritten,
    step_for,
    store_at,
    values,
)

A_DAY_LATER_MS = 4_000_000_000_000
"""Later than whatever a test's machine shows."""


def content(home: Path) -> dict[str, bytes]:
    """All files of a home, but for the cache."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and "cache" not in path.parts
    }


def copied(tmp_path: Path) -> tuple[Path, Path]:
    """A home and its copy; the original went on since."""
    original, copy = tmp_path / "home", tmp_path / "copy"
    append_each(create(original), [("k", "1")], [("k", "2")], [("j", "1")])
    shutil.copytree(original, copy)
    store = store_at(original)
    append_each(store, [("k", "3")], [("k", "4")])
    clean(store)
    append_each(store, [("l", "1")])
    return original, copy


def test_a_purge_through_a_copied_home_deletes_nothing_of_the_original(tmp_path: Path) -> None:
    original, copy = copied(tmp_path)
    before = content(original)

    with pytest.raises(InvalidConfig) as refused:
        Purger(store_at(copy)).purge(now_ms=A_DAY_LATER_MS)

    assert str(refused.value) == (
        f"home {copy} is a copy of the home at {original}, and its catalog names the files there: "
        f"nothing may be changed through it; use KEPTLOG_HOME={original}"
    )
    assert content(original) == before
    assert len(values(store_at(original))) == 3


CHANGES: dict[str, Callable[[LogStore], object]] = {
    "create": lambda store: store.create_topic("another", 1, COMPACTED),
    "alter": lambda store: store.alter_topic(TOPIC, {"segment.ms": "5"}),
    "delete": lambda store: store.delete_topic(TOPIC, NOW_MS),
    "append": lambda store: store.append(TOPIC, new_records(("k", "5")), new_id(), NOW_MS),
    "stage": lambda store: rewritten(store, step_for(store.logs(TOPIC)[0])),
    "delete-records": lambda store: store.delete_records(TopicPartition(TOPIC, 0), -1, new_id()),
    "purge": lambda store: store.purge(TOPIC, A_DAY_LATER_MS),
    "write a file": lambda store: store.files.write_bytes(f"{store.data_location(TOPIC)}/x", b""),
    "delete a file": lambda store: store.files.delete(store.logs(TOPIC)[0].segments[0].path),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nothing_is_changed_through_a_copied_home(tmp_path: Path, change: Callable[[LogStore], object]) -> None:
    original, copy = copied(tmp_path)
    before = content(original), content(copy)

    with pytest.raises(InvalidConfig, match=f"is a copy of the home at {original}") as refused:
        change(store_at(copy))

    assert "\n" not in str(refused.value)
    assert (content(original), content(copy)) == before


def test_a_copied_home_shows_the_files_of_the_original(tmp_path: Path) -> None:
    _, copy = copied(tmp_path)
    assert [value for _, _, value in values(store_at(copy))] == [b"1", b"2", b"1"]


def test_nothing_is_changed_through_a_home_that_was_moved_until_it_is_back(tmp_path: Path) -> None:
    made, moved = tmp_path / "home", tmp_path / "moved"
    append_each(create(made), [("k", "1")])
    made.rename(moved)
    with pytest.raises(InvalidConfig, match=f"was moved from {made}.*move it back, or make {made} a link to it"):
        store_at(moved).create_topic("another", 1, COMPACTED)

    with pytest.raises(InvalidConfig, match=f"was moved from {made}"):
        values(store_at(moved))

    made.symlink_to(moved)
    append_each(store_at(moved), [("k", "2")])
    append_each(store_at(made), [("k", "3")])

    assert [value for _, _, value in values(store_at(made))] == [b"1", b"2", b"3"]


def as_in_a_task(files: TableFiles) -> TableFiles:
    taken: TableFiles = pickle.loads(pickle.dumps(files))  # noqa: S301  # as Spark does
    return taken


def test_who_has_a_moved_home_open_goes_on_once_the_link_is_made_and_refuses_again_without_it(tmp_path: Path) -> None:
    made, moved = tmp_path / "home", tmp_path / "moved"
    append_each(create(made), [("k", "1")])
    made.rename(moved)
    store = store_at(moved)
    files = store.files
    with pytest.raises(InvalidConfig, match=f"was moved from {made}"):
        Purger(store).purge(now_ms=NOW_MS)
    with pytest.raises(InvalidConfig, match=f"was moved from {made}"):
        require_writable(as_in_a_task(files).properties)

    made.symlink_to(moved)

    append_each(store, [("k", "2")])
    assert len(values(store)) == 2
    assert store.read_only is None
    Purger(store).purge(now_ms=NOW_MS)
    for told in (files, as_in_a_task(files)):
        require_writable(told.properties)
    made.unlink()
    assert f"was moved from {made}" in str(store.read_only)


@pytest.mark.parametrize("is_link", [False, True])
def test_who_is_told_to_move_a_home_back_is_told_of_what_lies_there_now(tmp_path: Path, *, is_link: bool) -> None:
    made, moved = tmp_path / "home", tmp_path / "moved"
    create(made)
    made.rename(moved)
    if is_link:
        made.symlink_to(tmp_path / "nowhere")
    else:
        create(made)
    told = f"was moved from {made}.*; move what lies there now aside; then move it back, or make {made} a link to it"
    with pytest.raises(InvalidConfig, match=told):
        store_at(moved).create_topic("another", 1, COMPACTED)


def test_a_copy_that_took_the_place_of_the_original_is_the_original(tmp_path: Path) -> None:
    original, copy = copied(tmp_path)
    original.rename(tmp_path / "before")
    copy.rename(original)
    append_each(store_at(original), [("k", "restored")])
    assert len(values(store_at(original))) == 4
    assert why_elsewhere(tmp_path / "before") is not None


def test_a_home_may_be_opened_through_any_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    append_each(create(tmp_path / "link" / "home"), [("k", "1")])
    append_each(store_at(tmp_path / "disk" / "home"), [("k", "2")])
    append_each(store_at(tmp_path / "disk" / ".." / "link" / "home"), [("k", "3")])
    assert len(values(store_at(tmp_path / "link" / "home"))) == 3


def forgotten(home: Path) -> None:
    forget_id(home)
    assert store_at(home).topics() == [TOPIC]


def test_a_copy_of_an_older_home_is_told_by_where_its_tables_lie(tmp_path: Path) -> None:
    original, copy = tmp_path / "home", tmp_path / "copy"
    append_each(create(original), [("k", "1")])
    forgotten(original)
    shutil.copytree(original, copy)
    with pytest.raises(InvalidConfig, match=f"is a copy of the home at {original}"):
        append_each(store_at(copy), [("k", "2")])
    shutil.rmtree(original)
    with pytest.raises(InvalidConfig, match=f"was moved from {original}"):
        append_each(store_at(copy), [("k", "2")])


@pytest.mark.parametrize("commits", [1, 30])
def test_a_copy_of_an_older_home_is_told_as_one_also_once_the_original_has_its_id(tmp_path: Path, commits: int) -> None:
    original, copy = tmp_path / "home", tmp_path / "copy"
    append_each(create(original), [("k", "1")])
    forgotten(original)
    shutil.copytree(original, copy)
    named = store_at(copy).metadata_locations()[TOPIC].removeprefix("file://")
    for number in range(commits):  # from the twentieth on, what the copy names is deleted
        append_each(store_at(original), [("k", str(number))])
    assert Path(named).exists() == (commits == 1)
    with pytest.raises(InvalidConfig, match=f"is a copy of the home at {original}"):
        append_each(store_at(copy), [("k", "2")])


def test_an_older_home_that_was_moved_is_no_copy_of_one_that_was_made_in_its_place(tmp_path: Path) -> None:
    made, moved = tmp_path / "home", tmp_path / "moved"
    append_each(create(made), [("k", "1")])
    forgotten(made)
    made.rename(moved)
    append_each(create(made), [("k", "1")])
    with pytest.raises(InvalidConfig, match=f"was moved from {made}"):
        append_each(store_at(moved), [("k", "2")])


def test_an_older_home_remembers_where_it_is_with_the_first_change(tmp_path: Path) -> None:
    home = tmp_path / "home"
    create(home)
    forgotten(home)
    append_each(store_at(home), [("k", "1")])
    store_at(home).delete_topic(TOPIC, NOW_MS)
    shutil.copytree(home, tmp_path / "copy")
    with pytest.raises(InvalidConfig, match=f"is a copy of the home at {home}"):
        store_at(tmp_path / "copy").create_topic(TOPIC, 1, COMPACTED)


def test_a_home_that_was_opened_before_something_was_copied_to_its_place_is_refused_too(tmp_path: Path) -> None:
    create(tmp_path / "home")
    early = store_at(tmp_path / "copy")
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    with pytest.raises(InvalidConfig, match="is a copy"):
        early.create_topic("another", 1, COMPACTED)


def test_no_location_has_dots_in_it_however_the_home_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "disk" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "deep")
    monkeypatch.chdir(tmp_path / "work")
    append_each(create(Path("../x/./.keptlog")), [("k", "1")])
    append_each(create(Path("../link/../y")), [("k", "1")])
    table = open_catalog(tmp_path / "x" / ".keptlog").load_table(("keptlog", TOPIC))
    assert table.location() == f"file://{tmp_path}/x/.keptlog/warehouse/keptlog/{TOPIC}"
    assert all(".." not in part for home in ("x/.keptlog", "disk/y") for part in _named(tmp_path / home))
    # That is what ``..`` behind a link means to the operating system.
    assert (tmp_path / "disk" / "y" / "catalog.db").exists()


def _named(home: Path) -> list[str]:
    """Parts of all paths that a home's metadata names."""
    store = store_at(home)
    paths = [file.path for file in store.files.list(store.data_location(TOPIC).removesuffix("/data"))]
    return [part for path in [*paths, *store.metadata_locations().values()] for part in path.split("/")]


def test_who_pickles_a_home_is_told_to_open_it_in_each_process(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"can't be pickled: open it in each process, with open_home\(path\)"):
        pickle.dumps(open_home(tmp_path, {}))
