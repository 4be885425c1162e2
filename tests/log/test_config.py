"""What a topic's configuration accepts, what it says when it does not, and where a value comes from."""

import re

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.broker import BrokerConfig
from keptlog.log.config import NOT_APPLICABLE, SETTINGS, TopicConfig
from keptlog.log.setting import Origin
from keptlog.log.strategy import Strategy, StrategyKind
from keptlog.log.words.units import LONG_MAX

KAFKA_DEFAULTS = {
    "cleanup.policy": ("delete",),
    "compaction.strategy": "offset",
    "compaction.strategy.header": "",
    "keptlog.watermark.retention.ms": 604_800_000,
    "min.cleanable.dirty.ratio": 0.5,
    "min.compaction.lag.ms": 0,
    "max.compaction.lag.ms": 9_223_372_036_854_775_807,
    "delete.retention.ms": 86_400_000,
    "segment.ms": 604_800_000,
    "segment.bytes": 1_073_741_824,
    "internal.segment.bytes": 0,
    "retention.ms": 604_800_000,
    "retention.bytes": -1,
    "file.delete.delay.ms": 60_000,
    "max.message.bytes": 1_048_588,
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": 9_223_372_036_854_775_807,
    "message.timestamp.after.max.ms": 3_600_000,
}


def test_the_defaults_are_kafkas() -> None:
    resolved = {each.setting.name: each.value for each in TopicConfig.of({}).resolved}
    assert resolved == KAFKA_DEFAULTS


def test_a_configuration_made_of_nothing_equals_one_made_by_hand() -> None:
    assert TopicConfig.of({}) == TopicConfig()


def test_every_setting_says_what_it_is_for() -> None:
    assert all(setting.doc for setting in SETTINGS)
    assert not {setting.name for setting in SETTINGS} & set(NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("name", "lowest", "too_low"),
    [
        ("min.cleanable.dirty.ratio", "0", "-0.01"),
        ("min.compaction.lag.ms", "0", "-1"),
        ("max.compaction.lag.ms", "1", "0"),
        ("delete.retention.ms", "0", "-1"),
        ("segment.ms", "1", "0"),
        ("segment.bytes", "1048576", "1048575"),
        ("internal.segment.bytes", "0", "-1"),
        ("retention.ms", "-1", "-2"),
        ("file.delete.delay.ms", "0", "-1"),
        ("max.message.bytes", "0", "-1"),
        ("message.timestamp.before.max.ms", "0", "-1"),
        ("message.timestamp.after.max.ms", "0", "-1"),
        ("keptlog.watermark.retention.ms", "0", "-1"),
    ],
)
def test_the_lowest_value_is_allowed_and_the_next_lower_is_refused(name: str, lowest: str, too_low: str) -> None:
    TopicConfig.of({name: lowest})
    with pytest.raises(InvalidConfig, match=rf"{name}={too_low} is out of range: it must (lie in \[|be at least )"):
        TopicConfig.of({name: too_low})


