"""A topic whose location names a store that no client can be made for costs only itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyiceberg.table.update import SetLocationUpdate

from keptlog.errors import NoRightToWrite, NoStoreClient, StorageUnavailable
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.apart import Apart
from keptlog.passes.clean import Cleaner, Pass
from keptlog.storage.leftover import discard, discard_below
from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.in_process import SMALL_CUTS, in_process_engine
from tests.logs import open_store
from tests.passes.conftest import DAY_MS, NOW_MS

NOWHERE = "s4://lake/b"


@pytest.fixture(params=[1, 3], ids=["one log", "three logs"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> LogStore:
    """Topics a, b and c, each with logs to be cleaned; another program has moved b where nobody finds it."""
    store = open_store(tmp_path)
    for topic in "abc":
        store.create_topic(topic, request.param, {"cleanup.policy": "compact"})
        for partition in range(request.param):
            records = [NewRecord(b"k", value, NOW_MS - 8 * DAY_MS, partition) for value in (b"1", b"2")]
            store.append(topic, records, new_id(), NOW_MS)
    table = store.load_table("b")
    with table.transaction() as transaction:
        transaction.set_properties({"write.metadata.path": f"{table.location()}/metadata"})
    with store.load_table("b").transaction() as transaction:
        transaction._apply((SetLocationUpdate(location=NOWHERE),))
    return store


def cleaned(cleaner: Cleaner) -> Pass:
    return cleaner.commit(cleaner.stage(cleaner.begin((), new_id(), now_ms=NOW_MS)))


def names(store: LogStore, *topics: str) -> list[str]:
    return [str(log.topic_partition) for topic in topics for log in store.logs(topic)]


def require_others_cleaned(store: LogStore, done: Pass) -> None:
    assert sorted(str(outcome.step.topic_partition) for outcome in done.committed) == names(store, "a", "c")
    assert sorted(done.failed) == names(store, "b")
    assert done.outage is None
    for error in done.failed.values():
        with pytest.raises(NoStoreClient, match=r"client for s4:// can't be made .*correct the location of the table"):
            raise error


def test_the_others_are_cleaned_and_it_is_marked(store: LogStore) -> None:
    done = cleaned(Cleaner(store, in_process_engine(store.files)))
    require_others_cleaned(store, done)
    assert done.blameless == frozenset()
    marked = [str(log.topic_partition) for topic in "abc" for log in store.logs(topic) if log.uncleanable]
    assert marked == names(store, "b")


def test_alone_in_its_pass_it_is_marked_too_and_each_log_is_tried_once(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("keptlog.passes.rewrites.Rewrites.look_for_outage", lambda *_: asked.append("an outage"))
    cleaner = Cleaner(store, in_process_engine(store.files))

    done = cleaner.commit(cleaner.stage(cleaner.begin(["b"], new_id(), now_ms=NOW_MS)))

    assert sorted(done.failed) == names(store, "b")
    assert (done.blameless, done.outage, asked) == (frozenset(), None, [])
    assert [str(log.topic_partition) for log in store.logs("b") if log.uncleanable] == names(store, "b")


@pytest.mark.parametrize("is_cut", [False, True])
def test_so_they_are_where_a_task_is_the_first_to_find_it_out(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    monkeypatch.setattr(TableFiles, "require_client", lambda *_: None)
    engine = in_process_engine(store.files, replace(SMALL_CUTS, whole_log_records=1 if is_cut else 5))
    require_others_cleaned(store, cleaned(Cleaner(store, engine)))


def test_what_nobody_refers_to_there_is_left_and_fails_nobody(tmp_path: Path) -> None:
    left = tmp_path / "0.parquet"
    left.write_bytes(b"staged")
    discard(TableFiles(), [f"{NOWHERE}/0.parquet", str(left)])
    discard_below(TableFiles(), NOWHERE)
    assert not left.exists()


@pytest.mark.parametrize("path", ["/w/0", "file:///w/0", "s3://lake/w/0", "s3://lake//0"])
def test_a_store_that_is_only_out_of_reach_is_known(path: str) -> None:
    TableFiles().require_client(path)


@pytest.mark.parametrize(
    ("topics", "are_blamed"),
    [("bbb", True), ("abc", False), ("a b", True), ("!b", True), ("!bb", True), ("!bc", False), ("! b", True)],
)
def test_where_no_log_of_several_topics_has_a_client_it_is_the_fault_of_none(topics: str, *, are_blamed: bool) -> None:
    """Of workers that lack what they need. One topic alone is, and so is one beside others that fail otherwise.

    A topic that is shut says nothing of the others.
    """
    steps = [SimpleNamespace(topic_partition=TopicPartition(topic, n)) for n, topic in enumerate(topics)]
    otherwise = {" ": StorageUnavailable("no answer"), "!": NoRightToWrite("shut")}
    errors = [otherwise.get(step.topic_partition.topic, NoStoreClient("no")) for step in steps]
    apart = Apart(lambda some: [errors[steps.index(step)] for step in some], lambda _: None, "r")  # type: ignore[arg-type]
    apart.rewrite_all(steps)  # type: ignore[arg-type]
    blamed = {name for name, error in apart.failed.items() if isinstance(error, NoStoreClient)} - apart.blameless
    assert (len(blamed) > 0, apart.outage is None) == (are_blamed, are_blamed)
