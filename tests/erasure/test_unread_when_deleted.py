"""Erasures that nobody could read when their topic was deleted: no receipt, and no answer, says that none was open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from keptlog.receipts.receipt import Receipt
from keptlog.table.io.files import TableFiles
from tests.erasure.test_topic_deleted import asked, begun_before, delete, late_file, told
from tests.erasure.world import World
from tests.table.receipt_chains import chain_at

__all__ = ["asked"]


@pytest.fixture
def unread(asked: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A topic whose deletion an older keptlog began; its register is damaged, and a late file makes a later journal."""
    begun_before(asked, monkeypatch, "delete")
    for each in asked.register_files:
        each.write_bytes(b"{")
    late_file(asked)
    return asked


@contextmanager
def only_deletable(monkeypatch: pytest.MonkeyPatch, *parts: str) -> Iterator[None]:
    really = TableFiles.delete

    def kept(files: TableFiles, path: str) -> None:
        if not any(part in path for part in (*parts, "/gc/", "/receipts/deletion-")):
            raise PermissionError(13, "kept", path)
        really(files, path)

    with monkeypatch.context() as patch:
        patch.setattr(TableFiles, "delete", kept)
        yield


def receipts(world: World) -> list[Receipt]:
    return [each for each in chain_at(world.home).receipts() if each.kind == "topic-delete"]


def test_the_receipt_of_a_later_journal_is_not_taken_for_that_of_the_first(
    unread: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only_deletable(monkeypatch, "staged-late"):
        first = delete(unread)
    assert (first.is_over, first.ended) == (False, None)
    second = delete(unread)
    assert (second.is_over, second.ended) == (True, None)
    assert told(unread) == [None] * len(receipts(unread))


def test_nor_does_what_is_left_of_the_first_say_that_none_was_open(
    unread: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only_deletable(monkeypatch, "staged-late", ".avro"):
        assert not delete(unread).is_over
    assert delete(unread).ended is None
    assert told(unread) == [None] * len(receipts(unread))
    assert len(receipts(unread)) == 3


def test_a_receipt_of_an_earlier_keptlog_that_said_none_of_a_later_journal_does_not_stand_for_the_first(
    unread: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only_deletable(monkeypatch, "staged-late"):
        delete(unread)
    sealed = [{**each.content, "erasures": []} for each in receipts(unread)]
    monkeypatch.setattr("keptlog.table.chain.sealed_deletions.SealedDeletions.__call__", lambda *_: sealed)
    assert delete(unread).ended is None
    assert told(unread) == [None] * len(receipts(unread))


def test_what_can_be_read_again_is_told_by_what_is_left_of_the_first(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {each: each.read_bytes() for each in asked.register_files}
    for each in content:
        each.write_bytes(b"{")
    with only_deletable(monkeypatch, ".avro"):
        assert delete(asked).ended is None
    for each, was in content.items():
        each.write_bytes(was)
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    assert [each and each["request"] for each in told(asked)] == [None, "r2", "r3"]
