"""A topic that its catalog lists and does not find is no topic that was deleted: nobody else would tell of it."""

from __future__ import annotations

import pytest

from keptlog.errors import Action, StorageUnavailable, UnknownTopic
from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.passes.clean import Cleaner
from keptlog.passes.erasures.erase import first_secret
from keptlog.passes.marked import Death
from keptlog.passes.names import named_logs
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.passes.conftest import DAY_MS, NOW_MS
from tests.table.rest_server import Answer, RestServer
from tests.table.stores import TOPIC

NOT_FOUND = Answer(404, kind="NoSuchTableException")


@pytest.fixture(autouse=True)
def hidden(store: LogStore, server: RestServer) -> str:
    """One of two topics."""
    store.create_topic("hidden", 1, {})
    server.hidden.add("hidden")
    return "hidden"


def test_it_is_told_with_what_to_do(store: LogStore, hidden: str) -> None:
    told = "topic hidden: the catalog lists it, and says that there is no such table: the right to load it is missing"
    with pytest.raises(StorageUnavailable, match=told) as raised:
        store.load_table(hidden)
    assert raised.value.is_refused


def test_a_pass_over_all_topics_names_it_and_goes_on(store: LogStore, hidden: str) -> None:
    named = named_logs(store)
    assert [str(log.topic_partition) for log in named.logs] == [f"{TOPIC}-0"]
    assert {name: error.action for name, error in named.unreadable.items()} == {hidden: Action.FIX_STORAGE}


def test_two_of_them_keep_no_log_from_the_mark_for_a_run_that_died(store: LogStore, server: RestServer) -> None:
    """What is refused is answered at once: nobody waits for it."""
    store.create_topic("hidden2", 1, {})
    server.hidden.add("hidden2")
    records = [NewRecord(b"k", value, NOW_MS - 8 * DAY_MS, 0) for value in (b"1", b"2")]
    store.append(TOPIC, records, new_id(), NOW_MS)
    died, out_of_reach = Death(("hidden-0", "hidden2-0", f"{TOPIC}-0"), "run 7 died", NOW_MS), set[str]()
    done = Cleaner(store, in_process_engine(store.files)).mark_still_due(died, out_of_reach, now_ms=NOW_MS)
    assert (done.names, done.untried, out_of_reach) == ((f"{TOPIC}-0",), (), set())
    assert sorted(done.failed) == ["hidden-0", "hidden2-0"]


def test_a_look_at_where_topics_lie_keeps_it(store: LogStore, hidden: str) -> None:
    locations = store.metadata_locations()
    assert sorted(locations) == sorted([TOPIC, hidden])
    assert locations[TOPIC]
    assert not locations[hidden]


def test_the_first_secret_for_erasures_is_made_beside_it(store: LogStore) -> None:
    assert first_secret(store, lambda: b"made") == b"made"


def test_no_secret_is_made_while_every_topic_is_refused(store: LogStore, server: RestServer) -> None:
    server.hidden.add(TOPIC)
    with pytest.raises(StorageUnavailable, match="the catalog lists it"):
        first_secret(store, lambda: b"made")


def test_one_that_was_created_between_is_unknown_as_it_was_when_it_was_asked_for(
    store: LogStore, server: RestServer
) -> None:
    server.answers["load"] = [NOT_FOUND]
    with pytest.raises(UnknownTopic):
        store.load_table(TOPIC)
    assert store.load_table(TOPIC)


def test_one_that_was_deleted_is_unknown(store: LogStore, server: RestServer) -> None:
    server.backend.drop_table((NAMESPACE, TOPIC))
    with pytest.raises(UnknownTopic):
        store.load_table(TOPIC)
    assert TOPIC not in named_logs(store).unreadable
