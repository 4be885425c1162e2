"""A commit that is tried again says so: a warning for each outage, and few lines for many lost races."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import CommitTableResponse
from sqlalchemy.exc import OperationalError

from keptlog.errors import StalePlan, StorageUnavailable
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.commit import MAX_LOST_RACES, MAX_OUTAGES
from keptlog.table.store import LogStore
from tests.logging.lines import lines
from tests.table.stores import NOW_MS, TOPIC, FaultyCatalog, create, new_records, store_over

Commit = Callable[[], CommitTableResponse]


def refused(commit: Commit) -> CommitTableResponse:
    raise CommitFailedException("branch main has changed\nand more")


def locked(commit: Commit) -> CommitTableResponse:
    raise OperationalError("UPDATE", {}, Exception("database is locked"))


def lost_response(commit: Commit) -> CommitTableResponse:
    commit()
    raise CommitStateUnknownException("the line was cut")


@pytest.fixture
def faulty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> FaultyCatalog:
    caplog.set_level(logging.DEBUG)
    create(tmp_path)
    return FaultyCatalog(open_catalog(tmp_path))


@pytest.fixture
def store(faulty: FaultyCatalog) -> LogStore:
    return store_over(faulty)


def append(store: LogStore) -> None:
    store.append(TOPIC, new_records(("a", "1")), "run-7", NOW_MS)


def test_a_commit_that_lands_at_once_says_nothing(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    append(store)
    assert lines(caplog, logging.DEBUG) == []


def test_each_outage_that_is_tried_again_is_one_warning(
    store: LogStore, faulty: FaultyCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.faults = [locked] * 3
    append(store)
    told = lines(caplog, logging.DEBUG)
    assert [level for level, _ in told] == ["WARNING"] * 3
    for number, (_, text) in enumerate(told, start=2):
        why = r"\(OperationalError: \(builtins\.Exception\) database is locked\)"
        expected = rf"topic {TOPIC}, run run-7: .* {why}; attempt {number} of {MAX_OUTAGES} follows in 0\.\d\d s"
        assert re.fullmatch(expected, text), text


def test_a_lost_race_is_one_line_and_no_warning(
    store: LogStore, faulty: FaultyCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.faults = [refused]
    append(store)
    [(level, text)] = lines(caplog, logging.DEBUG)
    assert level == "INFO"
    expected = (
        rf"topic {TOPIC}, run run-7: another commit came first \(CommitFailedException: branch main has changed\); "
        rf"attempt 2 of {MAX_LOST_RACES} follows in 0\.\d\d s"
    )
    assert re.fullmatch(expected, text), text


def test_many_lost_races_are_few_lines(
    store: LogStore, faulty: FaultyCatalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 20
    monkeypatch.setattr("keptlog.table.commits.commit.MAX_LOST_RACES", most)
    faulty.faults = [refused] * most
    with pytest.raises(StalePlan):
        append(store)
    assert len(lines(caplog, logging.DEBUG)) == most - 1
    attempts = [int(re.findall(r"attempt (\d+)", text)[0]) for _, text in lines(caplog)]
    assert attempts == [2, 3, 5, 9, 17]
    assert lines(caplog, logging.WARNING) == []


def test_giving_up_is_the_error_and_no_line(
    store: LogStore, faulty: FaultyCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.faults = [locked] * MAX_OUTAGES
    with pytest.raises(StorageUnavailable):
        append(store)
    assert len(lines(caplog, logging.DEBUG)) == MAX_OUTAGES - 1


def test_an_answer_that_was_lost_is_cleared_up(
    store: LogStore, faulty: FaultyCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.faults = [lost_response]
    append(store)
    (outage, _), resolved = lines(caplog, logging.DEBUG)
    assert outage == "WARNING"
    assert resolved == ("INFO", f"topic {TOPIC}, run run-7: the commit that got no answer has landed")
    caplog.clear()
    append(store)
    assert lines(caplog) == [("INFO", f"topic {TOPIC}, run run-7: it was appended before")]
