"""A segment that loses bytes between the look at its log and the reading of it does not pass for a whole one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.ingest.kafka_logs import KafkaLogs
from keptlog.table.store import LogStore
from tests.ingest.directories import records_of, run_import, some_batch, some_records, write_log


@contextmanager
def cut_off_between(path: Path, left_bytes: int) -> Iterator[None]:
    """Meanwhile, a file loses its end after the look at its log, and before anything is read of it."""
    cut = KafkaLogs.cut

    def cut_off_and_cut(self: KafkaLogs, *given: Any) -> Any:
        os.truncate(path, left_bytes)
        return cut(self, *given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(KafkaLogs, "cut", cut_off_and_cut)
        yield


@pytest.mark.parametrize("skip_corrupt", [False, True])
@pytest.mark.parametrize("base", [0, 20])
@pytest.mark.parametrize("left_bytes", [0, len(some_batch(0)), len(some_batch(0)) + 7])
def test_its_log_stops_and_the_next_import_brings_what_is_there(
    store: LogStore, there: Path, base: int, left_bytes: int, *, skip_corrupt: bool
) -> None:
    files = {at: write_log(there, "users-0", [some_batch(at), some_batch(at + 10)], base_offset=at) for at in (0, 20)}
    write_log(there, "orders-0", [some_batch(0)])
    whole = files[base].read_bytes()
    with cut_off_between(files[base], left_bytes):
        stopped = run_import(store, there, "1", skip_corrupt=skip_corrupt)
    assert list(stopped.failed) == ["users-0"]
    assert isinstance(stopped.failed["users-0"], StorageUnavailable)
    assert "became shorter while it was read" in str(stopped.failed["users-0"])
    assert len(records_of(store, "orders")) == 10
    files[base].write_bytes(whole)
    assert not run_import(store, there, "2").failed
    assert records_of(store, "users") == some_records(0, 40)
