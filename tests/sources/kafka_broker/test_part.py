"""A part is the records of its offsets, byte for byte; what is not there is told, and not waited for."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError

from keptlog.errors import InvalidConfig, InvalidRecord, StalePlan, StorageUnavailable
from keptlog.log.record import Record
from keptlog.sources.kafka_broker import part as module
from tests.mock_broker import answer
from tests.sources.kafka_broker.conftest import Mock, read

FIND_COORDINATOR = 10
T = 1_700_000_000_000
ODD = [
    Record(0, None, None, T),
    Record(1, b"", b"", T + 1),
    Record(2, b"\xff\0", b"\0", T + 2, headers=(("a", None), ("a", b""), ("", b"\xff"), ("é", b"x"))),
    Record(3, b"key", None, T + 3, headers=(("z", b"1"), ("a", b"2"))),
    Record(4, b"key", b"v" * 100_000, T),
]


@pytest.fixture
def told_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stall begins when its reason was told, however long a busy machine takes to tell it.

    Or 0.5 s might be over before the first connection is.
    """
    really = module._Reading._wait_on

    def wait_on(reading: module._Reading) -> None:
        if reading.trouble.errors or reading._log_end is not None:
            really(reading)

    monkeypatch.setattr(module._Reading, "_wait_on", wait_on)


def test_records_are_read_byte_for_byte(mock: Mock) -> None:
    mock.produce("odd", ODD)
    assert read(mock.part("odd", 0, 5)) == ODD


def test_a_part_ends_before_its_end_wherever_the_log_goes_on(mock: Mock) -> None:
    records = [Record(offset, b"k", b"%d" % offset, T) for offset in range(1500)]
    mock.produce("long", records)
    for cuts in ((0, 1500), (0, 1), (499, 501), (700, 1499)):
        assert read(mock.part("long", *cuts)) == records[slice(*cuts)]


@pytest.mark.parametrize("large", [Record(0, b"k", b"x" * 30_000, T), Record(0, b"x" * 30_000, None, T)])
def test_what_is_large_comes_in_several_tables(mock: Mock, monkeypatch: pytest.MonkeyPatch, large: Record) -> None:
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", 100_000)
    monkeypatch.setattr(module, "_TABLE_BYTES", 300_000)
    topic = f"large-{large.value is None}"
    mock.produce(topic, [large] * 130)
    sizes = [table.nbytes for table in mock.part(topic, 0, 130).read(lambda _: None)]
    assert sum(sizes) > 130 * 30_000
    # The first poll does not know yet how large records are.
    assert max(sizes[1:]) < 500_000


def test_a_part_travels_to_the_executors_without_showing_its_settings(mock: Mock) -> None:
    mock.produce("travels", ODD[:1])
    secret = replace(mock.part("travels", 0, 1), settings=mock.settings.at(mock.settings.bootstrap))
    assert read(pickle.loads(pickle.dumps(secret))) == ODD[:1]  # noqa: S301  # our own
    assert str(mock.settings.bootstrap) not in repr(secret)


def test_offsets_that_are_not_there_make_the_plan_stale(mock: Mock) -> None:
    mock.produce("short", ODD)
    with pytest.raises(StalePlan, match=r"short-0 at .* does not have offset 7 any more"):
        read(mock.part("short", 7, 9))


@pytest.mark.usefixtures("told_first")
def test_a_log_that_ends_before_the_part_does_makes_the_plan_stale(mock: Mock) -> None:
    mock.produce("cut-off", ODD)
    with pytest.raises(StalePlan, match=r"cut-off-0 at .* ends at offset 5, and 9 was planned"):
        read(replace(mock.part("cut-off", 2, 9), stall_seconds=0.5))


def test_a_broker_from_which_nothing_comes_is_given_up(mock: Mock) -> None:
    with pytest.raises(
        StorageUnavailable, match=r"no-such-topic-0 at .*: nothing came for 0.5 s at offset 2 of \[2, 9"
    ):
        read(replace(mock.part("no-such-topic", 2, 9), stall_seconds=0.5))


