"""A directory may lack the head of a log, which its broker keeps elsewhere: that is told, where it is not here yet."""

from __future__ import annotations

from pathlib import Path

from keptlog.home import new_id
from tests.ingest.directories import records_of, run_import, some_batch, some_records, write_log, write_log_starts
from tests.logs import open_store

TOLD = (
    "users-0: the broker noted that it begins at 0, and its segments here begin at 1000: what lies between is "
    "elsewhere (tiered storage), or was deleted since, and does not come in"
)


def test_the_head_that_is_not_in_the_directory_is_told_until_it_is_behind_the_position(tmp_path: Path) -> None:
    store, there = open_store(tmp_path / "home"), tmp_path / "logs"
    write_log(there, "users-0", [some_batch(1000)], base_offset=1000)
    write_log_starts(there, users=0)
    first = run_import(store, there, new_id())
    assert (first.warnings, first.failed) == ((TOLD,), {})
    assert records_of(store, "users") == some_records(1000, 10)
    again = run_import(store, there, new_id())
    assert (again.warnings, again.failed) == ((), {})


def test_a_log_that_goes_on_behind_a_head_that_never_came_tells_where_that_is_perhaps(tmp_path: Path) -> None:
    store, there = open_store(tmp_path / "home"), tmp_path / "logs"
    path = write_log(there, "users-0", [some_batch(0)])
    write_log_starts(there, users=0)
    assert run_import(store, there, new_id()).warnings == ()
    path.unlink()
    write_log(there, "users-0", [some_batch(1000)], base_offset=1000)
    stopped = run_import(store, there, new_id())
    assert stopped.warnings == (TOLD,)
    assert list(stopped.failed) == ["users-0"]


def test_a_log_that_begins_where_or_behind_where_its_broker_noted_lacks_nothing(tmp_path: Path) -> None:
    store, there = open_store(tmp_path / "home"), tmp_path / "logs"
    write_log(there, "users-0", [some_batch(1000)], base_offset=1000)
    write_log(there, "orders-0", [some_batch(1000)], base_offset=1000)
    write_log(there, "plain-0", [some_batch(1000)], base_offset=1000)
    write_log_starts(there, users=1000, orders=1003)
    assert run_import(store, there, new_id()).warnings == ()
