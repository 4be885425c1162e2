"""A log that changes between the plan of a clean and its commit costs only itself, not the other logs of its topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import StalePlan, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.steps import Expire
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.readers import Readers
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import open_store
from tests.passes.conftest import DAY_MS, NOW_MS

TOPIC = "t"
LATER_MS = NOW_MS + DAY_MS
LOGS = [f"{TOPIC}-{partition}" for partition in range(4)]


@pytest.fixture
def cleaner(tmp_path: Path) -> Cleaner:
    """A topic of four logs, each with two records of a key, eight days old."""
    store = open_store(tmp_path)
    store.create_topic(TOPIC, 4, {"cleanup.policy": "compact", "delete.retention.ms": "1"})
    for partition in range(4):
        append(store, partition, b"1", b"2")
    return Cleaner(store, in_process_engine(store.files))


def append(store: LogStore, partition: int, *values: bytes | None, at_ms: int = NOW_MS - 8 * DAY_MS) -> None:
    store.append(TOPIC, [NewRecord(b"k", value, at_ms, partition) for value in values], new_id(), NOW_MS)


def staged(cleaner: Cleaner, *names: str, now_ms: int = NOW_MS) -> Pass:
    return cleaner.stage(cleaner.begin(names, new_id(), now_ms=now_ms, requested=bool(names)))


def landed(done: Pass) -> list[str]:
    return sorted(str(outcome.step.topic_partition) for outcome in done.committed)


def files_of(done: Pass, name: str) -> list[Path]:
    paths = [path for each in done.outcomes if str(each.step.topic_partition) == name for path in each.staged_paths]
    return [Path(path.removeprefix("file://")) for path in paths]


def checkpoints(cleaner: Cleaner) -> list[int | None]:
    return [log.checkpoint for log in cleaner.store.logs(TOPIC)]


def clean_the_first(cleaner: Cleaner, _: Pass) -> None:
    cleaner.commit(staged(cleaner, LOGS[0]))


def delete_records_of_the_first(cleaner: Cleaner, _: Pass) -> None:
    cleaner.store.delete_records(TopicPartition(TOPIC, 0), 1, new_id())


def take_a_staged_file_of_the_first(_: Cleaner, done: Pass) -> None:
    for path in files_of(done, LOGS[0]):
        path.unlink()


def staged_with_an_expiry(cleaner: Cleaner) -> Pass:
    """Of the first log tombstones go by their horizon, of the second one a record is superseded."""
    append(cleaner.store, 0, None)
    cleaner.commit(staged(cleaner, now_ms=NOW_MS))
    append(cleaner.store, 1, b"3", b"4")
    return staged(cleaner, *LOGS[:2], now_ms=LATER_MS)


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        (clean_the_first, r"t-0: the log changed .* its first dirty offset was None"),
        (delete_records_of_the_first, r"t-0: the log changed .* its log start offset 0"),
        (take_a_staged_file_of_the_first, r"partition=0/.* is gone"),
    ],
)
def test_a_log_that_changed_meanwhile_costs_no_other_log_of_its_topic(
    cleaner: Cleaner, meanwhile: Callable[[Cleaner, Pass], None], why: str
) -> None:
    waiting = staged(cleaner)
    meanwhile(cleaner, waiting)
    done = cleaner.commit(waiting)
    assert landed(done) == LOGS[1:]
    assert checkpoints(cleaner)[1:] == [2, 2, 2]
    assert list(done.failed) == [LOGS[0]]
    with pytest.raises(StalePlan, match=why):
        raise done.failed[LOGS[0]]
    assert (done.blameless, done.outage) == (frozenset(), None)
    assert not [log for log in cleaner.store.logs(TOPIC) if log.uncleanable]


def test_what_was_staged_of_the_log_alone_is_deleted(cleaner: Cleaner) -> None:
    waiting = staged(cleaner)
    clean_the_first(cleaner, waiting)
    cleaner.commit(waiting)
    assert [path.exists() for name in LOGS for path in files_of(waiting, name)] == [False, True, True, True]


def test_a_reader_who_comes_meanwhile_keeps_tombstones_of_the_log_that_has_some_alone(cleaner: Cleaner) -> None:
    waiting = staged_with_an_expiry(cleaner)
    assert [isinstance(each.step, Expire) for each in waiting.outcomes] == [False, True]
    Readers(cleaner.store, new_id).add(TOPIC, "search", now_ms=LATER_MS)
    done = cleaner.commit(waiting)
    assert landed(done) == [LOGS[1]]
    with pytest.raises(StalePlan, match=r"t-0: .* wait for readers now: search"):
        raise done.failed[LOGS[0]]


def test_each_log_is_told_its_own_reason_where_all_came_too_late(cleaner: Cleaner) -> None:
    waiting = staged(cleaner)
    cleaner.commit(staged(cleaner, *LOGS))
    done = cleaner.commit(waiting)
    assert landed(done) == []
    for name in LOGS:
        with pytest.raises(StalePlan, match=f"^{name}: the log changed"):
            raise done.failed[name]


def test_whoever_commits_the_same_again_finds_what_has_landed_without_the_log(cleaner: Cleaner) -> None:
    waiting = staged(cleaner)
    clean_the_first(cleaner, waiting)
    cleaner.commit(waiting)
    after = cleaner.store.metadata_locations()
    again = cleaner.commit(waiting)
    assert (landed(again), list(again.failed)) == (LOGS[1:], [LOGS[0]])
    assert cleaner.store.metadata_locations() == after


@pytest.mark.parametrize("are_snapshots_gone", [False, True])
def test_so_does_whoever_has_left_a_log_without_segments(
    cleaner: Cleaner, monkeypatch: pytest.MonkeyPatch, are_snapshots_gone: bool
) -> None:
    store = cleaner.store
    append(store, 1, None)
    cleaner.commit(staged(cleaner, LOGS[1]))
    for partition in (0, 2, 3):
        append(store, partition, b"3")
    waiting = staged(cleaner, *LOGS, now_ms=NOW_MS + 2 * DAY_MS)
    assert [len(each.added) for each in waiting.outcomes if isinstance(each.step, Expire)] == [0]
    clean_the_first(cleaner, waiting)
    assert landed(cleaner.commit(waiting)) == LOGS[1:]
    if are_snapshots_gone:  # so that no commit is found by its id
        monkeypatch.setattr("keptlog.table.changes.swap.commit_id_of", lambda run_id, _: f"{run_id}/{new_id()}")
    after = store.metadata_locations()
    again = cleaner.commit(waiting)
    assert (landed(again), list(again.failed)) == (LOGS[1:], [LOGS[0]])
    assert store.metadata_locations() == after


def test_so_it_does_where_what_came_too_late_fits_by_then(cleaner: Cleaner) -> None:
    waiting = staged_with_an_expiry(cleaner)
    readers = Readers(cleaner.store, new_id)
    readers.add(TOPIC, "search", now_ms=LATER_MS)
    assert landed(cleaner.commit(waiting)) == [LOGS[1]]
    again = cleaner.commit(waiting)
    assert (landed(again), list(again.failed)) == ([LOGS[1]], [LOGS[0]])
    readers.remove(TOPIC, "search")
    again = cleaner.commit(waiting)
    assert (landed(again), again.failed) == (LOGS[:2], {})


def test_a_log_that_others_have_left_without_segments_came_too_late_all_the_same(cleaner: Cleaner) -> None:
    append(cleaner.store, 1, None)
    cleaner.commit(staged(cleaner, LOGS[1]))
    waiting = staged(cleaner, LOGS[1], now_ms=NOW_MS + 2 * DAY_MS)
    cleaner.commit(staged(cleaner, LOGS[1], now_ms=NOW_MS + 2 * DAY_MS))
    assert not cleaner.store.logs(TOPIC)[1].segments
    done = cleaner.commit(waiting)
    assert (landed(done), list(done.failed)) == ([], [LOGS[1]])


def test_an_outage_that_begins_then_is_not_the_reason_of_the_log_that_came_too_late(
    cleaner: Cleaner, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = staged(cleaner)
    clean_the_first(cleaner, waiting)
    really, tries = LogStore.swap, []

    def swap(store: LogStore, topic: str, *arguments: object) -> None:
        tries.append(topic)
        if len(tries) == 2:
            raise StorageUnavailable("the catalog can't be reached; nothing landed, try again")
        really(store, topic, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LogStore, "swap", swap)
    done = cleaner.commit(waiting)
    assert (landed(done), sorted(done.failed), done.blameless) == ([], LOGS, frozenset(LOGS[1:]))
    assert isinstance(done.failed[LOGS[0]], StalePlan)
    assert landed(cleaner.commit(waiting)) == LOGS[1:]