@pytest.mark.parametrize(
    ("name", "highest", "too_high"),
    [
        ("min.cleanable.dirty.ratio", "1", "1.2"),
        ("segment.bytes", "2147483647", "2147483648"),
        ("internal.segment.bytes", "2147483647", "2147483648"),
        ("max.message.bytes", "2147483647", "2147483648"),
        ("max.compaction.lag.ms", str(LONG_MAX), str(LONG_MAX + 1)),
        ("retention.bytes", str(LONG_MAX), str(LONG_MAX + 1)),
    ],
)
def test_the_highest_value_is_allowed_and_the_next_higher_is_refused(name: str, highest: str, too_high: str) -> None:
    TopicConfig.of({name: highest})
    with pytest.raises(InvalidConfig, match="out of range"):
        TopicConfig.of({name: too_high})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("segment.ms", "soon", "segment.ms='soon' is not a whole number"),
        ("segment.ms", "1.5", "segment.ms='1.5' is not a whole number"),
        ("segment.ms", "", "segment.ms='' is not a whole number"),
        ("min.cleanable.dirty.ratio", "half", "min.cleanable.dirty.ratio='half' is not a number"),
        ("min.cleanable.dirty.ratio", "nan", "out of range"),
        ("min.cleanable.dirty.ratio", "inf", "out of range"),
        ("cleanup.policy", "compact,tidy", "cleanup.policy='tidy' is not known: use compact or delete"),
        ("compaction.strategy", "newest", "strategy='newest' is not known: use offset or timestamp or header"),
        ("segment.ms", "1_000", "segment.ms='1_000' is not a whole number"),
        ("message.timestamp.type", "createtime", "use CreateTime or LogAppendTime"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        TopicConfig.of({name: text})


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("max.compaction.lag.ms", "7d", "is not a whole number of milliseconds: write 604800000"),
        ("segment.ms", "1 h", "is not a whole number of milliseconds: write 3600000"),
        ("segment.ms", "500ms", "write 500"),
        ("segment.ms", "86_400_000", "write 86400000"),
        ("segment.bytes", "1GiB", "is not a whole number of bytes: write 1073741824"),
        ("segment.bytes", "512 MB", "write 536870912"),
        ("min.cleanable.dirty.ratio", "50%", "is not a number: write 0.5"),
        ("min.cleanable.dirty.ratio", "0,25", "write 0.25"),
        ("segment.ms", "5m", "write 300000"),
        ("segment.bytes", "5M", "write 5242880"),
    ],
)
def test_a_number_as_people_write_it_is_refused_with_the_one_that_is_meant(name: str, text: str, told: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"{told}$"):
        TopicConfig.of({name: text})


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("segment.bytes", "10GiB", "is not a whole number of bytes, and 10737418240 is out of range: it must lie in ["),
        ("min.cleanable.dirty.ratio", "250%", "is not a number, and 2.5 is out of range: it must lie in ["),
        ("retention.ms", "999999999999w", ", and 604799999999395200000 is out of range: it must be at most "),
    ],
)
def test_nobody_is_told_to_write_a_number_that_is_refused_too(name: str, text: str, told: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(told)) as refused:
        TopicConfig.of({name: text})
    assert "write" not in str(refused.value)


def test_of_a_broker_setting_in_a_coarser_unit_that_ones_range_counts() -> None:
    with pytest.raises(InvalidConfig, match=r"log\.roll\.hours='999999999w' is .* 1679999.* is out of range"):
        TopicConfig.of({}, {"log.roll.hours": "999999999w"})


@pytest.mark.parametrize(
    ("name", "text"), [("log.retention.hours", "0d"), ("log.retention.ms", "0s"), ("log.retention.minutes", "0_000")]
)
def test_so_it_is_of_a_broker_setting_that_has_to_keep_something(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=r", and 0+ is out of range: it must be at least 1, or -1 for no limit$"):
        TopicConfig.of({}, {name: text})


@pytest.mark.parametrize("text", ["7 moons", "1.5h", "1g", "d", "-7d", "1__000", "7d 3h", "1M", "6 M"])
def test_where_nobody_can_tell_what_is_meant_no_number_is_named(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"is not a whole number of milliseconds$"):
        TopicConfig.of({"segment.ms": text})


@pytest.mark.parametrize(
    ("text", "policy", "is_compacted"),
    [
        ("compact", ("compact",), True),
        ("delete", ("delete",), False),
        ("compact, delete", ("compact", "delete"), True),
        ("delete,delete", ("delete",), False),
        ("", (), False),
    ],
)
def test_the_policy_is_a_list_that_may_be_empty(text: str, policy: tuple[str, ...], is_compacted: bool) -> None:
    config = TopicConfig.of({"cleanup.policy": text})
    assert config.cleanup_policy == policy
    assert config.is_compacted is is_compacted


@pytest.mark.parametrize("text", ["compact,", ",delete", "compact,,delete", ",", " , "])
def test_a_policy_with_a_comma_too_many_is_refused_as_in_kafka(text: str) -> None:
    with pytest.raises(InvalidConfig, match=f"cleanup.policy={text!r} has a comma with nothing beside it"):
        TopicConfig.of({"cleanup.policy": text})
    with pytest.raises(InvalidConfig, match=f"log.cleanup.policy={text!r} has a comma"):
        BrokerConfig.of({"log.cleanup.policy": text})
    assert TopicConfig.of({"cleanup.policy": "  "}).cleanup_policy == ()


