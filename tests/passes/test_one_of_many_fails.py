"""Logs that fail among many cost no other in the same pass: one job does all, and the disk keeps nothing of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from keptlog.disk import user_name
from keptlog.engine.jobs import Result, Task
from keptlog.engine.tasks import Sizes
from keptlog.errors import Action, KeptlogError, NoRightToWrite, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.result import RewriteResult
from keptlog.log.steps import CleanStep
from keptlog.passes.apart import Apart
from keptlog.passes.clean import Cleaner, Pass
from keptlog.table.io import local_files
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from keptlog.table.waiting.reaching import reaching
from keptlog.whole_file import sync
from tests.in_process import InProcessJobs, in_process_engine
from tests.logs import open_store
from tests.passes.conftest import DAY_MS, NOW_MS

TOPICS = "abcdefgh"
VALUE_BYTES = 20_000


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """Topics of one log each, of which a clean leaves one record of some size."""
    store = open_store(tmp_path)
    for topic in TOPICS:
        store.create_topic(topic, 1, {"cleanup.policy": "compact"})
        values = [os.urandom(VALUE_BYTES) for _ in range(2)]
        store.append(topic, [NewRecord(b"k", value, NOW_MS - 8 * DAY_MS, 0) for value in values], new_id(), NOW_MS)
    return store


@pytest.fixture
def rewrites(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the jobs do that rewrite."""
    really, done = InProcessJobs.run, []

    def run(jobs: InProcessJobs, tasks: Sequence[Task], doing: str) -> list[Result]:
        if doing.startswith("rewriting"):
            done.append(doing)
        return really(jobs, tasks, doing)

    monkeypatch.setattr(InProcessJobs, "run", run)
    return done