@pytest.mark.usefixtures("told_first")
def test_a_broker_that_is_not_there_is_named_with_the_reason_and_logged_once_while_it_is_waited_for(
    mock: Mock, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = replace(mock.part("odd", 0, 5), settings=mock.settings.at("127.0.0.1:1"), stall_seconds=0.5)
    with pytest.raises(StorageUnavailable, match=r"odd-0 at 127.0.0.1:1 can't be read: .*Connection refused"):
        read(nowhere)
    [logged] = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert logged.startswith("odd-0 at 127.0.0.1:1: no broker at 127.0.0.1:1 answers: ")
    assert logged.endswith("; waiting for it for up to 0.5 s")


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, KafkaError.INVALID_GROUP_ID, KafkaError.UNSUPPORTED_VERSION])
def test_what_befalls_the_group_that_is_never_joined_stops_nothing(mock: Mock, code: int) -> None:
    mock.produce(f"groupless{code}", [Record(0, b"k", b"v", T)])
    answer(mock.owner, FIND_COORDINATOR, code)
    assert read(mock.part(f"groupless{code}", 0, 1)) == [Record(0, b"k", b"v", T)]


def test_a_setting_that_librdkafka_does_not_know_is_refused(mock: Mock) -> None:
    settings = type(mock.settings).load({"fetch.min.byte": "1"}, {}).at(mock.settings.bootstrap)
    with pytest.raises(InvalidConfig, match=r"fetch\.min\.byte"):
        read(replace(mock.part("odd", 0, 5), settings=settings))


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (Record(1, b"k", b"v", 2**63 - 1), "has the timestamp 9223372036854775807 ms, which no table can hold"),
        (Record(1, b"k", b"v", -9 * 10**18), "has the timestamp -9000000000000000000 ms, which no table can hold"),
    ],
)
def test_a_record_that_no_table_can_hold_is_named_with_the_choice(mock: Mock, record: Record, why: str) -> None:
    topic = f"unfit-{record.timestamp_ms > 0}"
    mock.produce(topic, [Record(0, b"k", b"v", T), record])
    tables = mock.part(topic, 0, 2).read(lambda _: None)
    assert next(tables)["offset"].to_pylist() == [0], "what lies before it may land"
    with pytest.raises(InvalidRecord) as refused:
        next(tables)
    assert refused.value.whole_before_offset == 1
    assert str(refused.value) == (
        f"here-0: the record at offset 1 {why}: mend its producer, then delete all records before offset 2 there "
        "(kafka-delete-records), and go on without those (--skip-lost). It costs the latest values of other keys there "
        "too, for everybody. A topic with cleanup.policy=compact refuses it: set cleanup.policy=compact,delete, "
        "retention.ms=-1 and retention.bytes=-1 in one step, and set them back afterwards"
    )


def test_a_record_may_be_of_a_time_before_1970(mock: Mock) -> None:
    records = [Record(0, b"k", b"v", -1000), Record(1, b"k", b"v", -(10**15))]
    mock.produce("before", records)
    assert read(mock.part("before", 0, 2)) == records


@pytest.mark.parametrize("idle_seconds", [0, 3])
def test_that_one_of_several_brokers_lets_nobody_in_costs_no_log_of_another_one(
    mock: Mock, monkeypatch: pytest.MonkeyPatch, idle_seconds: int
) -> None:
    """However long nothing had come before: its leader may have been restarted."""
    mock.produce("t", ODD)
    answer_late(monkeypatch, KafkaError(KafkaError._SSL, "certificate verify failed"), idle_seconds)
    assert read(mock.part("t", 0, 5)) == ODD


@pytest.mark.parametrize("idle_seconds", [0, 3])
def test_that_one_of_several_addresses_is_wrong_is_no_outage_where_another_one_answers_at_once(
    mock: Mock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, idle_seconds: int
) -> None:
    mock.produce("u", ODD)
    monkeypatch.setattr(module, "_TOLD_AFTER_SECONDS", 60)  # a busy machine may take more than one to answer
    answer_late(monkeypatch, KafkaError(KafkaError._RESOLVE, "Failed to resolve 'nowhere'"), idle_seconds)
    assert read(mock.part("u", 0, 5)) == ODD
    assert not caplog.messages


def answer_late(monkeypatch: pytest.MonkeyPatch, trouble: KafkaError, idle_seconds: int) -> None:
    """Let a part hear of what is wrong with a broker after so long a pause, and of its leader some moments later."""
    really = module._Reading.__post_init__

    def told(reading: module._Reading) -> None:
        really(reading)
        reading.trouble(trouble)
        reading._idle_polls = round(idle_seconds / module._POLL_SECONDS)

    monkeypatch.setattr(module._Reading, "__post_init__", told)
    polls = iter([True] * 5)
    really_polled = module._Reading._poll

    def polled(reading: module._Reading) -> list[object]:
        if next(polls, False):
            reading._wait_on()  # nothing came yet
            return []
        return list(really_polled(reading))

    monkeypatch.setattr(module._Reading, "_poll", polled)
