"""Readers of a real topic: what waits for them, what they are told, and what stays of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt, StalePlan, TombstonesMissed, UnknownTopic
from keptlog.home import new_id
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.record import NewRecord, Record
from keptlog.log.told.explain import explain
from keptlog.log.words.iso_time import iso_time
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.observer import Observer, observe
from keptlog.passes.readers import Readers
from keptlog.storage.files import StoredFile
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.stored_json import to_json
from tests.in_process import in_process_engine
from tests.logs import open_store

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TOPIC = "users"
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1", "delete.retention.ms": str(HOUR_MS)}


class Scene:
    """A topic of two partitions with a reader ``search``, and the hours that pass."""

    def __init__(self, home: Path) -> None:
        self.home, self.store, self.now_ms = home, open_store(home), NOW_MS
        self.store.create_topic(TOPIC, 2, SETTINGS)
        self.readers.add(TOPIC, "search", now_ms=self.now_ms)

    @property
    def readers(self) -> Readers:
        return Readers(self.store, new_id)

    @property
    def cleaner(self) -> Cleaner:
        return Cleaner(self.store, in_process_engine(self.store.files))

    def append(self, *pairs: tuple[str, str | None], partition: int = 0) -> None:
        records = [NewRecord(k.encode(), None if v is None else v.encode(), self.now_ms, partition) for k, v in pairs]
        self.store.append(TOPIC, records, new_id(), self.now_ms)

    def after(self, hours: float) -> Scene:
        self.now_ms += int(hours * HOUR_MS)
        return self

    def read(self, name: str = "search", partition: int | None = None) -> list[tuple[int, bytes | None]]:
        return [(record.offset, record.value) for _, record in self.readers.read(TOPIC, name, partition)]

    def clean(self, *, requested: bool = True) -> Pass:
        cleaner = self.cleaner
        done = cleaner.commit(cleaner.stage(cleaner.begin([TOPIC], new_id(), now_ms=self.now_ms, requested=requested)))
        assert not done.failed
        return done

    def tombstones(self) -> list[int]:
        return [record.offset for _, record in self.store.read(TOPIC) if record.is_tombstone]

    def told(self) -> str:
        return "; ".join(explain(observe(self.store, [f"{TOPIC}-0"], now_ms=self.now_ms).assessments[0]).rules)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """The reader has met a's value, and not its deletion, whose horizon passed an hour ago."""
    scene = Scene(tmp_path)
    scene.append(("a", "1"), ("b", "1"))
    assert scene.read() == [(0, b"1"), (1, b"1")]
    scene.after(1).append(("a", None))
    scene.after(1).clean()
    return scene.after(2)


def test_a_tombstone_waits_for_a_reader_who_is_asleep_and_explain_says_for_whom(scene: Scene) -> None:
    assert scene.clean(requested=False).plan.steps == ()
    assert scene.tombstones() == [2]
    since, until = scene.now_ms - HOUR_MS, scene.now_ms - HOUR_MS + 7 * DAY_MS
    assert (
        f"tombstones wait since {iso_time(since)} for reader search, whose position is 2; the first of them until "
        f"{iso_time(until)} at most"
    ) in scene.told()
    [standing, other] = scene.readers.list(now_ms=scene.now_ms)
    assert (standing.position, standing.lag, standing.log_end_offset) == (2, 1, 3)
    assert (standing.holds_since_ms, standing.holds_until_ms, standing.missed) == (since, until, None)
    assert (other.partition, other.position, other.lag, other.holds_since_ms) == (1, 0, 0, None)


def test_it_goes_once_the_reader_has_met_it(scene: Scene) -> None:
    assert scene.read() == [(2, None)]
    assert scene.read() == []
    assert [str(step.kind) for step in scene.clean(requested=False).plan.steps] == ["expire"]
    assert scene.tombstones() == []
    assert scene.read() == []


def test_past_the_bound_it_goes_and_the_reader_is_told_until_he_starts_over(scene: Scene) -> None:
    gone_ms = scene.after(7 * 24).now_ms
    scene.clean(requested=False)
    assert scene.tombstones() == []
    scene.append(("c", "1"))
    with pytest.raises(TombstonesMissed) as raised:
        scene.read()
    assert str(raised.value) == (
        f"reader search of topic users was too slow: 1 tombstone between offsets 2 and 2 of users-0 went at "
        f"{iso_time(gone_ms)}; its state may still have keys that are deleted here: empty it, and start over from the "
        "beginning: keptlog reader add users search --start-over"
    )
    with pytest.raises(TombstonesMissed):
        scene.readers.commit(TOPIC, "search", {0: 4})
    assert scene.readers.list([TOPIC], now_ms=scene.now_ms)[0].missed
    scene.readers.add(TOPIC, "search", now_ms=scene.now_ms, start_over=True)
    assert scene.read() == [(1, b"1"), (3, b"1")]
    assert scene.read() == []
    assert scene.readers.list([TOPIC], now_ms=scene.now_ms)[0].missed is None


