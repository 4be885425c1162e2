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
from keptlog.errors import StorageUnavailable
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.kafka_logs import KafkaLogs
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Backoff
from keptlog.passes.readers import Readers
from keptlog.progress import Progress, silent
from keptlog.sources.kafka_log.directory import log_directories
from keptlog.storage.files import StoredFile
from keptlog.storage.refusal import StoreRefused
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.catalogs.rest import PatientRestCatalog
from keptlog.table.changes.mark import Failure
from keptlog.table.io.files import Properties, TableFiles
from keptlog.table.io.remote_files import list_remote
from keptlog.table.io.vending import VENDED, Vended, for_path, remember, with_credentials
from keptlog.table.metadata.forward_in_time import forward_in_time
from keptlog.table.reading.cache import TopicCache
from keptlog.table.store import LogStore
from tests.in_process import InProcessJobs
from tests.ingest.directories import some_batch, write_log
from tests.table.buckets import new_bucket, s3_server
from tests.table.rest_server import RestServer, rest_server
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, clean, new_id, step_for, store_over, values

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
    taken: TableFiles = pickle.loads(pickle.dumps(store.files))  # noqa: S301  # its own
    assert taken.exists(segment.path)


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
        own: TableFiles = pickle.loads(pickle.dumps(self.files))  # noqa: S301  # its own
        self.taken.append(set(dict(own.properties)[VENDED]))
        return InProcessJobs(own, self.run_id, self.progress, self.application).run(tasks, doing)


def test_a_commit_goes_with_the_token_that_came_with_the_table(store: LogStore, server: RestServer) -> None:
    """A catalog that is asked without one may give each table its own, and refuse a commit without it."""
    store.create_topic(TOPIC, 1, COMPACTED)
    server.config |= {"token": "of-this-table"}
    catalog = PatientRestCatalog("rest", uri=server.uri, auth={"type": "noop"}, **IO)  # type: ignore[arg-type]  # as a configuration's
    failed = Failure(TopicPartition(TOPIC, 0), "a segment is broken", None)
    store_over(catalog).mark_uncleanable(TOPIC, [failed], NOW_MS, Backoff(1000, 3000))
    assert server.headers["commit"][-1]["Authorization"] == "Bearer of-this-table"


def test_of_more_than_can_be_kept_those_go_that_were_given_the_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keptlog.table.io.vending.MOST_VENDED", 2)
    vended = Vended()
    for place in ("a", "b", "a", "c"):
        remember(vended, place, (("s3.access-key-id", place),))
    assert list(vended) == ["a", "c"]
    remember(vended, "a", ())
    assert list(vended) == ["c"]


def test_newer_credentials_take_the_place_of_older_ones(store: LogStore, server: RestServer) -> None:
    store.create_topic(TOPIC, 1, COMPACTED)
    known, location = store.files, store.describe_topic(TOPIC).location
    server.config |= {"s3.access-key-id": "another"}
    store.describe_topic(TOPIC)
    assert dict(for_path(known.properties, f"{location}/data/x"))["s3.access-key-id"] == "another"


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


@pytest.fixture
def home_with_reader(server: RestServer, store: LogStore, tmp_path: Path) -> Path:
    """Somebody has looked at a topic with a reader and a tombstone that a clean has stamped, and it is remembered."""
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1"), ("a", None)], [("b", "2")])
    engine = Engine(lambda run_id, progress: InProcessJobs(store.files, run_id, progress, new_id()), store.files)
    location = store.data_location(TOPIC)
    [outcome] = engine.rewrite([step_for(store.logs(TOPIC)[0])], {TOPIC: location}, "run")
    store.swap(TOPIC, [outcome], "run")
    Readers(store, new_id).add(TOPIC, "search", now_ms=NOW_MS)
    assert readers_seen_by(remembering(tmp_path / "home")) == ["search"]
    return tmp_path / "home"


def remembering(home: Path) -> LogStore:
    """A process that begins, with what is remembered on the disk."""
    return LogStore(open_catalog(home), {}, lambda _: None, new_id, TopicCache(home, is_made=True))


def readers_seen_by(store: LogStore) -> list[str]:
    observed = store.observe(TOPIC, store.metadata_locations()[TOPIC])
    return [hold.reader for log in observed.logs for hold in log.holds.readers]


def test_a_new_process_that_remembers_a_topic_asks_for_the_credentials_with_which_its_readers_are_looked_up(
    home_with_reader: Path,
) -> None:
    assert readers_seen_by(remembering(home_with_reader)) == ["search"]


def test_credentials_that_have_expired_are_asked_for_anew_by_who_goes_on_looking(
    home_with_reader: Path, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, expired = remembering(home_with_reader), [server.config["s3.access-key-id"]]
    assert readers_seen_by(looking) == ["search"]

    def list_unless_expired(properties: Properties, folder: str) -> Iterator[StoredFile]:
        if dict(for_path(properties, folder))["s3.access-key-id"] in expired:
            raise StoreRefused(f"{folder} can't be listed", "ExpiredToken")
        return list_remote(properties, folder)

    monkeypatch.setattr("keptlog.table.io.files.list_remote", list_unless_expired)
    with pytest.raises(StorageUnavailable, match="ExpiredToken"):
        readers_seen_by(looking)  # the catalog gives the same again
    server.config["s3.access-key-id"] = "new"
    asked = server.asked["load"]
    assert [readers_seen_by(looking) for _ in range(3)] == [["search"]] * 3
    assert server.asked["load"] - server.asked["unchanged"] <= asked + 1


def test_a_catalog_that_vends_nothing_is_not_asked_at_each_look() -> None:
    vended, loads = Vended(), [0]

    def load() -> None:
        loads[0] += 1
        remember(vended, "s3://lake/users", ())

    for _ in range(3):
        with_credentials([(VENDED, vended)], "s3://lake/users", load, lambda: None)
    with_credentials([], "s3://lake/users", load, lambda: None)
    assert loads == [1]


def test_an_outage_of_the_store_is_waited_for_once_and_is_no_reason_to_ask_for_credentials() -> None:
    vended, tries = Vended(), [0]
    remember(vended, "s3://lake/users", (("s3.access-key-id", "A"),))

    def work() -> None:
        tries[0] += 1
        raise OSError("it does not answer")

    with pytest.raises(OSError, match="does not answer"):
        with_credentials([(VENDED, vended)], "s3://lake/users", vended.clear, work)
    assert tries == [1]
