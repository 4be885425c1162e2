"""A log goes into a topic of a real broker: a consumer there sees what a reader sees here, each record exactly once."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from keptlog.cli import main
from keptlog.errors import InvalidConfig, StalePlan
from keptlog.home import new_id
from keptlog.log.record import Header, NewRecord, Record
from keptlog.log.reference import latest_values
from keptlog.passes import restore
from keptlog.passes.clean import Cleaner
from keptlog.passes.readers import Readers
from keptlog.passes.restore import RestoreResult
from keptlog.sinks.kafka_broker import writer
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.store import LogStore
from tests.broker.broker import DEADLINE_SECONDS
from tests.broker.restoring import restore_of, restore_until_killed, wall_clock_ms
from tests.broker.twins import COMPACTED, KEPT, PARTITIONS, Twins, updates
from tests.in_process import in_process_engine

KILLS = 6
LOOKED_AT_SECONDS = 10
"""So often a broker looks which transactions are open for too long."""
HEADERS: tuple[tuple[Header, ...], ...] = ((), (("é", None), ("a", b""), ("a", b"\xff")))
CLEANED_AT_ONCE = {"cleanup.policy": "compact", "segment.ms": "1", "delete.retention.ms": "3600000"}
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.broker.restoring"])


def odd_records(count: int, seed: int) -> list[NewRecord]:
    """Few keys, tombstones, empty keys and values, odd headers, timestamps in any order."""
    chance = random.Random(seed)
    now_ms = wall_clock_ms()
    return [
        NewRecord(
            key=chance.choice([b"", b"\xff\x00", *(b"key-%d" % number for number in range(30))]),
            value=chance.choice([None, b"", b"value %d" % index, chance.randbytes(50)]),
            timestamp_ms=chance.choice([-1, 1, now_ms - chance.randrange(10**9)]),
            partition=chance.randrange(PARTITIONS),
            headers=chance.choice(HEADERS),
        )
        for index in range(count)
    ]


def small_transactions(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    monkeypatch.setattr(writer, "TRANSACTION_RECORDS", records)


def test_a_consumer_sees_what_a_reader_sees(twins: Twins) -> None:
    twins.create()
    twins.append(*odd_records(3000, seed=1))
    done = twins.restore()
    assert (done.is_created, done.records, done.zero_timestamps) == (False, 3000, 0)
    assert twins.there() == twins.here()


def test_unkeyed_records_go_where_they_may_be(twins: Twins) -> None:
    twins.create(KEPT)
    twins.append(NewRecord(None, b"1", 5, 1), NewRecord(None, None, 6, 1, HEADERS[1]))
    twins.restore()
    assert twins.there() == twins.here()


def test_timestamp_zero_is_sent_as_one_and_counted(twins: Twins) -> None:
    twins.create()
    twins.append(NewRecord(b"a", b"1", 0, 0), NewRecord(b"b", b"2", 1, 0), NewRecord(b"c", b"3", -1, 0))
    assert twins.restore().zero_timestamps == 1
    assert [timestamp_ms for _, _, timestamp_ms, _ in twins.there()[0]] == [1, 1, -1]


def test_a_restore_that_is_complete_adds_what_came_since(twins: Twins) -> None:
    twins.create()
    twins.append(*odd_records(10, seed=2))
    twins.restore()
    assert twins.restore().records == 0
    twins.append(*odd_records(5, seed=3))
    assert twins.restore().records == 5
    assert twins.there() == twins.here()


def test_kills_at_any_moment_lose_and_double_nothing(twins: Twins) -> None:
    twins.create()
    twins.append(*odd_records(300, seed=4))
    chance, killed = random.Random(5), 0
    while killed < KILLS:
        moment = chance.randrange(1, 1500)
        work = (twins.home, twins.broker.bootstrap, twins.topic, moment)
        process = PROCESSES.Process(target=restore_until_killed, args=work)
        process.start()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        assert process.exitcode in {0, -signal.SIGKILL}
        if process.exitcode == 0:
            twins.append(*odd_records(200, seed=killed))
    twins.restore()
    assert twins.there() == twins.here()


def test_a_clean_in_between_changes_what_follows_and_not_where_it_goes_on(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins.create(CLEANED_AT_ONCE)
    twins.append(*updates(("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("b", None), ("c", "2"), ("a", "3")))
    before = twins.here()[0]
    small_transactions(monkeypatch, 3)
    stop_after_one_transaction(twins)
    assert twins.there()[0] == before[:3]
    twins.clean(wall_clock_ms() + 10_000)
    assert len(twins.here()[0]) < len(before)
    twins.restore()
    assert twins.there()[0] == before[:3] + [record for record in before[3:] if record in twins.here()[0]]
    here = [record for _, record in twins.store.read(twins.topic)]
    assert latest_values(twins.broker.records(twins.topic, PARTITIONS)[0]) == latest_values(here)


def stop_after_one_transaction(twins: Twins) -> None:
    def stop(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(restore_of(twins.store, twins.broker.bootstrap), progress=stop).to_broker(twins.topic, twins.topic)


def test_tombstones_that_may_be_gone_since_are_asked_about(twins: Twins) -> None:
    twins.create(CLEANED_AT_ONCE)
    twins.append(*updates(("a", "1"), ("b", "1")))
    twins.restore()
    twins.append(*updates(("a", None), ("b", "2")))
    assert twins.restore(later_ms=7_200_000).records == 2, "nothing behind the position was cleaned"
    twins.append(*updates(("b", None), ("c", "1")))
    twins.clean(wall_clock_ms() + 10_000)
    readers = Readers(twins.store, new_id)
    readers.remove(twins.topic, readers.list([twins.topic], now_ms=wall_clock_ms())[0].reader)
    with pytest.raises(InvalidConfig, match="tombstones behind it may be gone"):
        twins.restore(later_ms=7_200_000 + 3_700_000)
    assert twins.restore(later_ms=7_200_000 + 3_700_000, skip_lost=True).records == 2


def test_records_that_went_from_the_head_are_asked_about(twins: Twins) -> None:
    twins.create()
    twins.append(*updates(("a", "1")))
    twins.restore()
    twins.append(*updates(("b", "1"), ("c", "1")))
    name = twins.store.logs(twins.topic)[0].topic_partition
    twins.store.delete_records(name, 2, new_id())
    with pytest.raises(InvalidConfig, match="restored up to offset 1 and begins at 2 now"):
        twins.restore()
    assert twins.restore(skip_lost=True).records == 1
    assert [key for key, *_ in twins.there()[0]] == [b"a", b"c"]


def test_a_topic_with_other_records_is_left_alone_unless_told(twins: Twins) -> None:
    twins.create()
    twins.broker.produce(twins.topic, updates(("other", "1")))
    twins.append(*updates(("a", "1")))
    for _ in range(2):
        with pytest.raises(InvalidConfig, match=r"-0 has records that no restore .*--append-to-existing"):
            twins.restore()
    assert twins.restore(append_to_existing=True).records == 1
    assert [key for key, *_ in twins.there()[0]] == [b"other", b"a"]
    assert twins.restore().records == 0


def forget_positions(twins: Twins) -> None:
    """As if they had been there for an earlier topic alone."""
    told = '{"topic":"id","target":"of an earlier one","as_of_ms":null}'
    consumer = Consumer({"bootstrap.servers": twins.broker.bootstrap, "group.id": f"keptlog-restore-{twins.topic}"})
    offsets = [TopicPartition(twins.topic, number, 0, metadata=told) for number in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def test_what_was_added_to_other_records_is_not_added_again_once_its_position_is_forgotten(twins: Twins) -> None:
    twins.create()
    twins.broker.produce(twins.topic, updates(("other", "1")))
    twins.append(*updates(("a", "1")))
    twins.restore(append_to_existing=True)
    forget_positions(twins)
    twins.append(*updates(("b", "1")))
    with pytest.raises(InvalidConfig, match=r"-0 has records of an earlier restore of .*keptlog reader remove"):
        twins.restore(append_to_existing=True)
    assert [key for key, *_ in twins.there()[0]] == [b"other", b"a"]
    [standing, _] = Readers(twins.store, new_id).list([twins.topic], now_ms=wall_clock_ms())
    Readers(twins.store, new_id).remove(twins.topic, standing.reader)
    assert twins.restore(append_to_existing=True).records == 2


@pytest.mark.parametrize(
    ("partitions", "settings", "message"),
    [
        (3, {}, "has 3 partitions and .* here has 2"),
        (PARTITIONS, {"message.timestamp.type": "LogAppendTime"}, "message.timestamp.type=LogAppendTime"),
    ],
)
def test_a_topic_that_would_change_the_records_is_refused(
    twins: Twins, partitions: int, settings: dict[str, str], message: str
) -> None:
    twins.store.create_topic(twins.topic, PARTITIONS, COMPACTED)
    twins.broker.create_topic(twins.topic, partitions, settings)
    with pytest.raises(InvalidConfig, match=message):
        twins.restore()


def test_a_later_topic_of_the_same_name_does_not_go_on_for_this_one(twins: Twins) -> None:
    twins.create()
    twins.append(*updates(("a", "1")))
    twins.restore()
    twins.store.delete_topic(twins.topic, 0)
    twins.store.create_topic(twins.topic, PARTITIONS, COMPACTED)
    twins.append(*updates(("z", "1"), ("y", "1")))
    with pytest.raises(InvalidConfig, match="of another home or deleted since"):
        twins.restore()


def test_a_topic_that_was_created_anew_there_gets_everything(twins: Twins) -> None:
    twins.create()
    twins.append(*updates(("a", "1")))
    twins.restore()
    admin = AdminClient({"bootstrap.servers": twins.broker.bootstrap})
    admin.delete_topics([twins.topic])[twins.topic].result(DEADLINE_SECONDS)
    twins.restore()
    assert twins.there() == twins.here()


def test_positions_that_somebody_else_moved_are_not_believed(twins: Twins) -> None:
    twins.create()
    twins.append(*updates(("a", "1")))
    twins.restore()
    group = {"bootstrap.servers": twins.broker.bootstrap, "group.id": f"keptlog-restore-{twins.topic}"}
    consumer = Consumer(group)
    consumer.commit(offsets=[TopicPartition(twins.topic, 0, 0)], asynchronous=False)
    consumer.close()
    with pytest.raises(InvalidConfig, match="that keptlog did not commit"):
        twins.restore()


def test_a_newer_restore_stops_an_older_one(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    twins.create()
    twins.append(*odd_records(100, seed=6))
    small_transactions(monkeypatch, 30)
    newer: list[RestoreResult] = []

    def overtake(_line: str) -> None:
        if len(newer) == 0:
            newer.append(twins.restore())

    older = replace(restore_of(twins.store, twins.broker.bootstrap), progress=overtake)
    with pytest.raises(StalePlan, match="another restore of"):
        older.to_broker(twins.topic, twins.topic)
    assert twins.there() == twins.here()


def test_a_restore_that_reads_for_longer_than_the_broker_waits_goes_on_with_a_new_client(
    twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker fences its writer as it does one that a newer restore overtakes. That was told, and nobody went on."""
    twins.create()
    twins.append(*odd_records(90, seed=7))
    small_transactions(monkeypatch, 30)
    really, read = restore._records, []

    def with_one_pause(tables: Iterable[pa.Table]) -> Iterator[Record]:
        for record in really(tables):
            read.append(record)
            if len(read) == 45:
                time.sleep(LOOKED_AT_SECONDS + 3)
            yield record

    monkeypatch.setattr(restore, "_records", with_one_pause)
    slow = restore_of(twins.store, twins.broker.bootstrap, client={"transaction.timeout.ms": "2000"})
    assert slow.to_broker(twins.topic, twins.topic).records == 90
    assert twins.there() == twins.here()