def test_a_compaction_holds_and_tells_as_well(scene: Scene) -> None:
    scene.append(("c", "1"), ("c", "2"))
    scene.after(1).clean()
    assert scene.tombstones() == [2]
    scene.append(("c", "3"))
    scene.after(8 * 24).clean()
    assert scene.tombstones() == []
    with pytest.raises(TombstonesMissed, match="offsets 2 and 2 of users-0"):
        scene.read()


def test_only_who_was_behind_is_told(scene: Scene) -> None:
    scene.readers.add(TOPIC, "billing", 0, now_ms=scene.now_ms)
    scene.readers.add(TOPIC, "late", 0, now_ms=scene.now_ms)
    scene.read("billing")
    scene.after(7 * 24).clean()
    assert scene.read("billing") == []
    # Who has read nothing has nothing that could be wrong.
    assert scene.read("late") == [(1, b"1")]
    assert scene.read("late") == []


def test_who_reads_by_other_means_is_told_too_even_before_his_first_commit(scene: Scene) -> None:
    scene.readers.add(TOPIC, "paging", 0, now_ms=scene.now_ms)
    scene.clean()
    assert scene.tombstones() == [2]  # search holds it
    scene.readers.remove(TOPIC, "search")
    scene.clean()
    with pytest.raises(TombstonesMissed, match="reader paging"):
        scene.readers.commit(TOPIC, "paging", {0: 1})


def test_a_reader_who_comes_while_a_clean_is_under_way_is_respected(scene: Scene) -> None:
    scene.read()
    plan = scene.cleaner.plan([TOPIC], now_ms=scene.now_ms)
    outcomes = scene.cleaner.rewrite(plan.steps, "run")
    scene.readers.add(TOPIC, "new", now_ms=scene.now_ms)
    with pytest.raises(StalePlan, match="wait for readers now: new"):
        scene.store.swap(TOPIC, outcomes, "run")
    assert scene.tombstones() == [2]
    scene.readers.remove(TOPIC, "new")
    scene.store.swap(TOPIC, outcomes, "run")
    assert scene.tombstones() == []


def test_who_starts_over_while_a_clean_is_under_way_is_respected(scene: Scene) -> None:
    scene.read()
    plan = scene.cleaner.plan([TOPIC], now_ms=scene.now_ms)
    outcomes = scene.cleaner.rewrite(plan.steps, "run")
    scene.readers.add(TOPIC, "search", now_ms=scene.now_ms, start_over=True)
    with pytest.raises(StalePlan, match="wait for readers now: search"):
        scene.store.swap(TOPIC, outcomes, "run")


def test_who_reads_on_while_a_clean_is_under_way_is_not_told_that_he_missed_something(scene: Scene) -> None:
    scene.after(7 * 24)
    plan = scene.cleaner.plan([TOPIC], now_ms=scene.now_ms)
    outcomes = scene.cleaner.rewrite(plan.steps, "run")
    assert scene.read() == [(2, None)]
    scene.store.swap(TOPIC, outcomes, "run")
    assert scene.tombstones() == []
    assert scene.read() == []


def test_what_is_read_between_two_cleans_is_of_one_snapshot_and_of_what_is_known_after_it(scene: Scene) -> None:
    """The tombstone went between the look at the positions and the look at the records: it is noticed."""
    really = scene.store.reader

    def reader(*where: object, **how: object) -> object:
        found = really(*where, **how)  # type: ignore[arg-type]
        scene.after(7 * 24)
        scene.store.reader = really  # type: ignore[method-assign]
        scene.clean()
        return found

    scene.store.reader = reader  # type: ignore[method-assign, assignment]
    with pytest.raises(TombstonesMissed):
        scene.read()


def test_records_that_were_not_taken_are_read_again(scene: Scene) -> None:
    scene.append(("x", "1"), partition=1)
    records: Iterator[tuple[int, Record]] = scene.readers.read(TOPIC, "search")
    assert next(records)[1].offset == 2
    del records
    assert scene.read(partition=1) == [(0, b"1")]
    assert scene.read() == [(2, None)]


