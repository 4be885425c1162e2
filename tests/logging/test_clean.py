"""A pass over several logs, one of them broken: each step of finding it is a warning, and a mark that can't be set."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from keptlog.errors import KeptlogError, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.result import RewriteResult
from keptlog.log.steps import CleanStep
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.rewrites import Rewrites
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logging.lines import lines
from tests.logs import open_store

NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 3_600_000
TOPICS = ("a", "b", "c", "d")


@pytest.fixture
def cleaner(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Cleaner:
    """Four topics of one log each; that of ``c`` has a segment that is no Parquet file."""
    caplog.set_level(logging.DEBUG)
    store = open_store(tmp_path / "home")
    for topic in TOPICS:
        store.create_topic(topic, 1, {"cleanup.policy": "compact", "segment.ms": "1"})
        for value in (b"1", b"2"):
            store.append(topic, [NewRecord(b"k", value, NOW_MS - DAY_MS)], new_id(), NOW_MS - DAY_MS)
    Path(store.logs("c")[0].segments[0].path.removeprefix("file://")).write_bytes(b"this is no Parquet file")
    return Cleaner(store, in_process_engine(store.files))


def clean(cleaner: Cleaner) -> Pass:
    return cleaner.commit(cleaner.stage(cleaner.begin([], "run-7", now_ms=NOW_MS, requested=True)))


def test_a_log_that_fails_alone_is_one_warning(cleaner: Cleaner, caplog: pytest.LogCaptureFixture) -> None:
    assert set(clean(cleaner).failed) == {"c-0"}
    [(level, text)] = lines(caplog)
    assert level == "WARNING"
    assert text.startswith("c-0 is uncleanable: attempt 1 ")


def test_logs_that_are_tried_apart_are_a_warning_each_time(
    cleaner: Cleaner, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that dies as a whole says of nobody that it was he."""
    really = Rewrites.each

    def dies_of_c(self: Rewrites, steps: Sequence[CleanStep]) -> list[RewriteResult | KeptlogError]:
        if len(steps) > 1 and any(step.topic_partition.topic == "c" for step in steps):
            raise StorageUnavailable("the worker was killed")
        return really(self, steps)

    monkeypatch.setattr(Rewrites, "each", dies_of_c)
    assert set(clean(cleaner).failed) == {"c-0"}
    together, halved, marked = lines(caplog)
    for (level, text), count in ((together, 4), (halved, 2)):
        assert level == "WARNING"
        assert re.fullmatch(rf"run run-7: rewriting {count} logs together failed, they are tried apart: .+", text)
    assert marked[0] == "WARNING"
    assert marked[1].startswith("c-0 is uncleanable: attempt 1 ")


def test_a_mark_that_cannot_be_set_is_a_warning(
    cleaner: Cleaner, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> NoReturn:
        raise StorageUnavailable("the catalog is away")

    monkeypatch.setattr(LogStore, "mark_uncleanable", unreachable)
    clean(cleaner)
    assert lines(caplog)[-1] == (
        "WARNING",
        "topic c: 1 log can't be marked as uncleanable, the next pass tries again at once: the catalog is away",
    )
