"""A reader who has read beyond the end of a truncation is told, whenever he did: what came there since he never saw."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, TombstonesMissed
from keptlog.home import new_id, wall_clock_ms
from keptlog.log.record import Record
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.readers import Readers
from keptlog.table.changes.truncate import Truncation
from keptlog.table.io.files import TableFiles
from tests.ingest.directories import run_import, some_batch, write_log
from tests.logs import open_store

USERS = TopicPartition("users", 0)


class Scene:
    """A topic of ten records with a reader; its source goes on."""

    def __init__(self, folder: Path) -> None:
        self.logs, self.store = folder / "logs", open_store(folder / "home")
        self.ingest(10)
        self.readers.add("users", "search", now_ms=wall_clock_ms())

    @property
    def readers(self) -> Readers:
        return Readers(self.store, new_id)

    def ingest(self, end_offset: int) -> None:
        write_log(self.logs, "users-0", [some_batch(offset, 5) for offset in range(0, end_offset, 5)])
        assert not run_import(self.store, self.logs, new_id()).failed
        assert self.store.logs("users")[0].log_end_offset == end_offset

    def truncate(self, offset: int) -> None:
        Truncation(USERS, offset, new_id(), new_id).commit(self.store.committer, self.store.files)
        assert self.store.logs("users")[0].log_end_offset == offset

    def read(self) -> list[int]:
        return [record.offset for _, record in self.readers.read("users", "search")]

    def missed(self) -> str | None:
        [standing] = self.readers.list(["users"], now_ms=wall_clock_ms())
        return standing.missed


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def is_told_and_starts_over(scene: Scene, *, read_to: int, truncated_to: int, end: int) -> None:
    told = f"it has read users-0 up to offset {read_to}, which was truncated to {truncated_to} since"
    assert scene.missed() == told
    with pytest.raises(TombstonesMissed) as raised:
        scene.read()
    assert str(raised.value) == (
        f"reader search of topic users has records that are gone: {told}; its state may have them, and lack what came "
        "in their place: empty it, and start over from the beginning: keptlog reader add users search --start-over"
    )
    with pytest.raises(TombstonesMissed, match="has records that are gone"):
        scene.readers.commit("users", "search", {0: end})
    scene.readers.add("users", "search", now_ms=wall_clock_ms(), start_over=True)
    assert scene.read() == list(range(end))
    assert scene.read() == []
    assert scene.missed() is None


def test_who_was_reading_while_his_log_was_truncated_is_told_once_it_has_grown_past_him(scene: Scene) -> None:
    records: Iterator[tuple[int, Record]] = scene.readers.read("users", "search")
    next(records)
    scene.truncate(5)
    scene.ingest(15)
    assert [record.offset for _, record in records] == list(range(1, 10))
    is_told_and_starts_over(scene, read_to=10, truncated_to=5, end=15)


def test_who_says_how_far_he_has_come_after_the_truncation_is_refused(scene: Scene) -> None:
    scene.readers.commit("users", "search", {0: 3})
    scene.truncate(5)
    with pytest.raises(TombstonesMissed, match="up to offset 10, which was truncated to 5 since"):
        scene.readers.commit("users", "search", {0: 10})
    scene.ingest(15)
    with pytest.raises(TombstonesMissed, match="up to offset 10, which was truncated to 5 since"):
        scene.readers.commit("users", "search", {0: 10})
    scene.readers.commit("users", "search", {0: 5})
    assert scene.missed() is None


def test_who_had_committed_nothing_is_known_to_have_begun_before_it(scene: Scene) -> None:
    scene.truncate(5)
    scene.ingest(15)
    with pytest.raises(TombstonesMissed, match="up to offset 10, which was truncated to 5 since"):
        scene.readers.commit("users", "search", {0: 10})


def test_who_registers_after_a_truncation_knows_of_it_and_not_of_the_next(scene: Scene) -> None:
    scene.truncate(5)
    scene.ingest(15)
    scene.readers.add("users", "late", now_ms=wall_clock_ms())
    scene.readers.commit("users", "late", {0: 10})
    scene.readers.add("users", "late", 1, now_ms=wall_clock_ms())
    scene.readers.commit("users", "late", {0: 12})
    scene.truncate(12)
    scene.ingest(20)
    scene.readers.commit("users", "late", {0: 12})
    with pytest.raises(TombstonesMissed, match="up to offset 13, which was truncated to 12 since"):
        scene.readers.commit("users", "late", {0: 13})


def test_who_has_read_no_further_than_its_end_reads_on(scene: Scene) -> None:
    assert scene.read() == list(range(10))
    scene.ingest(20)
    scene.truncate(10)
    scene.ingest(20)
    assert scene.read() == list(range(10, 20))
    assert scene.read() == []
    assert scene.missed() is None


def test_a_position_whose_file_says_no_number_is_from_before_the_first_truncation(scene: Scene) -> None:
    scene.truncate(5)
    scene.ingest(15)
    assert scene.read() == list(range(15))
    assert scene.read() == []
    [stored] = [path for path in scene.logs.parent.rglob("0-15.json") if "/readers/" in str(path)]
    for content in (b"{}", b"", b"{", b"[1]", b"\xff", b'{"truncations": "one"}'):
        stored.write_bytes(content)
        assert scene.missed() == "it has read users-0 up to offset 15, which was truncated to 5 since"


def test_a_log_is_not_truncated_while_nobody_knows_how_far_a_reader_has_come(scene: Scene) -> None:
    assert scene.read() == list(range(10))
    [stored] = [path for path in scene.logs.parent.rglob("0-10.json") if "/readers/" in str(path)]
    damaged = stored.rename(stored.with_name("0-what.json"))
    with pytest.raises(InvalidConfig) as refused:
        scene.truncate(5)
    assert str(refused.value) == (
        f"users-0 can't be truncated to offset 5: registered reader search may be beyond it, whose position is not "
        f"known: file://{damaged} is no position; delete it, or let it start over (keptlog reader remove users "
        "search, and then add it)"
    )


def test_of_a_log_that_was_never_truncated_no_position_is_opened(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scene.read() == list(range(10))
    scene.ingest(15)
    opened: list[str] = []
    really = TableFiles.read_bytes

    def told(files: TableFiles, path: str) -> bytes:
        opened.extend([path] if "/readers/" in path else [])
        return really(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", told)
    assert scene.read() == list(range(10, 15))
    scene.readers.commit("users", "search", {0: 15})
    assert scene.missed() is None
    assert opened == []


def test_a_position_that_was_moved_on_while_somebody_looks_is_looked_up_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scene.read() == list(range(10))
    scene.ingest(15)
    scene.truncate(10)
    scene.ingest(15)
    really = TableFiles.read_bytes

    def overtaken(files: TableFiles, path: str) -> bytes:
        if "/readers/" in path:
            monkeypatch.setattr(TableFiles, "read_bytes", really)
            assert scene.read() == list(range(10, 15))
        return really(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", overtaken)
    [standing] = scene.readers.list(["users"], now_ms=wall_clock_ms())
    assert (standing.position, standing.missed) == (15, None)