def test_so_are_those_that_were_kept_back_and_that_nobody_took_in_the_end(scene: Scene) -> None:
    def refused() -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        list(scene.readers.read(TOPIC, "search", taken=refused))
    assert scene.read() == [(2, None)]
    assert scene.read() == []


def test_a_position_never_goes_back_and_stays_inside_of_the_log(scene: Scene) -> None:
    scene.readers.commit(TOPIC, "search", {0: 3, 1: 0})
    for offset in (2, 4):
        with pytest.raises(InvalidConfig, match="reader search is at offset 3 of users-0, which ends at 3"):
            scene.readers.commit(TOPIC, "search", {0: offset})
    with pytest.raises(InvalidConfig, match="has 2 partitions, and no 2"):
        scene.readers.commit(TOPIC, "search", {2: 0})
    assert scene.readers.list(now_ms=scene.now_ms)[0].position == 3


def test_nobody_reads_under_a_name_that_is_not_registered(scene: Scene) -> None:
    for attempt in (
        lambda: scene.read("other"),
        lambda: scene.readers.commit(TOPIC, "other", {0: 0}),
    ):
        with pytest.raises(InvalidConfig, match=r"topic users has no reader 'other': keptlog reader add users other"):
            attempt()
    with pytest.raises(InvalidConfig, match=r"topic users has no reader 'other': see keptlog reader list users"):
        scene.readers.remove(TOPIC, "other")
    with pytest.raises(UnknownTopic):
        scene.readers.add("none", "search", now_ms=scene.now_ms)


def test_records_that_went_from_the_head_of_the_log_are_missed_too(scene: Scene) -> None:
    scene.append(("c", "1"), ("d", "1"))
    scene.store.delete_records(scene.store.logs(TOPIC)[0].topic_partition, 4, new_id())
    with pytest.raises(TombstonesMissed, match="at offset 2 of users-0, whose records below 4 were removed"):
        scene.read()


def test_a_topic_that_can_t_be_read_is_told_beside_the_readers_of_the_others(scene: Scene) -> None:
    scene.readers.add(TOPIC, "search", now_ms=scene.now_ms)
    scene.store.create_topic("broken", 1, {})
    broken = {"log.p0.log-end-offset": "many", "log.reader.slow": "{"}
    scene.store.load_table("broken").transaction().set_properties(broken).commit_transaction()
    for names in ([], ["broken", TOPIC]):
        found = scene.readers.list(names, now_ms=scene.now_ms)
        assert {each.topic for each in found} == {TOPIC}
        assert {name: type(error) for name, error in found.failed.items()} == {"broken": LogCorrupt}
    with pytest.raises(UnknownTopic, match="nobody"):
        scene.readers.list([TOPIC, "nobody"], now_ms=scene.now_ms)


def test_to_register_again_keeps_the_positions_and_may_change_the_time(scene: Scene) -> None:
    snapshot = scene.store.describe_topic(TOPIC).snapshot_id
    scene.readers.add(TOPIC, "search", now_ms=scene.now_ms + 1)
    assert scene.store.describe_topic(TOPIC).snapshot_id == snapshot
    scene.readers.add(TOPIC, "search", HOUR_MS, now_ms=scene.now_ms)
    assert [each.hold_max_ms for each in scene.readers.list(now_ms=scene.now_ms)] == [HOUR_MS] * 2
    assert scene.readers.list(now_ms=scene.now_ms)[0].position == 2
    scene.clean(requested=False)
    assert scene.tombstones() == []


def test_of_a_removed_reader_nothing_is_left(scene: Scene) -> None:
    scene.readers.remove(TOPIC, "search")
    assert not [path for path in scene.home.rglob("*") if path.is_file() and "/readers/" in str(path)]
    assert not [name for name in scene.store.load_table(TOPIC).properties if "reader" in name]
    scene.clean(requested=False)
    assert scene.tombstones() == []
    assert scene.readers.list(now_ms=scene.now_ms) == []


def test_a_removal_that_was_killed_half_way_is_finished_by_the_next(scene: Scene) -> None:
    left = [path for path in scene.home.rglob("*") if path.is_file() and "/readers/" in str(path)]
    contents = {path: path.read_bytes() for path in left}
    scene.readers.remove(TOPIC, "search")
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    scene.readers.remove(TOPIC, "search")
    assert not any(path.exists() for path in left)


