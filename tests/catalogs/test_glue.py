"""Topics in AWS Glue, with PyIceberg's client and a server on loopback: from append to gone, and with faults."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from examples.lake.fault_proxy import Fault, HttpProxy, Request, http_proxy
from keptlog.errors import CommitStateUnknown, InvalidConfig, LogCorrupt, StorageUnavailable
from keptlog.home import monotonic_ms, open_home
from keptlog.passes.observer import Observer
from keptlog.table.commits.commit import MAX_OUTAGES
from keptlog.table.metadata.logs import Locations
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.store import LogStore
from keptlog.table.waiting.side_by_side import AT_ONCE, Patience
from tests.catalogs.conftest import Configure
from tests.catalogs.glue import GlueServer, glue_server
from tests.in_process import in_process_engine
from tests.lake.installed import or_skip
from tests.logs import RealTwin, ReferenceTwin
from tests.table.stores import COMPACTED, NOW_MS, TOPIC, append_each, new_id, new_records, values

DAY_MS = 24 * 3_600_000
BATCHES: list[list[tuple[str, str | None]]] = [[("a", "1"), ("b", "1")], [("a", "2"), ("b", None)], [("c", "1")]]


@pytest.fixture(scope="module")
def glue() -> Iterator[GlueServer]:
    with or_skip(glue_server()) as server:
        yield server


@pytest.fixture
def proxy(glue: GlueServer) -> Iterator[HttpProxy]:
    """Before Glue alone."""
    with http_proxy(glue.endpoint) as started:
        yield started


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def store(glue: GlueServer, proxy: HttpProxy, configure: Configure, pauses: list[float]) -> LogStore:
    """With ``TOPIC`` and a record."""
    catalog = configure(**glue.catalog(proxy.url))()
    store = LogStore(catalog, {}, pauses.append, new_id)
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")])
    proxy.requests.clear()
    return store


def faulty(operation: str, fault: Fault, times: int = 1000) -> Callable[[Request], Fault | None]:
    """The first so many requests of an operation meet a fault."""
    left = [fault] * times
    return lambda request: left.pop() if request.operation == operation and left else None


def operations(proxy: HttpProxy) -> Counter[str]:
    return Counter(request.operation for request in proxy.requests)


def append(store: LogStore) -> None:
    store.append(TOPIC, new_records(("b", "2")), "run", NOW_MS)


@pytest.mark.parametrize("fault", [Fault.FORBIDDEN, Fault.UNAUTHORIZED, Fault.BAD_REQUEST])
def test_a_commit_that_is_refused_for_good_is_sent_once_and_nothing_landed(
    store: LogStore, proxy: HttpProxy, pauses: list[float], fault: Fault
) -> None:
    proxy.fault = faulty("UpdateTable", fault)
    with pytest.raises(StorageUnavailable, match=r"refuses .*nothing landed: see to its permissions and credentials"):
        append(store)
    assert (operations(proxy)["UpdateTable"], pauses) == (1, [])
    assert values(store) == [(0, 0, b"1")]


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.CUT, Fault.SERVER_ERROR, Fault.RESET, Fault.SLOW_DOWN])
def test_a_commit_that_got_no_answer_lands_once(store: LogStore, proxy: HttpProxy, fault: Fault) -> None:
    proxy.fault = faulty("UpdateTable", fault, 2)
    append(store)
    assert values(store) == [(0, 0, b"1"), (0, 1, b"2")]
    landed_at_once = fault in {Fault.LOST_ANSWER, Fault.CUT}
    assert operations(proxy)["UpdateTable"] == (1 if landed_at_once else 3)


def test_a_glue_that_is_always_busy_has_got_nothing(store: LogStore, proxy: HttpProxy) -> None:
    proxy.fault = faulty("UpdateTable", Fault.SLOW_DOWN)
    with pytest.raises(StorageUnavailable, match=r"can't be reached .*ThrottlingException.*nothing landed, try again"):
        append(store)
    assert operations(proxy)["UpdateTable"] == MAX_OUTAGES


def test_a_glue_that_answers_no_commit_leaves_a_doubt(store: LogStore, proxy: HttpProxy) -> None:
    proxy.fault = faulty("UpdateTable", Fault.SERVER_ERROR)
    with pytest.raises(CommitStateUnknown, match="--run-id run"):
        append(store)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (Fault.FORBIDDEN, "AccessDeniedException: told by the proxy; see to its permissions and credentials"),
        (Fault.UNAUTHORIZED, "ExpiredTokenException: told by the proxy; see to its permissions and credentials"),
    ],
)
def test_a_look_that_is_refused_is_one_line(store: LogStore, proxy: HttpProxy, fault: Fault, told: str) -> None:
    proxy.fault = faulty("GetTable", fault)
    with pytest.raises(StorageUnavailable) as refused:
        store.logs(TOPIC)
    assert str(refused.value).startswith(f"topic {TOPIC} can't be ")
    assert str(refused.value).endswith(told)
    assert "\n" not in str(refused.value)


def test_a_glue_that_is_busy_for_a_moment_is_asked_again(store: LogStore, proxy: HttpProxy) -> None:
    proxy.fault = faulty("GetTable", Fault.SLOW_DOWN, 1)
    assert len(store.logs(TOPIC)) == 1


def test_a_glue_that_is_not_there_is_one_line(glue: GlueServer, configure: Configure) -> None:
    with http_proxy(glue.endpoint) as gone:
        url = gone.url
    catalog = configure(**glue.catalog(url), **{"glue.max-retries": "1"})()
    with pytest.raises(StorageUnavailable, match=f'topics can.t be listed: .*"{url}/"; check that it exists'):
        LogStore(catalog, {}, lambda _: None, new_id).topics()


@pytest.mark.parametrize(("name", "text"), [("glue.max-retries", "many"), ("glue.region", "")])
def test_wrong_settings_are_one_line(
    glue: GlueServer, configure: Configure, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(InvalidConfig, match=f"the configured catalog 'keptlog' is not usable: ValueError: .*{name}"):
        configure(**{**glue.catalog(), name: text})()


def test_without_boto3_it_says_what_to_install(glue: GlueServer, configure: Configure) -> None:
    open_one = configure(**glue.catalog())
    with mock.patch.dict(sys.modules, {"boto3": None}):
        sys.modules.pop("pyiceberg.catalog.glue", None)
        with pytest.raises(InvalidConfig) as it:
            open_one()
    assert str(it.value).endswith("this needs boto3: pip install 'keptlog[s3]'")


def test_a_topic_from_its_first_record_to_gone(glue: GlueServer, configure: Configure, tmp_path: Path) -> None:
    configure(**glue.catalog())
    home = open_home(tmp_path)
    settings = {"cleanup.policy": "compact", "segment.ms": "1000", "delete.retention.ms": str(DAY_MS)}
    twins = (RealTwin(home.store, in_process_engine(home.store.files), "users"), ReferenceTwin())
    for twin in twins:
        twin.create(settings)
        for day, batch in enumerate(BATCHES):
            twin.append(new_records(*batch), NOW_MS + day * DAY_MS)
        twin.clean(NOW_MS + 10 * DAY_MS)
        twin.clean(NOW_MS + 20 * DAY_MS)
    assert twins[0].records() == twins[1].records()
    purged = home.purger.purge(now_ms=NOW_MS + 2000 * DAY_MS)
    assert purged.failed == {}
    assert len(purged.receipts["users"].deleted_files) >= 4
    assert twins[0].records() == twins[1].records()
    home.store.delete_topic("users", NOW_MS)
    assert (home.topics(), home.store.being_deleted()) == ([], [])
    assert home.receipts.verify().is_sound


def test_writers_at_the_same_time_lose_nothing(glue: GlueServer, configure: Configure) -> None:
    open_one = configure(**glue.catalog())
    stores = [LogStore(open_one(), {}, lambda seconds: time.sleep(min(seconds, 0.05)), new_id) for _ in range(4)]
    stores[0].create_topic(TOPIC, 1, COMPACTED)

    def write(number: int) -> None:
        for batch in range(5):
            stores[number].append(TOPIC, new_records((f"{number}-{batch}", "1")), new_id(), NOW_MS)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    written = sorted((record.key or b"").decode() for _, record in stores[0].read(TOPIC))
    assert written == [f"{number}-{batch}" for number in range(4) for batch in range(5)]


def with_copies(store: LogStore, count: int) -> Any:
    """Tables that are as the topic is; gives the client, by which they are there at once."""
    client = store.committer.catalog.glue  # type: ignore[attr-defined]
    stored = client.get_table(DatabaseName="keptlog", Name=TOPIC)["Table"]
    shared = {name: stored[name] for name in ("TableType", "Parameters", "StorageDescriptor")}
    for number in range(count):
        client.create_table(DatabaseName="keptlog", TableInput={"Name": f"topic-{number}", **shared})
    return client


def test_who_has_little_time_asks_for_a_page_and_goes_on_behind_it_in_the_next_look(
    store: LogStore, proxy: HttpProxy
) -> None:
    with_copies(store, 220)
    proxy.requests.clear()

    def look(now_ms: int) -> Locations:
        return store.metadata_locations(Patience(lambda: now_ms, now_ms))

    first, second, third = look(1_000), look(2_000), look(5_000)
    assert [(len(each), each.to_be_asked) for each in (first, second, third)] == [(100, 1), (200, 1), (221, 0)]
    assert [each.asked_ago_ms for each in (first, second, third)] == [0, 1_000, 4_000]
    assert operations(proxy) == {"GetTables": 3}
    again = look(9_000)
    assert (len(again), again.to_be_asked, again.asked_ago_ms) == (221, 0, 7_000)
    assert len(store.metadata_locations()) == 221
    assert operations(proxy) == {"GetTables": 3 + 1 + 3}


def test_where_topics_are_is_a_request_a_hundred(store: LogStore, glue: GlueServer, proxy: HttpProxy) -> None:
    client = with_copies(store, 120)
    client.create_table(DatabaseName="keptlog", TableInput={"Name": "foreign", "Parameters": {}})
    proxy.requests.clear()
    assert len(store.metadata_locations()) == 121
    assert operations(proxy) == {"GetTables": 2}
    observer = Observer(store, monotonic_ms)
    assert len(observer.look(NOW_MS).assessments) == 121
    assert 1 < proxy.most_at_once <= AT_ONCE
    proxy.requests.clear()
    append_each(store, [("b", "2")])
    proxy.requests.clear()
    assert observer.look(NOW_MS).behind == 0
    assert operations(proxy) == {"GetTables": 2, "GetTable": 1}


def take_out_location(client: Any, database: str) -> None:
    """As a program does that knows nothing of Iceberg."""
    stored = client.get_table(DatabaseName=database, Name=TOPIC)["Table"]
    changed = {name: stored[name] for name in ("Name", "TableType", "StorageDescriptor")}
    client.update_table(DatabaseName=database, TableInput=changed | {"Parameters": {"table_type": "ICEBERG"}})


def test_a_topic_whose_metadata_location_another_program_took_out_is_damaged_and_not_gone(store: LogStore) -> None:
    client = with_copies(store, 1)
    take_out_location(client, NAMESPACE)
    observer = Observer(store, monotonic_ms)
    for _ in range(2):
        seen = observer.look(NOW_MS)
        assert (sorted(seen.locations), list(seen.unreadable)) == ([TOPIC, "topic-0"], [TOPIC])
        assert "its entry in the catalog names no metadata file; set metadata_location" in str(seen.unreadable[TOPIC])


def test_one_whose_deletion_was_begun_says_the_same(store: LogStore) -> None:
    client = with_copies(store, 1)
    catalog = store.committer.catalog
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, TOPIC), (DELETING, TOPIC))
    take_out_location(client, DELETING)
    with pytest.raises(LogCorrupt, match=f"topic {TOPIC}: its entry in the catalog names no metadata file; set"):
        store.delete_topic(TOPIC, NOW_MS)


@pytest.mark.parametrize("name", ["Orders", "EU.orders"])
def test_a_name_that_glue_would_change_is_refused_and_nothing_is_left(store: LogStore, name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"topic '{name}': .*small letters.*: name it '{name.lower()}'"):
        store.create_topic(name, 1, COMPACTED)
    assert store.topics() == [TOPIC]
    location = store.load_table(TOPIC).location().rpartition("/")[0]
    assert {each.path.removeprefix(location).split("/")[1] for each in store.files.list(location)} == {TOPIC}
