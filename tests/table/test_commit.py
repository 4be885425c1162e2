"""Commits that meet faults: refused, unanswered, out of reach. What was sent lands once, or the caller is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableResponse
from sqlalchemy.exc import OperationalError

from keptlog.errors import CommitStateUnknown, KeptlogError, StalePlan, StorageUnavailable
from keptlog.log.record import Record
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.commit import MAX_LOST_RACES, MAX_OUTAGES
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.store import LogStore
from tests.table.stores import (
    NOW_MS,
    TOPIC,
    FaultyCatalog,
    append_each,
    create,
    new_id,
    new_records,
    rewritten,
    staged,
    step_for,
    store_at,
    store_over,
    values,
)

Commit = Callable[[], CommitTableResponse]


def refused(commit: Commit) -> CommitTableResponse:
    raise CommitFailedException("another process was faster")


def lost_response(commit: Commit) -> CommitTableResponse:
    commit()
    raise CommitStateUnknownException("the line was cut after the commit")


def lost_request(commit: Commit) -> CommitTableResponse:
    raise CommitStateUnknownException("the line was cut before the commit")


def connection_reset(commit: Commit) -> CommitTableResponse:
    commit()
    raise ConnectionResetError("connection reset by peer")


def locked(commit: Commit) -> CommitTableResponse:
    raise OperationalError("UPDATE", {}, Exception("database is locked"))


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyCatalog:
    create(tmp_path)
    return FaultyCatalog(open_catalog(tmp_path))


@pytest.fixture
def store(faulty: FaultyCatalog) -> LogStore:
    return store_over(faulty)


@pytest.mark.parametrize("fault", [refused, lost_response, lost_request, connection_reset, locked])
def test_an_append_that_meets_a_fault_lands_once(store: LogStore, faulty: FaultyCatalog, fault: object) -> None:
    faulty.faults = [fault, fault]  # type: ignore[list-item]
    result = store.append(TOPIC, new_records(("a", "1"), ("b", "2")), "run", NOW_MS)
    assert [(each.base_offset, each.last_offset) for each in result.partitions] == [(0, 1)]
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]
    assert faulty.commits > 0


@pytest.mark.parametrize("fault", [refused, lost_response, lost_request, connection_reset, locked])
def test_a_swap_that_meets_a_fault_lands_once(store: LogStore, faulty: FaultyCatalog, fault: object) -> None:
    append_each(store, [("a", "1")], [("a", "2")])
    outcome = rewritten(store, step_for(store.logs(TOPIC)[0]))
    faulty.faults = [fault]  # type: ignore[list-item]
    store.swap(TOPIC, [outcome], "run")
    assert values(store) == [(0, 1, b"2")]
    assert store.logs(TOPIC)[0].checkpoint == 2


@pytest.mark.parametrize("fault", [refused, lost_response, lost_request, connection_reset, locked])
def test_an_ingest_that_meets_a_fault_lands_once(store: LogStore, faulty: FaultyCatalog, fault: object) -> None:
    segments = staged(store, TOPIC, 0, [Record(7, b"a", b"1", NOW_MS)])
    faulty.faults = [fault]  # type: ignore[list-item]
    store.ingest(TOPIC, [Arrival(OffsetRange(0, None, 5, 9), tuple(segments))], SourceIdentity("users"), 1, "run")
    assert values(store) == [(0, 7, b"1")]
    assert store.source_of(TOPIC).positions == (9,)


def test_a_lost_response_is_resolved_when_others_have_appended_since(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    def lost_and_overtaken(commit: Commit) -> CommitTableResponse:
        commit()
        append_each(store_at(tmp_path), [("x", "other")])
        raise CommitStateUnknownException("the line was cut after the commit")

    faulty.faults = [lost_and_overtaken]
    result = store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert result.partitions[0].base_offset == 0
    assert values(store) == [(0, 0, b"1"), (0, 1, b"other")]


def expired_by_another_program(home: Path) -> None:
    """Expire all snapshots but the current one, as Spark does: without a word to keptlog."""
    table = load_topic_table(open_catalog(home), TOPIC)
    table.maintenance.expire_snapshots().by_ids(
        [each.snapshot_id for each in table.metadata.snapshots if each != table.current_snapshot()]
    ).commit()


def test_a_lost_response_whose_snapshot_a_purge_has_expired_since_is_resolved(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    def lost_and_purged(commit: Commit) -> CommitTableResponse:
        commit()
        other = store_at(tmp_path)
        append_each(other, [("x", "other")])
        other.purge(TOPIC, 2**45)
        raise CommitStateUnknownException("the line was cut after the commit")

    faulty.faults = [lost_and_purged]
    result = store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert result.partitions[0].base_offset == 0
    assert values(store) == [(0, 0, b"1"), (0, 1, b"other")]


def test_a_lost_request_is_sent_again_although_a_purge_has_expired_snapshots_since(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path
) -> None:
    def lost_and_purged(commit: Commit) -> CommitTableResponse:
        other = store_at(tmp_path)
        append_each(other, [("x", "1")], [("x", "2")])
        other.purge(TOPIC, 2**45, 2**45)
        raise CommitStateUnknownException("the line was cut before the commit")

    faulty.faults = [lost_and_purged]
    store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2"), (0, 2, b"1")]


@pytest.mark.parametrize("answer", [CommitStateUnknownException, CommitFailedException])
def test_an_answer_whose_snapshot_another_program_has_expired_since_is_reported_as_unknown(
    store: LogStore, faulty: FaultyCatalog, tmp_path: Path, answer: type[Exception]
) -> None:
    def lost_and_expired(commit: Commit) -> CommitTableResponse:
        commit()
        append_each(store_at(tmp_path), [("x", "other")])
        expired_by_another_program(tmp_path)
        raise answer("the line was cut after the commit")

    faulty.faults = [lost_and_expired]
    with pytest.raises(CommitStateUnknown, match=r"expired by another program.*--run-id run$"):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"other")]


@pytest.mark.parametrize(
    ("fault", "error", "attempts"),
    [
        (refused, StalePlan, MAX_LOST_RACES),
        (lost_request, CommitStateUnknown, MAX_OUTAGES),
        (locked, StorageUnavailable, MAX_OUTAGES),
    ],
)
def test_attempts_are_bounded_and_the_error_says_whether_it_may_have_landed(
    store: LogStore, faulty: FaultyCatalog, fault: object, error: type[KeptlogError], attempts: int
) -> None:
    faulty.faults = [fault] * 1000  # type: ignore[list-item]
    with pytest.raises(error):
        store.append(TOPIC, new_records(("a", "1")), "run", NOW_MS)
    assert faulty.commits == attempts
    assert values(store) == []


def pauses_of(faulty: FaultyCatalog, fault: object, run_id: str) -> list[float]:
    """How long an append waits between its attempts, in seconds, if every one of them meets this fault."""
    faulty.faults = [fault] * 1000  # type: ignore[list-item]
    slept: list[float] = []
    with pytest.raises(KeptlogError):
        LogStore(faulty, {}, slept.append, new_id).append(TOPIC, new_records(("a", "1")), run_id, NOW_MS)
    return slept


def test_pauses_of_an_outage_grow_and_differ_between_runs(faulty: FaultyCatalog) -> None:
    one, two = (pauses_of(faulty, locked, run_id) for run_id in ("one", "two"))
    assert one != two
    assert one[0] < 0.1 < one[-1] <= 2


def test_a_lost_race_is_tried_again_soon_or_a_slow_swap_would_starve_beside_busy_writers(
    faulty: FaultyCatalog,
) -> None:
    one, two = (pauses_of(faulty, refused, run_id) for run_id in ("one", "two"))
    assert one != two
    assert all(0 < seconds <= 0.05 for seconds in one + two)


def test_an_alteration_that_gets_no_answer_is_made_once_more_and_holds(store: LogStore, faulty: FaultyCatalog) -> None:
    faulty.faults = [lost_response]
    assert store.alter_topic(TOPIC, {"segment.ms": "5"}).config.segment_ms == 5


def test_a_catalog_out_of_reach_is_unavailable(
    store: LogStore, faulty: FaultyCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(identifier: object) -> object:
        raise ConnectionRefusedError("connection refused")

    monkeypatch.setattr(faulty, "load_table", unreachable)
    for call in (
        lambda: store.logs(TOPIC),
        lambda: store.append(TOPIC, [], "run", 0),
        lambda: store.swap(TOPIC, [], "r"),
    ):
        with pytest.raises(StorageUnavailable, match="connection refused"):
            call()
