"""A metadata file that the catalog names is gone, as files or catalog were put back: doctor says that it may be so."""

from __future__ import annotations

import shutil
from pathlib import Path

from keptlog.home import open_home
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import NAMESPACE
from tests.cli.conftest import Run, checks_of
from tests.table.stores import COMPACTED, TOPIC, append_each


def of_topics(keptlog: Run) -> dict[str, str]:
    [checked] = [each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "topics"]
    [found] = checked["problems"]
    assert found["subject"] == TOPIC
    return dict(found)


def test_files_that_are_older_than_their_catalog_are_not_told_as_deleted(keptlog: Run, home: Path) -> None:
    """A backup that takes the files first and the catalog later is like that."""
    store = open_home(home).store
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")])
    shutil.copytree(home / "warehouse", home.with_name("files"))
    append_each(store, [("a", "2")], [("a", "3")])
    shutil.rmtree(home / "warehouse")
    shutil.copytree(home.with_name("files"), home / "warehouse")
    found = of_topics(keptlog)
    assert "files of an earlier time were put back" in found["cause"]


def test_a_topic_that_keptlog_has_deleted_since_is_not_told_as_deleted_by_something_else(
    keptlog: Run, home: Path
) -> None:
    open_home(home).store.create_topic(TOPIC, 1, COMPACTED)
    shutil.copy(home / "catalog.db", home.with_name("older.db"))
    assert keptlog("topic", "delete", TOPIC, "--yes").code == 0
    shutil.copy(home.with_name("older.db"), home / "catalog.db")
    assert "the topic was deleted after this catalog was backed up" in of_topics(keptlog)["cause"]


def test_how_a_topic_that_was_deleted_since_leaves_an_older_catalog_is_told_and_does_it(
    keptlog: Run, home: Path
) -> None:
    """Each command named it as out of reach from then on, deleting it was refused, and no step was named."""
    for name in (TOPIC, "left"):
        open_home(home).store.create_topic(name, 1, COMPACTED)
    shutil.copy(home / "catalog.db", home.with_name("older.db"))
    assert keptlog("topic", "delete", TOPIC, "--yes").code == 0
    shutil.copy(home.with_name("older.db"), home / "catalog.db")
    told = of_topics(keptlog)["todo"]
    assert f"keptlog receipt list --topic={TOPIC} tells" in told
    listed = "receipt", "list", f"--topic={TOPIC}", "--json"
    assert keptlog(*listed).json["receipts"] == [], "the receipt of the deletion is younger than the catalog too"
    assert f"let keptlog topic register {TOPIC} take in the receipts first" in told
    keptlog("topic", "register", TOPIC, "--yes")
    assert keptlog(*listed).json["receipts"][0]["kind"] == "topic-delete"
    assert f"catalog.drop_table({(NAMESPACE, TOPIC)!r})" in told
    open_catalog(home).drop_table((NAMESPACE, TOPIC))
    assert checks_of(keptlog("doctor", "--json"))["topics"]["problems"] == []
    assert keptlog("status").code == 0
    assert keptlog("receipt", "verify").code == 0
