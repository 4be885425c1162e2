"""A folder, a pipe or a link to itself in the place of a log's file is damage that is named, and is not tried again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.broker import BrokerConfig
from keptlog.passes.clean import Cleaner
from keptlog.passes.stored_files import are_on_disk, files_on_disk, wrong_in_storage, wrong_on_disk
from keptlog.passes.verify import verify_log
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.passes.conftest import DAY_MS, NOW_MS

_MEND = "put the file back from a copy of the storage"


def _folder(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


_WAYS = {
    "it is a folder": _folder,
    "it is a named pipe, and no file": os.mkfifo,
    "it is a link that leads to itself, and to no file": _loop,
}
in_every_way = pytest.mark.parametrize(("why", "put"), _WAYS.items(), ids=["folder", "pipe", "loop"])
Put = Callable[[Path], None]


def _segment(store: LogStore, put: Put) -> str:
    path = store.logs("b")[0].segments[0].path
    file = Path(path.removeprefix("file://"))
    file.unlink()
    put(file)
    return path


@in_every_way
def test_a_clean_names_it_as_damage_and_does_the_other_logs(store: LogStore, why: str, put: Put) -> None:
    path = _segment(store, put)
    cleaner = Cleaner(store, in_process_engine(store.files), BrokerConfig())

    done = cleaner.commit(cleaner.stage(cleaner.begin([], new_id(), now_ms=NOW_MS, requested=False)))

    error = done.failed["b-0"]
    assert isinstance(error, LogCorrupt)
    assert f"{path} can't be opened ({why}): it is damaged; {_MEND}" in str(error)
    assert "try again" not in str(error)
    assert [outcome.step.topic_partition.topic for outcome in done.committed] == ["a", "c"]


def test_a_file_in_the_place_of_its_folder_is_told_as_a_segment_that_is_missing(store: LogStore) -> None:
    folder = Path(store.logs("b")[0].segments[0].path.removeprefix("file://")).parent
    folder.rename(folder.with_name("away"))
    folder.touch()
    cleaner = Cleaner(store, in_process_engine(store.files), BrokerConfig())

    done = cleaner.commit(cleaner.stage(cleaner.begin([], new_id(), now_ms=NOW_MS, requested=False)))

    assert "is missing from storage" in str(done.failed["b-0"])
    g1 = verify_log(store, store.logs("b")[0], NOW_MS)[0]
    assert (g1.is_looked_at, g1.passed) == (True, False)
    with pytest.raises(LogCorrupt, match="is missing from storage"):
        list(store.read("b"))


@in_every_way
def test_who_reads_is_told_the_same(store: LogStore, why: str, put: Put) -> None:
    _segment(store, put)
    with pytest.raises(LogCorrupt, match=why):
        list(store.read("b"))


@in_every_way
def test_verify_finds_that_g1_is_broken(store: LogStore, why: str, put: Put) -> None:
    _segment(store, put)
    g1 = verify_log(store, store.logs("b")[0], NOW_MS)[0]
    assert g1.is_looked_at
    assert not g1.passed
    assert why in g1.description


@in_every_way
def test_a_listing_and_a_disk_tell_that_the_file_is_not_there_as_it_was_written(
    store: LogStore, why: str, put: Put
) -> None:
    assert why
    files = files_on_disk(store.logs("b"))
    assert files
    assert are_on_disk(files)
    path = _segment(store, put)
    log = store.logs("b")[0]
    assert not are_on_disk(files)
    on_disk = wrong_on_disk([log])[log.topic_partition]
    assert not isinstance(on_disk, StorageUnavailable)
    assert [each.is_missing for each in on_disk] == [True]
    assert [each.path for each in wrong_in_storage(store, log)] == [path]


@in_every_way
def test_a_purge_deletes_nothing_of_such_a_topic(store: LogStore, why: str, put: Put) -> None:
    assert why
    path = _segment(store, put)
    with pytest.raises(LogCorrupt, match="nothing was deleted") as told:
        store.purge("b", NOW_MS + 30 * DAY_MS)
    assert path in str(told.value)