def test_an_unknown_name_is_answered_with_the_nearest_right_one() -> None:
    with pytest.raises(InvalidConfig, match=r"'min.cleanable.ratio': did you mean min.cleanable.dirty.ratio?"):
        TopicConfig.of({"min.cleanable.ratio": "0.5"})


def test_a_name_like_no_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(InvalidConfig, match=r"known are cleanup.policy, compaction.strategy"):
        TopicConfig.of({"zzz": "1"})


def test_a_setting_of_the_home_is_answered_with_its_place() -> None:
    told = "is a setting of the home, not of a topic: write it to server.properties in the home"
    with pytest.raises(InvalidConfig, match=f"^log.cleaner.threads {told}$"):
        TopicConfig.of({"log.cleaner.threads": "2"})
    with pytest.raises(InvalidConfig, match=f"^log.retention.hours {told}, or give this topic retention.ms$"):
        TopicConfig.of({"log.retention.hours": "2"})


@pytest.mark.parametrize("name", sorted(NOT_APPLICABLE))
def test_a_setting_that_only_a_broker_could_obey_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"{name} has no meaning on a lake: .*; leave it out"):
        TopicConfig.of({name: "1"})


def test_the_minimum_lag_may_equal_the_maximum_lag_but_not_exceed_it() -> None:
    TopicConfig.of({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "100"})
    with pytest.raises(InvalidConfig, match=r"min.compaction.lag.ms=101 is above max.compaction.lag.ms=100"):
        TopicConfig.of({"min.compaction.lag.ms": "101", "max.compaction.lag.ms": "100"})


def test_the_lags_are_checked_against_each_other_also_when_one_is_the_brokers() -> None:
    with pytest.raises(InvalidConfig, match=r"above max.compaction.lag.ms=100"):
        TopicConfig.of({"min.compaction.lag.ms": "101"}, {"log.cleaner.max.compaction.lag.ms": "100"})


def test_a_segment_is_closed_by_the_maximum_lag_if_that_comes_first() -> None:
    lags = {"segment.ms": "1000", "max.compaction.lag.ms": "600"}
    assert TopicConfig.of(lags | {"cleanup.policy": "compact"}).max_segment_ms == 600
    assert TopicConfig.of(lags | {"cleanup.policy": "delete"}).max_segment_ms == 1000
    assert TopicConfig.of({"segment.ms": "500", "cleanup.policy": "compact"}).max_segment_ms == 500


def test_tests_may_have_segments_below_the_minimum_size() -> None:
    assert TopicConfig.of({"internal.segment.bytes": "10"}).segment_bytes == 10
    assert TopicConfig.of({"internal.segment.bytes": "0", "segment.bytes": "2000000"}).segment_bytes == 2_000_000


def test_a_value_is_the_topics_before_the_brokers_before_the_default() -> None:
    config = TopicConfig.of(
        {"segment.ms": "5"},
        {"log.roll.ms": "7", "log.cleaner.delete.retention.ms": "9", "log.segment.bytes": "1048576"},
    )
    origins = {each.setting.name: (each.origin, each.origin_name, each.value) for each in config.resolved}
    assert origins["segment.ms"] == (Origin.TOPIC, "segment.ms", 5)
    assert origins["delete.retention.ms"] == (Origin.BROKER, "log.cleaner.delete.retention.ms", 9)
    assert origins["retention.ms"] == (Origin.DEFAULT, "retention.ms", 604_800_000)


