"""A purge with a catalog that is not the one that went on deletes nothing; neither do spellings mislead it."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.doctor.topic_exam import examined
from keptlog.table.metadata.file_metrics import data_file_of
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.references import comparable
from tests.table.foreign import roll_back, set_properties, table_of
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values, unreferenced
from tests.table.stores import TOPIC, append_each, clean, create, store_at, values

LATER_MS = 2 * DAY_MS


def keep_catalog(home: Path) -> Path:
    """A backup of the catalog as it is."""
    return Path(shutil.copy(home / "catalog.db", home / "backup.db"))


def test_a_copied_home_deletes_nothing_of_the_original(tmp_path: Path) -> None:
    original = create(tmp_path / "home")
    append_each(original, [("a", "1")], [("a", "2")])
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    append_each(original, [("a", "3")], [("b", "4")])
    clean(original)
    before, files = values(original), paths_of_values(original)
    with pytest.raises(InvalidConfig, match=f"home .*copy is a copy of the home at {tmp_path / 'home'}, .* nothing"):
        store_at(tmp_path / "copy").purge(TOPIC, clock_ms() + LATER_MS)
    assert values(store_at(tmp_path / "home")) == before
    assert paths_of_values(original) == files


def test_what_one_commit_more_than_this_catalog_knows_refers_to_is_spared(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    backup = keep_catalog(tmp_path)
    append_each(store, [("a", "2")])
    shutil.copy(tmp_path / "catalog.db", tmp_path / "newer.db")
    shutil.copy(backup, tmp_path / "catalog.db")
    held = store_at(tmp_path).purge(TOPIC, clock_ms() + LATER_MS).held
    assert [file.path.endswith(".parquet") for file in held] == [True]
    assert re.fullmatch(r"commit ahead file://.*/00002-[^/]*\.metadata\.json", held[0].holder)
    shutil.copy(tmp_path / "newer.db", tmp_path / "catalog.db")
    assert values(store_at(tmp_path)) == [(0, 0, b"1"), (0, 1, b"2")]


def test_an_attempt_whose_process_died_stops_no_purge_and_is_swept_after_the_next_commit(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    backup = keep_catalog(tmp_path)
    append_each(store, [("a", "never landed")])
    shutil.copy(backup, tmp_path / "catalog.db")
    store = store_at(tmp_path)
    append_each(store, [("a", "2")])
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert paths_of_values(store) == live_paths(store)
    assert unreferenced(tmp_path) == set()


@pytest.mark.parametrize("commits", [3, 20, 30])
def test_of_two_catalogs_that_both_went_on_neither_deletes_what_the_other_has(tmp_path: Path, commits: int) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    backup = keep_catalog(tmp_path)
    append_each(store, [("a", "2")], [("a", "3")])
    shutil.copy(tmp_path / "catalog.db", tmp_path / "other.db")
    shutil.copy(backup, tmp_path / "catalog.db")
    append_each(store_at(tmp_path), *[[("b", str(number))] for number in range(commits)])
    with pytest.raises(LogCorrupt, match="storage knows more"):
        store_at(tmp_path).purge(TOPIC, clock_ms() + LATER_MS)
    with pytest.raises(LogCorrupt, match="storage knows more"):
        store_at(tmp_path).delete_topic(TOPIC, 0)
    shutil.copy(tmp_path / "other.db", tmp_path / "catalog.db")
    assert len(values(store_at(tmp_path))) == 3


def test_metadata_files_that_nobody_deleted_when_they_left_the_history_stop_no_purge(tmp_path: Path) -> None:
    store = create(tmp_path)
    set_properties(tmp_path, {"write.metadata.delete-after-commit.enabled": "false"})
    append_each(store, *[[("a", str(number))] for number in range(25)])
    roll_back(tmp_path, table_of(tmp_path).metadata.snapshots[10].snapshot_id)
    plan = store.plan_repair(TOPIC, is_adoption=False)
    assert plan
    store.repair(plan, "repair")
    append_each(store, *[[("a", str(number))] for number in range(25)])
    assert len(list(tmp_path.rglob("*.metadata.json"))) > 50
    assert examined(store, TOPIC).ahead is None
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert len(list(tmp_path.rglob("*.metadata.json"))) < 25


def test_an_old_catalog_file_deletes_nothing_of_what_was_written_since(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    backup = keep_catalog(tmp_path)
    append_each(store, [("a", "3")], [("b", "4")])
    clean(store)
    files = paths_of_values(store)
    shutil.copy(backup, tmp_path / "catalog.db")
    with pytest.raises(LogCorrupt, match=r"storage knows more than this catalog: .*00005-.* \(and 1 more\) .*00002-"):
        store_at(tmp_path).purge(TOPIC, clock_ms() + LATER_MS)
    assert paths_of_values(store_at(tmp_path)) == files


@pytest.mark.parametrize("appends_before", [0, 3])
def test_a_restored_home_is_purged_once_the_files_that_doctor_names_are_moved_aside(
    tmp_path: Path, appends_before: int
) -> None:
    store = create(tmp_path / "home")
    append_each(store, [("a", "1")])
    backup = keep_catalog(tmp_path / "home")
    append_each(store, [("a", "2")], [("a", "3")], [("a", "4")])
    shutil.copy(backup, tmp_path / "home" / "catalog.db")
    append_each(store_at(tmp_path / "home"), *[[("b", str(number))] for number in range(appends_before)])
    restored = store_at(tmp_path / "home")
    with pytest.raises(LogCorrupt, match=r"this home was restored .* keptlog doctor names them"):
        restored.purge(TOPIC, clock_ms() + LATER_MS)
    named = examined(restored, TOPIC).unknown_metadata
    assert len(named) == (2 if appends_before else 3)
    (tmp_path / "aside").mkdir()
    for path in named:
        shutil.move(path.removeprefix("file://"), tmp_path / "aside")
    assert examined(restored, TOPIC).ahead is None
    restored.purge(TOPIC, clock_ms() + LATER_MS)
    expected = [(0, 0, b"1"), *((0, 1 + number, b"%d" % number) for number in range(appends_before))]
    assert values(store_at(tmp_path / "home")) == expected


def test_a_topic_lies_apart_from_what_is_left_of_an_earlier_one_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    folder = Path(store.describe_topic(TOPIC).location.removeprefix("file://"))
    shutil.copytree(folder, tmp_path / "earlier")
    store.delete_topic(TOPIC, 0)
    shutil.copytree(tmp_path / "earlier", folder, dirs_exist_ok=True)
    store = create(tmp_path)
    append_each(store, [("a", "new")])
    assert f"files of an earlier topic are left where it would lie, such as file://{folder}/" in caplog.text
    left = {file for file in folder.rglob("*") if file.is_file()}
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert {file for file in folder.rglob("*") if file.is_file()} == left
    assert values(store) == [(0, 0, b"new")]
    assert folder not in Path(store.describe_topic(TOPIC).location.removeprefix("file://")).parents


@pytest.mark.parametrize("namespace", ["keptlog", "archive"])
def test_a_topic_lies_apart_from_a_table_that_was_renamed_and_does_not_say_that_it_can_be_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, namespace: str
) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    catalog = open_catalog(tmp_path)
    catalog.create_namespace_if_not_exists(namespace)
    catalog.rename_table(("keptlog", TOPIC), (namespace, "renamed"))
    create(tmp_path)
    assert f"the table {namespace}.renamed has its files where it would lie" in caplog.text
    assert "elete" not in caplog.text


def test_a_live_file_that_is_not_there_keeps_a_purge_from_deleting_anything(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    append_each(store, [("c", "5")])
    lost = Path(max(live_paths(store)).removeprefix("file://"))
    lost.unlink()
    before = paths_of_values(store)
    with pytest.raises(LogCorrupt, match=f"live file .*{lost.name} is not there, and nothing was deleted"):
        store.purge(TOPIC, clock_ms() + LATER_MS)
    assert paths_of_values(store) == before


def test_two_spellings_of_a_place_are_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = f"{tmp_path}/real/x"
    spelled = [f"file:{real}", f"file://{real}", real, f"{tmp_path}/link/x", f"{tmp_path}/real/../link//./x"]
    assert {comparable(path) for path in spelled} == {real}
    assert comparable("s3://bucket/a/x") == comparable("s3a://bucket/a/x") != comparable("s3://bucket/b/x")


def test_live_files_that_another_program_spells_another_way_are_no_orphans(tmp_path: Path) -> None:
    home = tmp_path / "link"
    (tmp_path / "home").mkdir()
    home.symlink_to(tmp_path / "home")
    store = create(home)
    append_each(store, [("a", "1")])
    table = open_catalog(home).load_table(("keptlog", TOPIC))
    # As Spark's DELETE does: what it writes, and what it names, has its own spelling of the table's location.
    location = table.location().replace(f"file://{home}", f"file:{tmp_path}/home/../home")
    table.transaction().set_properties({"write.metadata.path": f"{location}/metadata"}).commit_transaction()
    table = open_catalog(home).load_table(("keptlog", TOPIC))
    live = LiveFiles().of(table)
    [file] = live[0]
    renamed = replace(file.segment, path=file.segment.path.replace(table.location(), location))
    FileChange({}, {}, [data_file_of(0, renamed)], [file], live).land(table)
    for days in (1, 2, 3):
        store_at(home).purge(TOPIC, clock_ms() + days * DAY_MS + MINUTE_MS)
    assert values(store_at(home)) == [(0, 0, b"1")]