@pytest.fixture
def shut(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Topics in whose folders this user may make no file: as Arrow says it."""
    really, topics = local_files.open_local, set[str]()

    def opened(path: str, mode: str) -> pa.OSFile:
        if mode == "wb" and topics.intersection(Path(path).parts):
            said = f"Failed to open local file '{path}'. Detail: [errno 13] Permission denied: 'file://{path}'"
            raise PermissionError(errno.EACCES, said)
        return really(path, mode)

    monkeypatch.setattr(local_files, "open_local", opened)
    return topics


def run(store: LogStore, now_ms: int = NOW_MS) -> Pass:
    cleaner = Cleaner(store, in_process_engine(store.files, Sizes()))
    return cleaner.commit(cleaner.stage(cleaner.begin((), new_id(), now_ms=now_ms)))


@pytest.mark.parametrize("topics", ["c", "cd", TOPICS], ids=["one", "two", "all"])
def test_a_right_that_this_user_lacks_is_told_once_and_in_the_mark_of_each_log(
    store: LogStore, rewrites: list[str], shut: set[str], topics: str
) -> None:
    """It lasts until somebody acts: without a mark nobody is told, and each pass tries again."""
    shut.update(topics)
    done = run(store)
    assert cleaned(done) == [topic for topic in TOPICS if topic not in topics]
    assert (sorted(done.failed), done.blameless) == ([f"{topic}-0" for topic in topics], frozenset())
    folder = f"{store.data_location('c')}/partition=0".removeprefix("file://")
    assert str(done.failed["c-0"]) == (
        f"user {user_name()} may not write to {folder} (Permission denied); nothing was committed: see to its "
        "permissions, then run it again"
    )
    assert done.failed["c-0"].action is Action.FIX_STORAGE
    assert len(rewrites) == 1, "the answer would be the same"
    assert done.outage is None
    marks = {topic: store.logs(topic)[0].uncleanable for topic in TOPICS}
    assert [topic for topic in TOPICS if marks[topic]] == list(topics)
    assert marks["c"]
    assert (marks["c"].reason, marks["c"].action) == (str(done.failed["c-0"]), Action.FIX_STORAGE)
    shut.clear()
    assert cleaned(run(store)) == []
    assert cleaned(run(store, marks["c"].retry_at_ms)) == list(topics)


def test_topics_in_which_no_mark_can_land_take_none_from_others(
    store: LogStore, shut: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root has made two of them, metadata too: what is refused is answered at once, and nothing is out of reach."""
    really = LogStore.mark_uncleanable

    def mark(marking: LogStore, topic: str, *rest: Any) -> Any:
        if topic in shut:
            with reaching(f"topic {topic} can't be committed to"):
                raise PermissionError(errno.EACCES, "Permission denied", f"/warehouse/{topic}/metadata")
        return really(marking, topic, *rest)

    monkeypatch.setattr(LogStore, "mark_uncleanable", mark)
    shut.update("ab")
    for segment in store.logs("h")[0].segments:
        Path(segment.path.removeprefix("file://")).write_bytes(b"damaged")
    done = run(store)
    assert sorted(done.failed) == ["a-0", "b-0", "h-0"]
    assert [topic for topic in TOPICS if topic not in shut and store.logs(topic)[0].uncleanable] == ["h"]


def cleaned(done: Pass) -> list[str]:
    return sorted(outcome.step.topic_partition.topic for outcome in done.committed)


def of_run(folder: Path, done: Pass) -> set[str]:
    return {str(path) for path in folder.rglob("*.parquet") if done.run_id in path.name}


def live(store: LogStore, done: Pass) -> set[str]:
    paths = {segment.path for topic in TOPICS for segment in store.logs(topic)[0].segments}
    return {path.removeprefix("file://") for path in paths if done.run_id in path}


def marked(store: LogStore) -> list[str]:
    return [topic for topic in TOPICS if store.logs(topic)[0].uncleanable]


def test_a_damaged_log_costs_no_second_job_and_no_file_of_another_log(
    store: LogStore, tmp_path: Path, rewrites: list[str]
) -> None:
    Path(store.logs("d")[0].segments[0].path.removeprefix("file://")).write_bytes(b"this is no Parquet file")
    done = run(store)
    assert cleaned(done) == list("abcefgh")
    assert list(done.failed) == ["d-0"]
    assert rewrites == ["rewriting 8 logs"]
    assert of_run(tmp_path, done) == live(store, done)
    assert marked(store) == ["d"]


def with_room_for(outputs: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with room for so many outputs of these logs, and not for one more."""

    def used_bytes() -> int:
        return sum(path.stat().st_size for path in folder.rglob("*.parquet"))

    most_bytes = used_bytes() + outputs * VALUE_BYTES * 5 // 4
    really = TableFiles.open_output

    @contextmanager
    def open_output(files: TableFiles, path: str) -> Iterator[pa.NativeFile]:
        with really(files, path) as sink:
            yield sink
            if path.endswith(".parquet"):
                sink.flush()
                if used_bytes() > most_bytes:
                    raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(TableFiles, "open_output", open_output)


def test_a_disk_with_room_for_some_takes_those_and_keeps_nothing_of_the_others(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        with_room_for(4, tmp_path, patch)
        done = run(store)
    assert len(cleaned(done)) == 4
    assert len(done.failed) == 4
    assert all("is full" in str(error) for error in done.failed.values())
    assert of_run(tmp_path, done) == live(store, done)
    assert marked(store) == []
    again = run(store, NOW_MS + 1)
    assert sorted(cleaned(done) + cleaned(again)) == list(TOPICS)


def test_a_disk_without_room_for_any_is_asked_twice_and_is_no_logs_fault(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewrites: list[str]
) -> None:
    with_room_for(0, tmp_path, monkeypatch)
    done = run(store)
    assert done.blameless == done.failed.keys() == {f"{topic}-0" for topic in TOPICS}
    assert "is full" in str(done.outage)
    assert len(rewrites) == 2
    assert of_run(tmp_path, done) == set()


@pytest.mark.parametrize("others", [2, 7])
def test_a_shut_folder_does_not_make_a_full_disk_the_fault_of_other_logs(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shut: set[str], others: int
) -> None:
    for topic in TOPICS[1 + others :]:
        store.delete_topic(topic, NOW_MS)
    shut.add("a")
    with_room_for(0, tmp_path, monkeypatch)
    done = run(store)
    assert done.failed.keys() - done.blameless == {"a-0"}
    assert len(done.blameless) == others
    assert "is full" in str(done.outage)
    assert [topic for topic in TOPICS[: 1 + others] if store.logs(topic)[0].uncleanable] == ["a"]


def test_a_log_with_none_but_a_shut_one_beside_it_is_at_fault_as_if_it_were_alone(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shut: set[str]
) -> None:
    for topic in TOPICS[2:]:
        store.delete_topic(topic, NOW_MS)
    shut.add("a")
    with_room_for(0, tmp_path, monkeypatch)
    done = run(store)
    assert done.failed.keys() == {"a-0", "b-0"}
    assert not done.blameless
    assert done.outage is None


def test_a_shut_folder_does_not_make_it_the_fault_of_other_logs_that_each_job_dies(store: LogStore) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files, Sizes()))

    def rewrite(steps: Sequence[CleanStep]) -> list[RewriteResult | KeptlogError]:
        if [step.topic_partition.topic for step in steps] == ["a"]:
            return [NoRightToWrite("user bob may not write to /data/a")]
        raise StorageUnavailable("a job died")

    apart = Apart(rewrite, lambda _: None, new_id())
    apart.rewrite_all(cleaner.begin((), new_id(), now_ms=NOW_MS).plan.steps)
    assert apart.failed.keys() - apart.blameless == {"a-0"}
    assert str(apart.outage) == "a job died"


def test_a_log_that_a_disk_refuses_only_when_its_task_waits_for_it_is_found_among_those_of_its_task(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        if "c" in path.parts and path.suffix == ".parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(path)

    monkeypatch.setattr("keptlog.table.io.durable_at_end.sync", refuse)
    done = run(store)
    assert cleaned(done) == list("abdefgh")
    assert list(done.failed) == ["c-0"]
    assert of_run(tmp_path, done) == live(store, done)