@pytest.mark.parametrize(
    ("broker", "field", "value"),
    [
        ({"log.roll.hours": "2"}, "segment_ms", 7_200_000),
        ({"log.roll.hours": "1"}, "segment_ms", 3_600_000),
        ({"log.roll.hours": "2", "log.roll.ms": "5"}, "segment_ms", 5),
        ({"log.retention.hours": "2"}, "retention_ms", 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention_ms", 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, "retention_ms", 4),
        ({"log.retention.hours": "-1"}, "retention_ms", -1),
        ({"log.retention.hours": "-3"}, "retention_ms", -1),
        ({"log.retention.minutes": "-2", "log.retention.hours": "0"}, "retention_ms", -1),
        ({"log.retention.ms": "-9", "log.retention.minutes": "0"}, "retention_ms", -1),
        ({"log.retention.ms": "1"}, "retention_ms", 1),
        ({"log.retention.bytes": "-2"}, "retention_bytes", -1),
        ({"log.cleaner.compaction.strategy": ""}, "compaction_strategy", "offset"),
        ({"log.cleaner.min.cleanable.ratio": "0.25"}, "min_cleanable_dirty_ratio", 0.25),
        ({"log.segment.delete.delay.ms": "0"}, "file_delete_delay_ms", 0),
        ({"message.max.bytes": "99"}, "max_message_bytes", 99),
    ],
)
def test_a_broker_setting_gives_the_default_in_its_own_unit_the_finer_one_first(
    broker: dict[str, str], field: str, value: float
) -> None:
    assert getattr(TopicConfig.of({}, broker), field) == value


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_a_broker_keeps_records_for_a_while_or_for_ever_but_a_topic_may_keep_none(name: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"{name}=0 is out of range: it must be at least 1, or -1 for no limit"):
        TopicConfig.of({}, {name: "0"})
    with pytest.raises(InvalidConfig, match=rf"{name}=0 is out of range"):
        BrokerConfig.of({name: "0"})
    assert TopicConfig.of({"retention.ms": "0"}).retention_ms == 0


@pytest.mark.parametrize("name", ["log.retention.minutes", "log.retention.hours", "log.roll.hours"])
def test_minutes_and_hours_are_ints(name: str) -> None:
    TopicConfig.of({}, {name: "2147483647"})
    for text in ("2147483648", "-2147483649"):
        with pytest.raises(InvalidConfig, match=rf"{name}={text} is out of range"):
            TopicConfig.of({}, {name: text})


@pytest.mark.parametrize("text", ["-1", "-2", "-9223372036854775808"])
def test_any_negative_number_of_bytes_is_no_limit(text: str) -> None:
    assert TopicConfig.of({"retention.bytes": text}).retention_bytes == -1
    with pytest.raises(InvalidConfig, match="out of range"):
        TopicConfig.of({"retention.bytes": "-9223372036854775809"})


def test_an_empty_strategy_is_that_of_the_offset() -> None:
    config = TopicConfig.of({"compaction.strategy": ""}, {"log.cleaner.compaction.strategy": "timestamp"})
    assert config.strategy == Strategy(StrategyKind.OFFSET)
    with pytest.raises(InvalidConfig, match="is not known"):
        TopicConfig.of({"message.timestamp.type": ""})


def test_versions_in_a_header_need_the_name_of_the_header() -> None:
    with pytest.raises(InvalidConfig, match=r"compaction.strategy=header needs compaction.strategy.header: name"):
        TopicConfig.of({"compaction.strategy": "header"})
    with pytest.raises(InvalidConfig, match=r"needs compaction.strategy.header"):
        TopicConfig.of({}, {"log.cleaner.compaction.strategy": "header"})
    named = TopicConfig.of({"compaction.strategy": "header"}, {"log.cleaner.compaction.strategy.header": "v"})
    assert named.strategy == Strategy(StrategyKind.HEADER, "v")


@pytest.mark.parametrize("text", ["0.5f", "5e-1d", " 0.5D ", ".5F", "0.5"])
def test_a_ratio_is_what_java_reads(text: str) -> None:
    assert TopicConfig.of({"min.cleanable.dirty.ratio": text}, {}).min_cleanable_dirty_ratio == 0.5


@pytest.mark.parametrize("text", ["f", "0.5ff", "0.5fd", "NaNf", "0_5f"])
def test_what_java_reads_as_no_ratio_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="is not a number"):
        TopicConfig.of({"min.cleanable.dirty.ratio": text}, {})
