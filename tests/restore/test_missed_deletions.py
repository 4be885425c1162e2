"""A restore goes on while nothing that it had to send is gone, and asks where a deletion may be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import new_id
from keptlog.kafka_client.settings import ClientSettings
from keptlog.log.record import NewRecord
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.clean import Cleaner
from keptlog.passes.names import named_logs
from keptlog.passes.readers import Readers, ReaderStanding
from keptlog.passes.restore import Restore, reader_name_of
from keptlog.passes.retain import Retainer
from keptlog.progress import silent
from keptlog.sinks.kafka_broker.target import Target
from tests.in_process import in_process_engine
from tests.logs import open_store
from tests.restore.stand_in import TARGET, Broker
from tests.table.foreign import set_properties

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NAME = reader_name_of(TARGET)
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1", "delete.retention.ms": str(HOUR_MS)}


class Scene:
    """A topic of one partition that is restored from time to time, and the hours that pass."""

    def __init__(self, home: Path, broker: Broker) -> None:
        self.store, self.broker, self.now_ms = open_store(home), broker, NOW_MS
        self.store.create_topic("users", 1, SETTINGS)

    @property
    def readers(self) -> Readers:
        return Readers(self.store, new_id)

    def standing(self) -> ReaderStanding:
        [found] = self.readers.list(["users"], now_ms=self.now_ms)
        return found

    def append(self, *pairs: tuple[str, str | None]) -> None:
        records = [NewRecord(k.encode(), None if v is None else v.encode(), self.now_ms, 0) for k, v in pairs]
        self.store.append("users", records, new_id(), self.now_ms)

    def after(self, hours: float) -> Scene:
        self.now_ms += int(hours * HOUR_MS)
        return self

    def clean(self) -> None:
        cleaner = Cleaner(self.store, in_process_engine(self.store.files))
        done = cleaner.commit(cleaner.stage(cleaner.begin(["users"], new_id(), now_ms=self.now_ms, requested=True)))
        assert not done.failed

    def tombstones(self) -> list[int]:
        return [record.offset for _, record in self.store.read("users") if record.is_tombstone]

    def restore(
        self,
        *,
        skip_lost: bool = False,
        append_to_existing: bool = False,
        progress: Callable[[str], None] = silent,
    ) -> list[int]:
        """The offsets that the target got by it."""
        before = len(self.broker.sent)
        settings = ClientSettings.load({"bootstrap.servers": "nowhere:1"}, {})
        run = Restore(self.store, settings, lambda: self.now_ms, progress, new_id)
        run.to_broker("users", "people", skip_lost=skip_lost, append_to_existing=append_to_existing)
        return self.broker.sent[before:]

    def restore_one_transaction(self) -> None:
        self.broker.transaction_records = 1
        with pytest.raises(KeyboardInterrupt):
            self.restore(progress=stop)


def stop(_line: str) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def scene(tmp_path: Path, broker: Broker) -> Scene:
    """The target has a, whose deletion came since and was cleaned; its horizon passes an hour later."""
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"), ("b", "1"))
    assert scene.restore() == [0, 1]
    scene.after(1).append(("a", None))
    scene.after(1).clean()
    return scene


def test_a_deletion_that_is_known_to_be_missed_is_asked_about_whatever_the_retention_is_now(scene: Scene) -> None:
    """It was accepted: the position was younger than the retention of now."""
    gone_ms = scene.after(8 * 24).now_ms
    scene.clean()
    assert scene.tombstones() == []
    scene.store.alter_topic("users", {"delete.retention.ms": str(30 * DAY_MS)})
    with pytest.raises(InvalidConfig) as refused:
        scene.restore()
    assert str(refused.value) == (
        "users-0 was restored up to offset 2, and 1 tombstone between offsets 2 and 2 of users-0 went at "
        f"{iso_time(gone_ms)}: their keys would stay; restore to another topic (--topic), or accept that (--skip-lost)"
    )
    scene.append(("c", "1"))
    assert scene.restore(skip_lost=True) == [3]
    assert scene.restore() == []


def test_what_waits_for_the_restore_is_sent_long_after_the_retention(scene: Scene) -> None:
    """It was refused: the position was older than the retention."""
    scene.after(2 * 24).clean()
    assert scene.restore() == [2]
    assert scene.standing().position == 3
    scene.clean()
    assert scene.tombstones() == []
    assert scene.restore() == []


def test_where_nobody_waited_time_decides(scene: Scene) -> None:
    scene.readers.remove("users", NAME)
    scene.after(2).clean()
    assert scene.tombstones() == []
    with pytest.raises(InvalidConfig) as refused:
        scene.restore()
    assert str(refused.value) == (
        f"users-0 was restored up to offset 2 as of {iso_time(NOW_MS)}, and for longer than "
        "delete.retention.ms=3600000 nothing waited for it: tombstones behind it may be gone since, and their keys "
        "would stay; restore to another topic (--topic), or accept that (--skip-lost)"
    )


def test_what_a_clean_beyond_the_checkpoint_removed_counts_too(scene: Scene, tmp_path: Path) -> None:
    """As after a clean in legs, or a repair, and another clean that ended before."""
    scene.readers.remove("users", NAME)
    scene.after(2).clean()
    assert scene.tombstones() == []
    set_properties(tmp_path, {"log.p0.first-dirty-offset": "1", "log.p0.cleaning-to": "3"}, "users")
    with pytest.raises(InvalidConfig, match="tombstones behind it may be gone"):
        scene.restore()


def test_who_has_all_that_retention_removes_goes_on(tmp_path: Path, broker: Broker) -> None:
    """What a clean has removed between that and what is left is missed by nobody."""
    scene = Scene(tmp_path, broker)
    scene.store.alter_topic("users", {"internal.segment.bytes": "14"})
    scene.readers.add("users", "search", now_ms=scene.now_ms)
    scene.append(("a", "1"), ("b", "1"))
    assert scene.restore() == [0, 1]
    assert len(list(scene.readers.read("users", "search"))) == 2
    scene.after(48).append(("c", "1"), ("d", "1"), ("d", "2"))
    scene.after(1).append(("c", "2"))
    scene.after(1).clean()
    scene.store.alter_topic("users", {"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)})
    retained = Retainer(scene.store).retain(named_logs(scene.store, ["users"]), new_id(), now_ms=scene.now_ms)
    assert [step.new_log_start_offset for step in retained.committed] == [2]
    assert scene.restore() == [4, 5]
    assert [record.offset for _, record in scene.readers.read("users", "search")] == [4, 5]


def test_who_was_registered_after_the_retention_is_not_believed_for_the_time_before(scene: Scene) -> None:
    scene.readers.remove("users", NAME)
    scene.after(2).clean()
    scene.readers.add("users", NAME, now_ms=scene.now_ms)
    with pytest.raises(InvalidConfig, match="tombstones behind it may be gone"):
        scene.restore()


def test_what_goes_between_the_look_at_the_log_and_the_registration_is_not_taken_for_held(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"), ("a", None), ("b", "1"))

    def take_hours(*_: object) -> tuple[Target, bool]:
        monkeypatch.setattr(Restore, "_target", lambda *_: (TARGET, False))
        scene.after(0.1).clean()
        scene.after(2).clean()
        assert scene.tombstones() == []
        return TARGET, False

    monkeypatch.setattr(Restore, "_target", take_hours)
    scene.restore_one_transaction()
    assert broker.sent == [0]
    with pytest.raises(InvalidConfig, match="tombstones behind it may be gone"):
        scene.restore()


@pytest.fixture
def set_back(tmp_path: Path, broker: Broker) -> Scene:
    """The target has lost what the last restore brought, and its position with it; the reader is further."""
    scene = Scene(tmp_path, broker)
    scene.append(("a", "1"))
    scene.restore()
    position = broker.committed
    scene.append(("a", None), ("b", "1"))
    scene.restore()
    broker.committed = position
    assert scene.standing().position == 3
    scene.after(0.1).clean()
    return scene


def test_a_target_that_was_set_back_is_waited_for_from_there_on(set_back: Scene, broker: Broker) -> None:
    broker.transaction_records = 1
    set_back.restore_one_transaction()
    assert broker.sent == [0, 1, 2, 1]
    assert set_back.standing().position == 1
    set_back.after(2 * 24).clean()
    assert set_back.tombstones() == [1]
    assert set_back.restore() == [2]


def test_what_went_before_a_target_was_set_back_was_held_for_nobody(set_back: Scene) -> None:
    set_back.after(2).clean()
    assert set_back.tombstones() == []
    with pytest.raises(InvalidConfig, match="tombstones behind it may be gone"):
        set_back.restore()


def test_where_nobody_knows_how_far_the_reader_has_come_time_decides(scene: Scene, tmp_path: Path) -> None:
    [stored] = [path for path in tmp_path.rglob("0-2.json") if "/readers/" in str(path)]
    stored.rename(stored.with_name("0-what.json"))
    scene.after(2)
    with pytest.raises(InvalidConfig, match="tombstones behind it may be gone"):
        scene.restore()
    assert scene.restore(skip_lost=True) == [2]
    assert (scene.standing().position, scene.standing().problem) == (3, None)
