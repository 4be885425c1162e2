"""A store that does not answer is told, though nothing is read of topics that have not changed."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.passes.observer import Observer, observe
from keptlog.passes.standings import Standings, look_at_standings
from keptlog.storage.refusal import StoreRefused
from keptlog.table.io.impatience import impatient
from keptlog.table.metadata.logs import ObservedTopic
from keptlog.table.reading.cache import TopicCache
from keptlog.table.store import LogStore
from keptlog.table.unopened import UnopenedStore
from keptlog.table.waiting.rest import TRIED_AGAIN_MS
from tests.table.buckets import ABucket
from tests.table.counted_s3 import RESET, CountedS3
from tests.table.stores import COMPACTED, NOW_MS, new_id
from tests.table.test_requests import bucket, s3, server, store
from tests.table.test_store_faults import BUSY, DENIED, EXPIRED, always

__all__ = ["bucket", "s3", "server", "store"]

FAULTS = {"reset": RESET, "denied": DENIED, "expired": EXPIRED}
TOPICS = ("orders", "users")


@pytest.fixture(autouse=True)
def topics(store: LogStore) -> None:
    for name in TOPICS:
        store.create_topic(name, 1, COMPACTED)


@pytest.fixture
def observer(store: LogStore, s3: CountedS3) -> Observer:
    """One that has seen all there is."""
    observer = Observer(store, lambda: 0)
    observer.look(NOW_MS)
    s3.forget()
    return observer


@pytest.mark.parametrize("fault", FAULTS)
def test_whoever_looks_again_and_again_is_told_of_an_outage_and_of_its_end(
    observer: Observer, s3: CountedS3, bucket: ABucket, fault: str
) -> None:
    s3.refuse = always(FAULTS[fault])
    with pytest.raises(StorageUnavailable, match=f"^s3://{bucket.name} can't be read: "):
        observer.look(NOW_MS)
    s3.refuse = always(DENIED, "DELETE")
    assert {each.log.topic_partition.topic for each in observer.look(NOW_MS).assessments} == {*TOPICS}


def test_whoever_looks_once_is_told_too(store: LogStore, s3: CountedS3) -> None:
    observe(store, now_ms=NOW_MS)
    s3.refuse = always(DENIED)
    seen = observe(store, now_ms=NOW_MS)
    assert seen.outage
    assert sorted(seen.unreadable) == [*TOPICS]


def test_status_shows_what_is_known_and_names_the_store(
    store: LogStore, s3: CountedS3, bucket: ABucket, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()

    def look() -> Standings:
        """As a process of its own does: it has in memory what the one before has put aside."""
        opened = LogStore(store.committer.catalog, {}, time.sleep, new_id, TopicCache(home))
        return look_at_standings(UnopenedStore(home, {}, lambda: opened), now_ms=NOW_MS)

    for _ in range(3):  # the first reads the tables, the second what was put aside of them, the third how they stand
        assert not look().away
        s3.refuse = always(DENIED)
        seen = look()
        assert ([*seen.topics], [*seen.away], [*seen.unreadable]) == ([*TOPICS], [f"s3://{bucket.name}"], [])
        s3.refuse = always(DENIED, "DELETE")


def test_a_bucket_that_is_gone_is_an_outage(observer: Observer, bucket: ABucket) -> None:
    for each in bucket.client.list_objects_v2(Bucket=bucket.name)["Contents"]:
        bucket.client.delete_object(Bucket=bucket.name, Key=each["Key"])
    bucket.client.delete_bucket(Bucket=bucket.name)
    with pytest.raises(StorageUnavailable, match=r"the bucket does not exist \(NoSuchBucket\)"):
        observer.look(NOW_MS)


@pytest.mark.parametrize("turn", [0, 1])
def test_what_is_refused_of_one_topic_is_no_outage_of_the_store(observer: Observer, s3: CountedS3, turn: int) -> None:
    s3.refuse = lambda request: DENIED if "/users/" in request.path else None
    assert not observer.look(NOW_MS + turn * 1000).unreadable


@pytest.mark.parametrize("turn", [0, 1])
def test_a_store_that_says_nothing_is_to_be_tried_again_though_it_refuses_one_topic(
    observer: Observer, s3: CountedS3, turn: int
) -> None:
    s3.refuse = lambda request: DENIED if "/users/" in request.path else RESET
    with pytest.raises(StorageUnavailable) as away:
        observer.look(NOW_MS + turn * 1000)
    assert not away.value.is_refused


@pytest.mark.parametrize("turn", range(4))
def test_topics_that_are_refused_for_themselves_take_no_other_with_them(
    store: LogStore, s3: CountedS3, turn: int
) -> None:
    """A policy refuses by prefix, so that neighbours are refused together; a tick may ask for the same each time."""
    for number in range(3):
        store.create_topic(f"private-{number}", 1, COMPACTED)
    observer = Observer(store, lambda: 0)
    observer.look(NOW_MS)
    s3.refuse = lambda request: DENIED if "/private-" in request.path else None
    for tick in range(3):
        assert not observer.look(NOW_MS + turn * 1000 + tick * 30_000).unreadable


def test_a_store_that_says_nothing_is_asked_twice_for_each_topic(observer: Observer, s3: CountedS3) -> None:
    s3.refuse = always(RESET)
    with pytest.raises(StorageUnavailable):
        observer.look(NOW_MS)
    assert len(s3.requests) == 2 * len(TOPICS)  # a read would go on


def test_a_store_that_is_busy_for_one_topic_is_not_away(observer: Observer, s3: CountedS3) -> None:
    s3.refuse = lambda request: BUSY if "/users/" in request.path else None
    for turn in range(2):
        assert not observer.look(NOW_MS + turn * 1000).unreadable


@pytest.mark.parametrize(("busy", "is_away"), [(2, False), (99, True)], ids=["for a moment", "for good"])
def test_a_store_that_is_busy_is_asked_some_times_more_before_it_is_away_also_if_it_has_one_topic(
    store: LogStore, s3: CountedS3, busy: int, *, is_away: bool
) -> None:
    store.delete_topic("orders", NOW_MS)
    observer = Observer(store, lambda: 0)
    observer.look(NOW_MS)
    s3.forget()
    s3.refuse = lambda request: BUSY if request.number <= busy else None
    with pytest.raises(StorageUnavailable) if is_away else nullcontext():
        assert not observer.look(NOW_MS).unreadable
    assert len(s3.requests) == (4 if is_away else 3)


@pytest.mark.parametrize(("given", "used"), [("0", "5"), ("2.5", "2.5"), ("60", "5"), (None, "5")])
def test_whoever_has_no_time_waits_no_longer_than_settings_say_and_0_says_nothing(given: str | None, used: str) -> None:
    """boto3 waits for its own minute where the timeout is 0."""
    settings = (("s3.request-timeout", given),) if given else ()
    assert dict(impatient(settings))["s3.request-timeout"] == used


def test_whoever_can_not_ask_a_store_does_not_call_it_away(
    observer: Observer, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow reads without boto3."""

    def missing(path: str, what: str) -> NoReturn:
        raise StoreRefused(f"{path} can't be {what}", "NoBoto3")

    monkeypatch.setattr("keptlog.table.io.remote_files._trusted_reads", missing)
    assert not observer.look(NOW_MS).unreadable
    assert not observe(store, now_ms=NOW_MS).unreadable