def test_a_topic_that_was_made_again_knows_nothing_of_the_readers_of_the_earlier_one(scene: Scene) -> None:
    stored = {path: path.read_bytes() for path in scene.home.rglob("*-2.json") if "/readers/" in str(path)}
    assert stored
    scene.store.delete_topic(TOPIC, scene.now_ms)
    again = Scene(scene.home)
    for path, content in stored.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    again.append(("a", "1"), ("b", "1"), ("c", "1"))
    assert again.readers.list(now_ms=again.now_ms)[0].position is None
    assert again.read() == [(0, b"1"), (1, b"1"), (2, b"1")]


def test_a_position_file_that_is_none_holds_everything_and_is_named(scene: Scene) -> None:
    scene.read()
    [stored] = [path for path in scene.home.rglob("0-3.json") if "/readers/" in str(path)]
    damaged = stored.rename(stored.with_name("0-what.json"))
    assert scene.clean(requested=False).plan.steps == ()
    assert f"whose position is not known: file://{damaged} is no position" in scene.told()
    with pytest.raises(TombstonesMissed, match=r"0-what\.json is no position; delete it, or start over"):
        scene.read()
    assert scene.readers.list(now_ms=scene.now_ms)[0].problem
    scene.after(7 * 24).clean(requested=False)
    assert scene.tombstones() == []


def test_a_half_written_position_file_says_as_much_as_a_whole_one(scene: Scene) -> None:
    scene.read()
    [stored] = [path for path in scene.home.rglob("0-3.json") if "/readers/" in str(path)]
    stored.write_bytes(b"")
    stored.with_name("0-1.json").write_bytes(b"{")
    assert scene.read() == []
    assert scene.readers.list(now_ms=scene.now_ms)[0].position == 3


def test_a_registration_that_is_none_is_named(scene: Scene) -> None:
    table = scene.store.load_table(TOPIC)
    table.transaction().set_properties({"log.reader.search": "{}"}).commit_transaction()
    with pytest.raises(LogCorrupt, match=r"topic users: property log.reader.search='\{\}' is no registration"):
        scene.read()


def test_a_registration_that_is_none_is_mended_by_what_its_error_says(scene: Scene) -> None:
    """Beside another one that is none, and costs only itself."""
    damaged = {"log.reader.search": "{", "log.reader.other": "[]"}
    scene.store.load_table(TOPIC).transaction().set_properties(damaged).commit_transaction()
    for name in ("search", "other"):
        with pytest.raises(LogCorrupt) as told:
            scene.readers.add(TOPIC, name, now_ms=scene.now_ms)
        assert told.value.command == f"keptlog reader remove {TOPIC} {name}"
        assert told.value.command in str(told.value)
        scene.readers.remove(TOPIC, name)
        scene.readers.add(TOPIC, name, now_ms=scene.now_ms)
    assert {each.reader for each in scene.readers.list(now_ms=scene.now_ms)} == {"search", "other"}


def test_an_observer_sees_that_a_reader_has_moved_although_no_commit_says_so(scene: Scene) -> None:
    observer = Observer(scene.store, lambda: 0)
    assert [each.trigger for each in observer.look(scene.now_ms).assessments] == [None, None]
    scene.read()
    assert [str(each.trigger) for each in observer.look(scene.now_ms + 1).assessments] == ["tombstone_expiry", "None"]


def test_a_quiet_look_at_topics_without_readers_lists_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path)
    scene.append(("a", None))
    scene.after(1).clean()
    scene.readers.remove(TOPIC, "search")
    listed: list[str] = []

    def told(_: TableFiles, folder: str) -> Iterator[StoredFile]:
        listed.append(folder)
        return iter(())

    monkeypatch.setattr(TableFiles, "list", told)
    assert scene.after(9).cleaner.plan(now_ms=scene.now_ms).steps
    observe(scene.store, now_ms=scene.now_ms)
    assert listed == []


def test_nothing_is_held_that_an_open_erasure_has_no_time_for(scene: Scene) -> None:
    """Two purges have to come before the deadline, a day each, and the delay of a minute."""
    end_ms = scene.now_ms + HOUR_MS
    summary = to_json(OpenErasures(1, end_ms + 2 * (DAY_MS + 60_000), None))
    scene.store.load_table(TOPIC).transaction().set_properties({"log.erasures.open": summary}).commit_transaction()
    assert f"until {iso_time(end_ms)} at most" in scene.told()
    assert scene.cleaner.plan(now_ms=end_ms - 1).steps == ()
    scene.after(1).clean(requested=False)
    assert scene.tombstones() == []
    with pytest.raises(TombstonesMissed):
        scene.read()
