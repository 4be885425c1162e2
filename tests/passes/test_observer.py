"""Looking at all logs: once or again and again, opened or not, it is the same that is seen."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestFile
from pyiceberg.table import Table

from keptlog.errors import Action, KeptlogError, LogCorrupt, StorageUnavailable, UnknownTopic
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.log.told.metrics import cleaner_metrics
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.passes.clean import Cleaner
from keptlog.passes.observer import READING_MS, Observer, Overview, observe
from keptlog.table.changes.mark import Failure
from keptlog.table.metadata import live_segments
from keptlog.table.metadata.logs import ObservedTopic, StoredTopic
from keptlog.table.metadata.metadata_reading import entries_of
from keptlog.table.store import LogStore
from keptlog.table.table_look import TableLook
from keptlog.table.unopened import UnopenedStore
from keptlog.table.waiting.rest import TRIED_AGAIN_MS
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.passes.conftest import DAY_MS, NOW_MS

MINUTE_MS, HOUR_MS = 60_000, 3_600_000


def names(seen: Overview) -> list[str]:
    return [str(log.topic_partition) for log in seen.logs]


def unopened(home: Path) -> UnopenedStore:
    return UnopenedStore(home, {}, lambda: open_home(home).store)


def append(store: LogStore, topic: str) -> None:
    store.append(topic, [NewRecord(b"k", b"3", NOW_MS, 0)], "append", NOW_MS)


def test_however_one_looks_the_same_is_seen(
    store: LogStore, tmp_path: Path, make_unreadable: Callable[[str], None]
) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files))
    assert carry_out(cleaner, cleaner.plan(["a"], now_ms=NOW_MS, requested=True)).committed
    make_unreadable("b")
    once, again = observe(store, now_ms=NOW_MS), Observer(store, lambda: 0).look(NOW_MS)
    assert names(once) == ["a-0", "c-0"]
    assert list(once.last_passes) == [once.logs[0].topic_partition]
    assert {name: type(error) for name, error in once.unreadable.items()} == {"b": LogCorrupt}
    for seen in (again, observe(unopened(tmp_path), now_ms=NOW_MS), observe(unopened(tmp_path), now_ms=NOW_MS)):
        assert (seen.assessments, seen.last_passes) == (once.assessments, once.last_passes)
        assert list(seen.unreadable) == ["b"]


def test_only_the_topics_that_names_may_mean_are_read(store: LogStore, looked_at: list[str]) -> None:
    seen = observe(store, ["c", "a-0", "nobody"], now_ms=NOW_MS)
    assert names(seen) == ["c-0", "a-0"]
    assert looked_at == ["c", "a"]
    assert isinstance(seen.unreadable["nobody"], UnknownTopic)


def test_of_an_unopened_home_the_table_is_read_of_what_has_changed_alone(
    store: LogStore, tmp_path: Path, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    observe(unopened(tmp_path), now_ms=NOW_MS)
    append(store, "b")
    read: list[str] = []
    really = TableLook.at

    def told(look: TableLook, table: Table) -> StoredTopic:
        read.append(table.name()[-1])
        return really(look, table)

    monkeypatch.setattr(TableLook, "at", told)
    for _ in range(2):
        seen = observe(unopened(tmp_path), now_ms=NOW_MS)
        assert [log.log_end_offset for log in seen.logs] == [2, 3, 2]
    assert read == ["b"]
    assert looked_at == [], "nothing was opened"


def test_what_changed_since_names_were_looked_up_is_seen_as_it_is(store: LogStore, tmp_path: Path) -> None:
    observe(unopened(tmp_path), now_ms=NOW_MS)
    append(store, "b")
    assert observe(unopened(tmp_path), ["b"], now_ms=NOW_MS).logs == store.logs("b")
    with pytest.raises(UnknownTopic):
        unopened(tmp_path).observe("nobody")


def test_an_observer_reads_a_topic_again_only_when_it_has_changed(store: LogStore, looked_at: list[str]) -> None:
    observer = Observer(store, lambda: 0)
    first = observer.look(NOW_MS)
    assert observer.look(NOW_MS).locations == first.locations
    assert looked_at == ["a", "b", "c"]
    append(store, "b")
    store.delete_topic("c", NOW_MS)
    second = observer.look(NOW_MS)
    assert names(second) == ["a-0", "b-0"]
    assert second.locations["b"] != first.locations["b"]
    assert looked_at == ["a", "b", "c", "b"]


def test_a_log_that_waits_after_a_failure_becomes_late_when_it_does(store: LogStore) -> None:
    store.alter_topic("a", {"max.compaction.lag.ms": str(8 * DAY_MS + MINUTE_MS)})
    failure = Failure(TopicPartition("a", 0), "segment 7 is gone", None, Action.FIX_DATA)
    store.mark_uncleanable("a", [failure], NOW_MS, Backoff(HOUR_MS, HOUR_MS))
    observer = Observer(store, lambda: 0)
    delays = []
    for later_ms in (0, MINUTE_MS, MINUTE_MS + 1, HOUR_MS - 1, HOUR_MS):
        now_ms = NOW_MS + later_ms
        seen, anew = observer.look(now_ms), observe(store, now_ms=now_ms)
        told = cleaner_metrics(seen.assessments, {}, {}, now_ms)
        assert told == cleaner_metrics(anew.assessments, {}, {}, now_ms)
        assert [each.trigger for each in seen.assessments] == [each.trigger for each in anew.assessments]
        delays.append(told.max_compaction_delay_secs)
    assert delays[-1] == (HOUR_MS - MINUTE_MS) // 1000


def test_a_segment_that_the_clock_closes_in_a_log_that_waits_is_seen_to_be_closed(store: LogStore) -> None:
    store.alter_topic("a", {"segment.ms": str(8 * DAY_MS + MINUTE_MS)})
    failure = Failure(TopicPartition("a", 0), "segment 7 is gone", None, Action.FIX_DATA)
    store.mark_uncleanable("a", [failure], NOW_MS, Backoff(HOUR_MS, HOUR_MS))
    observer = Observer(store, lambda: 0)
    for later_ms in (0, HOUR_MS - 1):
        now_ms = NOW_MS + later_ms
        told = [
            cleaner_metrics(seen.assessments, {}, {}, now_ms)
            for seen in (observer.look(now_ms), observe(store, now_ms=now_ms))
        ]
        assert told[0] == told[1]


def test_a_log_in_which_the_clock_changes_nothing_is_not_judged_again(store: LogStore) -> None:
    store.alter_topic("a", {"segment.ms": str(9 * DAY_MS)})
    observer = Observer(store, lambda: 0)
    first = observer.look(NOW_MS).assessments[0]
    assert observer.look(NOW_MS + DAY_MS).assessments[0] is first
    assert observer.look(NOW_MS + DAY_MS + 1).assessments[0] is not first
    assert observer.look(NOW_MS - 1).assessments[0].now_ms == NOW_MS - 1


def test_an_observer_whose_time_is_up_says_how_many_topics_it_is_behind(store: LogStore) -> None:
    clock = itertools.count(0, READING_MS)
    observer = Observer(store, lambda: next(clock))
    assert [(observer.look(NOW_MS).behind, len(observer.look(NOW_MS).logs))] == [(3, 0)]
    observer.monotonic_ms = lambda: 0
    assert (observer.look(NOW_MS).behind, len(observer.look(NOW_MS).logs)) == (0, 3)


def test_a_storage_that_does_not_answer_for_one_topic_costs_that_one_and_for_all_of_them_the_look(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = LogStore.observe
    unreachable = {"b"}

    def observe_some(store: LogStore, topic: str, location: str | None = None) -> ObservedTopic:
        if topic in unreachable:
            raise StorageUnavailable("its bucket does not answer")
        return really(store, topic, location)

    monkeypatch.setattr(LogStore, "observe", observe_some)
    for seen in (observe(store, now_ms=NOW_MS), Observer(store, lambda: 0).look(NOW_MS)):
        assert names(seen) == ["a-0", "c-0"]
        assert list(seen.unreadable) == ["b"]
    unreachable |= {"a", "c"}
    with pytest.raises(StorageUnavailable, match="does not answer"):
        Observer(store, lambda: 0).look(NOW_MS)


@pytest.mark.parametrize(
    ("waits_ms", "error", "tried"),
    [
        (10_000, StorageUnavailable("no answer"), [1, 1, 2]),
        (10, StorageUnavailable("no answer"), [1, 2, 3]),
        (10_000, StorageUnavailable("no right to read").for_good(), [1, 2, 3]),
        (10_000, LogCorrupt("damaged"), [1, 2, 3]),
    ],
    ids=["waited for in vain", "failed at once", "refused", "damaged"],
)
def test_a_topic_that_was_waited_for_in_vain_is_tried_again_after_a_while(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, waits_ms: int, error: KeptlogError, tried: list[int]
) -> None:
    really, clock, tries = LogStore.observe, [0], list[int]()

    def observe_some(store: LogStore, topic: str, location: str | None = None) -> ObservedTopic:
        if topic != "b":
            return really(store, topic, location)
        tries.append(1)
        clock[0] += waits_ms
        raise error

    monkeypatch.setattr(LogStore, "observe", observe_some)
    observer = Observer(store, lambda: clock[0])
    found = []
    for later_ms in (0, TRIED_AGAIN_MS - 1, 1):
        clock[0] += later_ms
        seen = observer.look(NOW_MS)
        assert (list(seen.unreadable), seen.behind, names(seen)) == (["b"], 0, ["a-0", "c-0"])
        found.append(len(tries))
    assert found == tried
    append(store, "b")
    observer.look(NOW_MS)
    assert len(tries) == tried[-1] + 1, "a commit has moved it"


def test_who_looks_again_and_again_holds_no_manifest_entry(store: LogStore) -> None:
    """They are five times as large as the segments that were read from them: 1.6 GB for 100,000 logs."""
    gc.collect()
    held_before = {id(each) for each in gc.get_objects() if isinstance(each, ManifestEntry)}
    observer = Observer(store, lambda: 0)
    assert names(observer.look(NOW_MS)) == ["a-0", "b-0", "c-0"]
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, ManifestEntry) and id(each) not in held_before]


def test_a_manifest_that_was_read_is_not_read_again(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store._cache = None  # so that the table is looked at
    observer = Observer(store, lambda: 0)
    observer.look(NOW_MS)
    append(store, "b")
    read: list[str] = []

    def told(topic: str, manifest: ManifestFile, io: FileIO) -> list[ManifestEntry]:
        read.append(topic)
        return entries_of(topic, manifest, io)

    monkeypatch.setattr(live_segments, "entries_of", told)
    assert [log.log_end_offset for log in observer.look(NOW_MS).logs] == [2, 3, 2]
    assert read == ["b"]


def test_logs_of_several_topics_are_shown_in_the_order_in_which_they_are_named(store: LogStore) -> None:
    for topic in ("x", "y"):
        store.create_topic(topic, 2, {"cleanup.policy": "compact"})
    names = ["x-1", "y-0", "x-0", "y-1"]
    assert [str(log.topic_partition) for log in observe(store, names, now_ms=NOW_MS).logs] == names
