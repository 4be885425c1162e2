"""What the broker's own settings accept, and what they come to."""

import sys

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.broker import BROKER_NOT_APPLICABLE, BROKER_SETTINGS, BrokerConfig
from keptlog.log.config import SETTINGS
from keptlog.log.offset_map import MapCapacity, MapOverflow
from keptlog.log.setting import Origin
from keptlog.log.strategy import Strategy, StrategyKind

KAFKA_DEFAULTS = {
    "log.cleaner.enable": True,
    "log.cleaner.threads": 1,
    "log.cleaner.dedupe.buffer.size": 134_217_728,
    "log.cleaner.io.buffer.load.factor": 0.9,
    "log.cleaner.io.buffer.size": 524_288,
    "log.cleaner.io.max.bytes.per.second": sys.float_info.max,
    "log.cleaner.backoff.ms": 15_000,
    "log.retention.check.interval.ms": 300_000,
    "producer.id.expiration.ms": 86_400_000,
}


def test_the_defaults_are_kafkas() -> None:
    resolved = {each.setting.name: each.value for each in BrokerConfig.of().resolved}
    assert {name: resolved[name] for name in KAFKA_DEFAULTS} == KAFKA_DEFAULTS
    assert {name for name in resolved.keys() - KAFKA_DEFAULTS.keys() if not name.startswith("keptlog.")} == set()


def test_a_configuration_made_of_nothing_equals_one_made_by_hand() -> None:
    assert BrokerConfig.of({}) == BrokerConfig()


def test_no_name_is_both_known_and_refused() -> None:
    known = {setting.name for setting in BROKER_SETTINGS} | {each.name for s in SETTINGS for each in s.broker}
    assert not known & set(BROKER_NOT_APPLICABLE)
    assert all(setting.doc for setting in BROKER_SETTINGS)


@pytest.mark.parametrize(
    ("name", "lowest", "too_low"),
    [
        ("log.cleaner.threads", "1", "0"),
        ("log.cleaner.io.buffer.size", "0", "-1"),
        ("log.cleaner.io.max.bytes.per.second", "0", "-1"),
        ("log.cleaner.backoff.ms", "0", "-1"),
        ("log.retention.check.interval.ms", "1", "0"),
        ("producer.id.expiration.ms", "1", "0"),
        ("log.cleaner.io.buffer.load.factor", "0.5", "-0.1"),
        ("keptlog.cleaner.backoff.max.ms", "0", "-1"),
    ],
)
def test_the_lowest_value_is_allowed_and_the_next_lower_is_refused(name: str, lowest: str, too_low: str) -> None:
    BrokerConfig.of({name: lowest})
    with pytest.raises(InvalidConfig, match=f"{name}={too_low} is out of range"):
        BrokerConfig.of({name: too_low})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.cleaner.enable", "yes", "log.cleaner.enable='yes' is neither true nor false"),
        ("log.cleaner.threads", "two", "is not a whole number"),
        ("log.cleaner.threads", "2147483648", "out of range"),
        ("log.cleaner.io.buffer.size", "2147483648", "out of range"),
        ("log.cleaner.dedupe.buffer.size", "-1", "out of range"),
        ("log.cleaner.io.buffer.load.factor", "1.1", "out of range"),
        ("log.cleaner.io.max.bytes.per.second", "inf", "out of range"),
        ("keptlog.offset.map.overflow", "spill", "is not known: use stop or shuffle"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        BrokerConfig.of({name: text})


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), (" TRUE ", True)])
def test_a_boolean_is_written_in_any_case(text: str, *, value: bool) -> None:
    assert BrokerConfig.of({"log.cleaner.enable": text}).log_cleaner_enable is value


def test_each_thread_needs_more_than_a_mebibyte_for_its_map() -> None:
    BrokerConfig.of({"log.cleaner.dedupe.buffer.size": str(2**21 + 2), "log.cleaner.threads": "2"})
    with pytest.raises(InvalidConfig, match=r"2097153 is too small for log.cleaner.threads=2: each needs more than"):
        BrokerConfig.of({"log.cleaner.dedupe.buffer.size": str(2**21 + 1), "log.cleaner.threads": "2"})