def test_erasures_of_topics_whose_store_is_away_stay_known(store: LogStore, s3: CountedS3, tmp_path: Path) -> None:
    """Their deadlines pass meanwhile."""
    open_then = OpenErasures(count=1, earliest_deadline_ms=NOW_MS - 1)
    really = LogStore.observe
    cached = LogStore(store.committer.catalog, {}, time.sleep, new_id, TopicCache(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    observe(cached, now_ms=NOW_MS)

    class Asked(LogStore):
        def observe(self, topic: str, location: str | None = None) -> ObservedTopic:
            return replace(really(self, topic, location), erasures=open_then)

    asked = Asked(store.committer.catalog, {}, time.sleep, new_id, TopicCache(tmp_path / "home"))
    s3.refuse = always(DENIED)
    seen = observe(asked, now_ms=NOW_MS)
    assert sorted(seen.unreadable) == [*TOPICS]
    assert seen.open_erasures == dict.fromkeys(TOPICS, open_then)


def test_a_metadata_file_that_is_gone_is_no_outage_of_the_store(
    observer: Observer, store: LogStore, bucket: ABucket
) -> None:
    for location in store.metadata_locations().values():
        bucket.client.delete_object(Bucket=bucket.name, Key=location.partition(f"{bucket.name}/")[2])
    assert not observer.look(NOW_MS).unreadable


def test_a_quiet_look_costs_a_request_a_store(observer: Observer, s3: CountedS3) -> None:
    observer.look(NOW_MS)
    assert len(s3.requests) == 1


def test_a_store_that_was_waited_for_in_vain_is_left_alone_for_a_while(store: LogStore, s3: CountedS3) -> None:
    time_ms = 0

    def waiting() -> int:
        nonlocal time_ms
        time_ms += 1_000
        return time_ms

    observer = Observer(store, waiting)
    observer.look(NOW_MS)
    s3.refuse = always(RESET)
    with pytest.raises(StorageUnavailable):
        observer.look(NOW_MS)
    s3.forget()
    with pytest.raises(StorageUnavailable):
        observer.look(NOW_MS)
    assert not s3.requests
    time_ms += TRIED_AGAIN_MS
    s3.refuse = always(DENIED, "DELETE")
    assert not observer.look(NOW_MS).unreadable
