"""An append that an adoption has given up has not landed: under its old run id it brings its records, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.changes.append import AppendResult
from tests.passes.story import LOG, SETTINGS, Story, T
from tests.table.foreign import current_id, delete_rows, set_main, table_of


class Scene(Story):
    """A log with an append whose run id nobody uses again, and then one that is sent again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.first = self.append(("a", "1"))

    def send(self, run_id: str = "run-x") -> AppendResult:
        return self.real.store.append(T, [NewRecord(b"b", b"1", self.now_ms, 0)], run_id, self.now_ms)

    def adopt(self, snapshot_id: int) -> None:
        self.roll_back(snapshot_id)
        self.repair(adopt=True)

    def tag(self, snapshot_id: int, name: str) -> None:
        table_of(self.home, T).manage_snapshots().create_tag(snapshot_id, name).commit()

    def give_up_what_a_tag_keeps(self) -> int:
        """Adopt a rollback of an append, and purge the line between; gives the append's snapshot, which a tag keeps."""
        self.send()
        sent = current_id(self.home, T)
        self.tag(sent, "before")
        self.adopt(self.first)
        self.append(("c", "1"))
        self.purge(left=2)
        return sent

    def offsets(self) -> list[int]:
        return [record.offset for record in self.real.records()]

    def purge(self, left: int = 1) -> None:
        self.real.store.alter_topic(T, {"file.delete.delay.ms": "0"})
        self.real.store.purge(T, 2 * self.now_ms)
        assert len(self.real.store.load_table(T).metadata.snapshots) == left


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, SETTINGS)


def is_sent(result: AppendResult, offset: int) -> bool:
    return (result.is_repeated, result.partitions[0].base_offset) == (False, offset)


def test_what_an_adopted_rollback_gave_up_is_appended_again_and_then_once(scene: Scene) -> None:
    scene.send()
    scene.adopt(scene.first)
    assert is_sent(scene.send(), 2)
    assert scene.send().is_repeated
    assert scene.offsets() == [0, 2]


def test_so_it_is_after_a_purge_that_has_expired_all_of_it(scene: Scene) -> None:
    scene.send()
    scene.adopt(scene.first)
    scene.append(("c", "1"))
    scene.purge()
    assert is_sent(scene.send(), 3)
    scene.append(("c", "2"))
    scene.purge()
    assert scene.send().is_repeated
    assert scene.offsets() == [0, 2, 3, 4]


def test_so_it_is_where_a_tag_keeps_what_was_given_up_for_longer_than_the_adoption(scene: Scene) -> None:
    scene.give_up_what_a_tag_keeps()
    assert is_sent(scene.send(), 3)
    assert scene.send().is_repeated
    assert scene.offsets() == [0, 2, 3]


def test_so_it_is_after_a_rollback_to_a_tag_whose_line_a_purge_has_expired(scene: Scene) -> None:
    scene.tag(scene.first, "release")
    scene.append(("c", "1"))
    scene.send()
    scene.append(("c", "2"))
    scene.purge(left=2)
    set_main(scene.home, scene.first, T)
    scene.repair(adopt=True)
    assert is_sent(scene.send(), 4)
    assert scene.send().is_repeated
    assert scene.offsets() == [0, 4]


def test_what_is_taken_in_again_from_a_tag_whose_line_a_purge_has_expired_has_landed(scene: Scene) -> None:
    sent = scene.give_up_what_a_tag_keeps()
    set_main(scene.home, sent, T)
    scene.repair(adopt=True)
    assert scene.send().is_repeated
    assert scene.offsets() == [0, 1]


def test_what_it_took_in_has_landed(scene: Scene) -> None:
    """What it went back to, what came before, and what another program left some records of."""
    scene.send("run-w")
    adopted = current_id(scene.home, T)
    scene.send()
    scene.adopt(adopted)
    assert scene.send("run-w").is_repeated
    scene.send("run-y")
    delete_rows(scene.home, "offset = 0", T)
    scene.repair(adopt=True)
    assert scene.send("run-y").is_repeated


def test_what_a_repair_had_brought_back_and_a_second_rollback_leaves_is_kept_if_it_is_adopted(scene: Scene) -> None:
    scene.send()
    sent = current_id(scene.home, T)
    scene.roll_back(scene.first)
    scene.repair()
    scene.send("run-y")
    set_main(scene.home, sent, T)
    scene.repair(adopt=True)
    assert scene.send().is_repeated
    assert is_sent(scene.send("run-y"), 3)


def test_what_one_adoption_gave_up_and_the_next_took_in_has_landed(scene: Scene) -> None:
    scene.send()
    sent = current_id(scene.home, T)
    scene.adopt(scene.first)
    set_main(scene.home, sent, T)
    scene.repair(adopt=True)
    assert scene.send().is_repeated
    scene.purge()
    assert scene.send().is_repeated
    assert scene.offsets() == [0, 1]


def test_records_that_were_deleted_under_a_run_id_are_not_deleted_twice(scene: Scene) -> None:
    """The log start is as the deletion left it: again it would take what came since."""
    scene.append(("c", "1"))
    log = TopicPartition(T, LOG.partition)
    before = current_id(scene.home, T)
    scene.real.store.delete_records(log, 1, "run-d")
    scene.adopt(before)
    assert scene.real.store.delete_records(log, -1, "run-d").is_repeated