@pytest.mark.parametrize("text", ["0", "1000"])
def test_a_map_of_next_to_nothing_is_too_small(text: str) -> None:
    with pytest.raises(InvalidConfig, match=f"log.cleaner.dedupe.buffer.size={text} is too small"):
        BrokerConfig.of({"log.cleaner.dedupe.buffer.size": text})


def test_the_largest_int_of_kafka_is_allowed() -> None:
    assert BrokerConfig.of({"log.cleaner.io.buffer.size": "2147483647"}).log_cleaner_io_buffer_size == 2**31 - 1


def test_a_load_factor_must_leave_room_for_a_key() -> None:
    assert BrokerConfig.of({"log.cleaner.io.buffer.load.factor": "0.0000002"}).max_keys(Strategy()) == 1
    with pytest.raises(InvalidConfig, match=r"load.factor=0.0 leaves no room for a key"):
        BrokerConfig.of({"log.cleaner.io.buffer.load.factor": "0"})


def test_a_map_has_kafkas_number_of_keys_and_fewer_with_versions() -> None:
    assert BrokerConfig().max_keys(Strategy()) == 5_033_164
    assert BrokerConfig().max_keys(Strategy(StrategyKind.TIMESTAMP)) == int(134_217_728 // 32 * 0.9)
    halved = BrokerConfig.of({"log.cleaner.threads": "2", "keptlog.offset.map.overflow": "shuffle"})
    assert halved.map_capacity(Strategy()) == MapCapacity(int(67_108_864 // 24 * 0.9), MapOverflow.SHUFFLE)


def test_no_map_is_larger_than_two_gibibytes() -> None:
    large = BrokerConfig.of({"log.cleaner.dedupe.buffer.size": str(2**33)})
    assert large.max_keys(Strategy()) == int((2**31 - 1) // 24 * 0.9)


def test_a_topics_default_is_checked_as_the_broker_names_it() -> None:
    BrokerConfig.of({"log.roll.hours": "1"})
    with pytest.raises(InvalidConfig, match=r"log.roll.hours='x' is not a whole number"):
        BrokerConfig.of({"log.roll.hours": "x"})
    with pytest.raises(InvalidConfig, match=r"'log.roll.hour': did you mean log.roll.hours?"):
        BrokerConfig.of({"log.roll.hour": "1"})


def test_the_lags_are_checked_against_each_other_at_the_brokers_level_too() -> None:
    lags = {"log.cleaner.min.compaction.lag.ms": "100", "log.cleaner.max.compaction.lag.ms": "100"}
    BrokerConfig.of(lags)
    with pytest.raises(InvalidConfig, match=r"is above max.compaction.lag.ms=99"):
        BrokerConfig.of(lags | {"log.cleaner.max.compaction.lag.ms": "99"})


@pytest.mark.parametrize("name", sorted(BROKER_NOT_APPLICABLE))
def test_a_setting_that_only_a_broker_could_obey_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"{name} has no meaning on a lake: .*; leave it out"):
        BrokerConfig.of({name: "1"})


@pytest.mark.parametrize("name", ["log.local.retention.ms", "log.local.retention.bytes"])
def test_how_long_a_tiered_log_is_local_is_not_taken_for_how_long_there_is_a_log(name: str) -> None:
    with pytest.raises(InvalidConfig, match="all storage is remote here") as refused:
        BrokerConfig.of({name: "3600000"})
    assert "did you mean" not in str(refused.value)


def test_a_value_says_where_it_comes_from() -> None:
    resolved = {each.setting.name: each for each in BrokerConfig.of({"log.cleaner.threads": "3"}).resolved}
    assert resolved["log.cleaner.threads"].origin is Origin.BROKER
    assert resolved["log.cleaner.backoff.ms"].origin is Origin.DEFAULT
