"""An apply goes on behind a topic that fails, and stops where the others would fail too."""

from __future__ import annotations

import errno
import time
from itertools import count
from pathlib import Path
from threading import Event
from typing import NoReturn

import pytest
from pyiceberg.io import OutputFile
from pyiceberg.table import Table

from keptlog.errors import StorageUnavailable
from keptlog.log.record import NewRecord
from keptlog.passes import apply
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.passes.applying import applied, applier, file
from tests.passes.conftest import NOW_MS


def take_nothing_of(monkeypatch: pytest.MonkeyPatch, topics: set[str]) -> None:
    """Let the disk take no file of these topics, and give what it has."""
    real = DurableFileIO.new_output

    def new_output(io: DurableFileIO, location: str) -> OutputFile:
        if topics.intersection(location.split("/")):
            raise OSError(errno.EIO, "Input/output error", location)
        return real(io, location)

    monkeypatch.setattr(DurableFileIO, "new_output", new_output)


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_topic_of_which_the_disk_takes_no_file_stops_no_other(store: LogStore, tmp_path: Path, at_once: int) -> None:
    in_the_way = next(tmp_path.rglob("warehouse/keptlog")) / "n2"
    in_the_way.write_text("no folder can be made here")
    lines = [f"  n{number}: {{}}\n" for number in range(1, 10)]
    each = applier(store, at_once)
    done = each.carry_out(each.plan(file(*lines), ("c",)), NOW_MS)
    assert {name: type(error) for name, error in done.failed.items()} == {"n2": StorageUnavailable}
    assert (done.not_tried, list(done.deletions), len(done.done)) == ((), ["c"], 8)
    in_the_way.unlink()
    again = each.carry_out(each.plan(file(*lines)), NOW_MS)
    assert (again.failed, again.not_tried, again.done) == ({}, (), ("n2",))


@pytest.mark.parametrize("at_once", [1, 4])
def test_after_an_outage_nothing_further_is_tried_and_the_same_again_does_the_rest(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """What is there can be read, and nothing is taken from the second topic on."""
    lines = [f"  n{number:02}: {{}}\n" for number in range(1, 30)]
    each = applier(store, at_once)
    with monkeypatch.context() as outage:
        take_nothing_of(outage, {f"n{number:02}" for number in range(2, 30)})
        done = each.carry_out(each.plan(file(*lines), ("c",)), NOW_MS)
    assert {type(error) for error in done.failed.values()} == {StorageUnavailable}
    assert done.done == ("n01",)
    assert 3 <= len(done.failed) < 3 + 2 * at_once
    assert {*done.done, *done.failed, *done.not_tried} == {f"n{n:02}" for n in range(1, 30)} | {"c"}
    assert done.not_tried[-1] == "c"
    again = each.carry_out(each.plan(file(*lines), ("c",)), NOW_MS)
    assert (again.failed, again.not_tried, list(again.deletions)) == ({}, (), ["c"])
    assert len(store.topics()) == 31


def test_what_was_found_to_be_an_outage_stays_one_though_a_slow_look_finds_none(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_nothing_of(monkeypatch, {f"n{number}" for number in range(1, 9)})
    third, looks = Event(), count()

    class Run(apply._Run):
        def _counts(self) -> int:
            counted = super()._counts()
            if counted >= 3:
                third.set()
            return counted

        def _are_others_down(self, name: str) -> bool:
            # The first look answers when others have long found out that it is an outage.
            if next(looks) == 0:
                assert third.wait(120)
                while not self.is_outage:
                    time.sleep(0.01)
            return super()._are_others_down(name)

    monkeypatch.setattr(apply, "_Run", Run)
    each = applier(store, at_once=4)
    done = each.carry_out(each.plan(file(*(f"  n{number}: {{}}\n" for number in range(1, 9))), ("c",)), NOW_MS)
    assert "c" in done.not_tried
    assert store.topics() == ["a", "b", "c"]


@pytest.mark.parametrize("at_once", [1, 4])
def test_where_the_storage_does_not_answer_the_comparison_nothing_is_done(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    def load_table(_: LogStore, name: str) -> NoReturn:
        raise StorageUnavailable(f"topic {name} can't be read: no answer")

    with monkeypatch.context() as outage:
        outage.setattr(LogStore, "load_table", load_table)
        each = applier(store, at_once)
        plan = each.plan(file("  a: {}\n", "  b: {}\n", "  new: {}\n"), ("c",))
    done = each.carry_out(plan, NOW_MS)
    assert {type(error) for error in done.failed.values()} == {StorageUnavailable}
    assert {*done.failed, *done.not_tried} == {"a", "b", "new", "c"}
    assert (done.done, store.topics()) == ((), ["a", "b", "c"])


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_topic_whose_file_the_disk_does_not_give_stops_no_other(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    real = LogStore.load_table

    def load_table(self: LogStore, name: str) -> Table:
        if name == "a":
            raise StorageUnavailable(f"topic {name} can't be loaded: OSError: [Errno 5] Input/output error")
        return real(self, name)

    monkeypatch.setattr(LogStore, "load_table", load_table)
    each = applier(store, at_once)
    lines = ("  a: {}\n", "  b: {config: {segment.ms: 5000}}\n", "  new: {}\n")
    done = each.carry_out(each.plan(file(*lines), ("c",)), NOW_MS)
    assert (list(done.failed), done.not_tried) == (["a"], ())
    assert (set(done.done), list(done.deletions)) == ({"b", "new"}, ["c"])


def test_a_deletion_that_a_file_keeps_from_ending_stops_no_other(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append("a", [NewRecord(b"k", b"1", NOW_MS, 0)], None, NOW_MS)
    stuck = min(file.path for file in store.files.list(store.data_location("a")))
    real = TableFiles.delete

    def delete(files: TableFiles, path: str) -> None:
        if path == stuck:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        real(files, path)

    monkeypatch.setattr(TableFiles, "delete", delete)
    done = applied(store, "  new: {}\n", delete=("a", "b", "c"))
    assert (list(done.failed), done.not_tried, list(done.deletions)) == (["a"], (), ["a", "b", "c"])
    assert stuck in str(done.failed["a"])
    assert (store.topics(), store.being_deleted()) == (["new"], ["a"])