def topics_settings(twins: Twins, names: Sequence[str]) -> dict[str, str | None]:
    admin = AdminClient({"bootstrap.servers": twins.broker.bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, twins.topic)
    entries = admin.describe_configs([resource])[resource].result(DEADLINE_SECONDS)
    return {name: entries[name].value for name in names}


def test_a_topic_is_created_with_the_settings_that_it_has_here(twins: Twins) -> None:
    settings = {"cleanup.policy": "compact", "delete.retention.ms": "1234567", "segment.ms": "765432"}
    own = {"compaction.strategy": "timestamp", "message.timestamp.type": "LogAppendTime"}
    twins.store.create_topic(twins.topic, PARTITIONS, settings | own)
    assert twins.restore().is_created
    assert topics_settings(twins, list(settings)) == settings
    assert topics_settings(twins, ["message.timestamp.type"]) == {"message.timestamp.type": "CreateTime"}


def test_a_topic_is_created_with_the_policy_that_is_stored_with_the_one_here(twins: Twins) -> None:
    """It got the policy of the brokers there, which delete what is older than a week."""
    broker_settings = {"log.cleanup.policy": "compact", "log.cleaner.delete.retention.ms": "1234567"}
    maker = LogStore(open_catalog(twins.home), broker_settings, sleep=time.sleep, new_id=new_id)
    maker.create_topic(twins.topic, PARTITIONS, {"segment.ms": "765432"})
    twins.append(NewRecord(b"a", b"1", 5, 1))
    assert twins.restore().is_created
    stored = {"cleanup.policy": "compact", "delete.retention.ms": "1234567", "retention.ms": "604800000"}
    assert topics_settings(twins, [*stored, "segment.ms"]) == stored | {"segment.ms": "765432"}


def test_the_command_says_what_it_did(
    twins: Twins, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twins.create()
    twins.append(NewRecord(b"a", b"1", 0, 1), NewRecord(b"b", None, 5, 1))
    monkeypatch.setenv("KEPTLOG_HOME", str(twins.home))
    where = ["restore", twins.topic, "--to", "kafka", "--bootstrap", twins.broker.bootstrap]
    said = []
    for options in ([], [], ["--json"]):
        monkeypatch.setattr("sys.argv", ["keptlog", *where, *options])
        with pytest.raises(SystemExit, match="0"):
            main()
        said.append(capsys.readouterr())
    first, second, third = said
    assert (
        first.out.splitlines()[0] == f"restored 2 records of {twins.topic} to {twins.topic} at {twins.broker.bootstrap}"
    )
    assert first.out.splitlines()[1:] == [f"  {twins.topic}-1: 2 of offsets 0..1"]
    assert first.err == "keptlog: timestamp 0 was sent as 1 in 1 record\n"
    assert second.out == f"{twins.topic} at {twins.broker.bootstrap} has all of {twins.topic} already\n"
    assert json.loads(third.out)["records"] == 0


def test_tombstones_wait_for_the_next_restore_until_its_reader_is_removed(twins: Twins) -> None:
    twins.create(CLEANED_AT_ONCE)
    readers, now_ms = Readers(twins.store, new_id), wall_clock_ms()
    twins.append(*updates(("a", "1")))
    twins.restore()
    [standing, _] = readers.list([twins.topic], now_ms=now_ms)
    assert standing.reader.startswith(f"restore-{twins.topic}-")
    assert (standing.position, standing.lag) == (1, 0)
    twins.append(*updates(("a", None)))
    twins.clean(wall_clock_ms() + 10_000)
    later_ms = now_ms + 2 * 3_600_000
    cleaner = Cleaner(twins.store, in_process_engine(twins.store.files))
    assert cleaner.plan([twins.topic], now_ms=later_ms).steps == ()
    twins.restore()
    assert readers.list([twins.topic], now_ms=now_ms)[0].position == 2
    assert [str(step.kind) for step in cleaner.plan([twins.topic], now_ms=later_ms).steps] == ["expire"]
    readers.remove(twins.topic, standing.reader)
    assert readers.list([twins.topic], now_ms=now_ms) == []
