"""Erasures of a topic whose deletion was begun and taken back, as by a catalog that was put back: those of now end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keptlog.passes.holders import check_gone
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.removal.removal import Removal
from tests.erasure.test_topic_deleted import KilledAtOnce, delete, ids, told
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World


@pytest.fixture
def topic(world: World) -> World:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    return world


def taken_back(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kill the deletion right behind its journal, and list the topic again; gives the journal."""

    def killed(*_: Any) -> None:
        raise KilledAtOnce

    with monkeypatch.context() as patch:
        patch.setattr(Removal, "delete", killed)
        with pytest.raises(KilledAtOnce):
            delete(world)
    list_again(world)
    (journal,) = world.home.rglob("gc/deletion-*.json")
    return journal


def list_again(world: World) -> None:
    open_catalog(world.home).rename_table((DELETING, "users"), (NAMESPACE, "users"))


def ended(world: World) -> list[str] | None:
    found = delete(world).ended
    return None if found is None else [each.request for each in found]


@pytest.mark.parametrize("purged", [False, True])
@pytest.mark.parametrize("before", [["r1"], []])
def test_what_was_asked_for_since_is_in_the_receipt_of_the_deletion_that_comes_to_its_end(
    topic: World, monkeypatch: pytest.MonkeyPatch, before: list[str], *, purged: bool
) -> None:
    for each in before:
        topic.ask(OTHER, id=each)
    taken_back(topic, monkeypatch)
    topic.ask(id="r9", deadline_ms=topic.now_ms + 30 * DAY_MS)
    if purged:
        topic.store.purge("users", topic.now_ms)
    assert ended(topic) == [*before, "r9"]
    assert ids(topic) == [*before, "r9"]
    assert None not in told(topic)


def test_what_was_proved_since_is_not_told_as_ended(topic: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic.ask(id="r1")
    journal = taken_back(topic, monkeypatch)
    content = journal.read_bytes()
    journal.unlink()
    topic.to_deleted()
    assert topic.verified().erasure.state == "verified"
    journal.write_bytes(content)
    assert ended(topic) == []
    assert ids(topic) == []
    assert None not in told(topic)


def test_a_receipt_of_the_first_try_does_not_stand_for_what_was_asked_for_since(
    topic: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something could be deleted at the first try, and the register could not."""
    topic.ask(OTHER, id="r1")
    really = TableFiles.delete

    def kept(files: TableFiles, path: str) -> None:
        if path.endswith((".parquet", ".avro")) or "/erasures/" in path:
            raise PermissionError(13, "kept", path)
        really(files, path)

    with monkeypatch.context() as patch:
        patch.setattr(TableFiles, "delete", kept)
        assert not delete(topic).is_over
    assert ids(topic) == ["r1"]
    list_again(topic)
    topic.ask(id="r9")
    assert ended(topic) == ["r1", "r9"]
    assert ids(topic) == ["r1", "r9"]


def test_the_journal_of_the_first_try_keeps_no_erasure_open_and_breaks_no_check(
    topic: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_back(topic, monkeypatch)
    topic.ask(id="r1", deadline_ms=topic.now_ms + 30 * DAY_MS)
    assert topic.to_deleted().erasure.state == "deleted"
    assert topic.verified().erasure.state == "verified"
    assert list(topic.home.rglob("receipts/taken-back/deletion-*.json"))
    assert all(each.passed for each in check_gone(topic.store, "users", [0], topic.now_ms + 9 * DAY_MS).values())


@pytest.mark.parametrize("before", [["r1"], []])
def test_if_the_register_can_not_be_read_by_then_a_receipt_says_that_nobody_can_tell(
    topic: World, monkeypatch: pytest.MonkeyPatch, before: list[str]
) -> None:
    """The list of the first try is shorter than what the table counts."""
    for each in before:
        topic.ask(OTHER, id=each)
    taken_back(topic, monkeypatch)
    topic.ask(id="r9")
    for register in topic.register_files:
        register.write_bytes(b"{")
    assert ended(topic) == (before or None)
    assert ids(topic) == before
    assert None in told(topic)
