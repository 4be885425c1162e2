"""Credentials that a catalog gives for each table open its segments too; nobody else knows them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from examples.lake.s3_server import KEYS
from keptlog.engine.engine import Engine
from keptlog.engine.jobs import Result, Task
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_logs import KafkaLogs
from keptlog.progress import Progress, silent
from keptlog.sources.kafka_log.directory import log_directories
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from keptlog.table.io.vending import VENDED, for_path, remember
from keptlog.table.metadata.forward_in_time import forward_in_time
from keptlog.table.store import LogStore
from tests.in_process import InProcessJobs
from tests.ingest.directories import some_batch, write_log
from tests.table.buckets import new_bucket, s3_server
from tests.table.rest_server import RestServer, rest_server
from tests.table.stores import COMPACTED, TOPIC, append_each, clean, new_id, step_for, values

IO = {"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    """A catalog that alone knows how its storage is reached, and tells it with each table."""
    with s3_server() as endpoint:
        how = {"s3.endpoint": endpoint, **KEYS}
        warehouse = f"s3://{new_bucket(endpoint, None).name}"
        backend = SqlCatalog("backend", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse, **IO, **how)
        with rest_server(forward_in_time(backend, None)) as server:
            server.config = how
            yield server


@pytest.fixture
def store(server: RestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", server.uri)
    return LogStore(open_catalog(tmp_path / "home"), {}, lambda _: None, new_id)


def test_segments_are_written_read_and_purged_with_what_the_catalog_vends(store: LogStore) -> None:
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")], [("a", "2")])
    clean(store)
    assert values(store) == [(0, 1, b"2")]
    assert len(store.purge(TOPIC, 2**45).deleted_files) == 2
    assert not any(name.startswith("s3.access") for name, _ in store.committer.catalog.properties.items())


def test_a_task_takes_along_what_was_vended(store: LogStore) -> None:
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")])
    (segment,) = store.logs(TOPIC)[0].segments
    files: TableFiles = pickle.loads(pickle.dumps(store.files))  # noqa: S301  # its own
    assert files.exists(segment.path)


def test_a_task_takes_along_only_what_was_vended_for_where_it_works(store: LogStore) -> None:
    other = "of-nobodys-business"
    for name in (TOPIC, other):
        store.create_topic(name, 1, COMPACTED)
    append_each(store, [("a", "1")], [("a", "2")])
    jobs: list[TakenAlong] = []

    def start(run_id: str, progress: Progress) -> TakenAlong:
        jobs.append(TakenAlong(store.files, run_id, progress, new_id()))
        return jobs[-1]

    location = store.data_location(TOPIC)
    [outcome] = Engine(start, store.files).rewrite([step_for(store.logs(TOPIC)[0])], {TOPIC: location}, "run")
    store.swap(TOPIC, [outcome], "run")
    assert values(store) == [(0, 1, b"2")]
    assert TakenAlong.taken
    assert all(taken == {store.describe_topic(TOPIC).location} for taken in TakenAlong.taken)
    assert store.describe_topic(other).location in dict(store.files.properties)[VENDED]


class TakenAlong(InProcessJobs):
    """Does tasks with what they would take along, and notes for which locations they have credentials."""

    taken: ClassVar[list[set[str]]] = []

    def run(self, tasks: Sequence[Task], doing: str) -> list[Result]:
        files: TableFiles = pickle.loads(pickle.dumps(self.files))  # noqa: S301  # its own
        self.taken.append(set(dict(files.properties)[VENDED]))
        return InProcessJobs(files, self.run_id, self.progress, self.application).run(tasks, doing)


def test_of_more_than_can_be_kept_those_go_that_were_given_the_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keptlog.table.io.vending.MOST_VENDED", 2)
    vended: dict[str, tuple[tuple[str, str], ...]] = {}
    for place in ("a", "b", "a", "c"):
        remember(vended, place, (("s3.access-key-id", place),))
    assert list(vended) == ["a", "c"]
    remember(vended, "a", ())
    assert list(vended) == ["c"]


def test_newer_credentials_take_the_place_of_older_ones(store: LogStore, server: RestServer) -> None:
    store.create_topic(TOPIC, 1, COMPACTED)
    files, location = store.files, store.describe_topic(TOPIC).location
    server.config |= {"s3.access-key-id": "another"}
    store.describe_topic(TOPIC)
    assert dict(for_path(files.properties, f"{location}/data/x"))["s3.access-key-id"] == "another"


def test_the_longest_location_counts_and_no_folder_that_only_begins_like_it() -> None:
    vended = {"s3://lake/a": (("s3.access-key-id", "A"),), "s3://lake/a/b": (("s3.access-key-id", "B"),)}
    properties = (("s3.access-key-id", "own"), (VENDED, vended))

    def key(path: str) -> str:
        return str(dict(for_path(properties, path))["s3.access-key-id"])

    assert [key("s3://lake/a/x"), key("s3://lake/a/b/x"), key("s3://lake/ab/x"), key("s3://lake/a")] == [
        *"AB",
        "own",
        "A",
    ]
    assert for_path((("warehouse", "w"),), "s3://lake/a/x") == (("warehouse", "w"),)


def test_an_import_takes_along_only_what_was_vended_for_the_topics_that_it_writes(
    store: LogStore, tmp_path: Path
) -> None:
    store.create_topic("of-nobodys-business", 1, COMPACTED)
    write_log(tmp_path / "logs", "t-0", [some_batch(0)])
    jobs = partial(TakenAlong, store.files, progress=silent, application=new_id())
    engine = Engine(lambda run_id, _progress: jobs(run_id), store.files)
    source = KafkaLogs({"t": log_directories(tmp_path / "logs")}, COMPACTED, lambda: jobs("look"))
    ingest = Ingest(store, engine, lambda: 0)
    TakenAlong.taken.clear()
    assert not ingest.carry_out(ingest.plan(source), "run").failed
    look, *writing = TakenAlong.taken
    assert look == set()
    assert writing == [{store.describe_topic("t").location}]
