"""What is told of an alteration: which records go from then on that stayed before."""

from __future__ import annotations

import pytest

from keptlog.log.config import TopicConfig
from keptlog.log.told.altered import fallen_back, in_force, what_altering_does

COMPACT, DELETE = {"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}
BOTH = {"cleanup.policy": "compact,delete"}
DAY, HOUR = {"retention.ms": "86400000"}, {"retention.ms": "3600000"}
NO_LIMIT = {"retention.ms": "-1"}
NOT_COMPACTED = "cleanup.policy is delete from now on: it is not compacted any more"
COMPACTED = (
    "cleanup.policy is compact from now on: of each key only the latest record stays, and records without a key are "
    "deleted"
)
BY_TIMESTAMP = {"compaction.strategy": "timestamp"}
BY_HEADER = {"compaction.strategy": "header", "compaction.strategy.header": "v"}
HEADER_ALONE = {"compaction.strategy.header": "v"}
OLD_GO = "segments with nothing younger than retention.ms=86400000 (1 d) will be deleted"
TOO = ", the latest records of their keys too"


MAY_BE_BACK = (
    "a tombstone that no clean has passed yet may lose by that, so that its key is back: ask again, with another id, "
    "for the keys of open erasures that wait for a clean (keptlog erasure list)"
)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (COMPACT, DELETE | DAY, (NOT_COMPACTED, OLD_GO + TOO)),
        (COMPACT, DELETE | NO_LIMIT, (NOT_COMPACTED,)),
        (COMPACT, BOTH | DAY, (OLD_GO + TOO,)),
        (BOTH | NO_LIMIT, BOTH | DAY, (OLD_GO + TOO,)),
        (DELETE | NO_LIMIT, DELETE | DAY, (OLD_GO,)),
        (DELETE | HOUR, DELETE | DAY, ()),
        (DELETE | DAY, COMPACT, (COMPACTED,)),
        (DELETE | DAY, BOTH | DAY, (COMPACTED.replace("compact", "compact,delete", 1),)),
        (BOTH | DAY, COMPACT, ()),
        (
            COMPACT,
            COMPACT | BY_TIMESTAMP,
            ("the latest record of a key is the latest by timestamp from now on", MAY_BE_BACK),
        ),
        (
            COMPACT | BY_TIMESTAMP,
            COMPACT | BY_HEADER,
            ("the latest record of a key is the latest by header v from now on", MAY_BE_BACK),
        ),
        (COMPACT | BY_HEADER, COMPACT | BY_HEADER, ()),
        (COMPACT, COMPACT | HEADER_ALONE, ()),
        (COMPACT | BY_TIMESTAMP | HEADER_ALONE, COMPACT | BY_TIMESTAMP, ()),
        (DELETE, DELETE | BY_TIMESTAMP, ()),
        ({"cleanup.policy": ""}, DELETE | DAY, (OLD_GO,)),
        (COMPACT, COMPACT | DAY, ()),
        (COMPACT, {"cleanup.policy": ""}, ("cleanup.policy is empty from now on: it is not compacted any more",)),
    ],
)
def test_who_lets_records_go_that_stayed_is_told(
    before: dict[str, str], after: dict[str, str], told: tuple[str, ...]
) -> None:
    assert what_altering_does(TopicConfig.of(before), TopicConfig.of(after)) == told


def test_where_no_erasure_is_open_nobody_is_sent_to_one() -> None:
    before, after = TopicConfig.of(COMPACT), TopicConfig.of(COMPACT | BY_TIMESTAMP)
    assert what_altering_does(before, after, are_erasures_open=False) == (
        "the latest record of a key is the latest by timestamp from now on",
    )


def test_a_log_that_may_be_less_large_than_before_is_told() -> None:
    before = TopicConfig.of(DELETE | NO_LIMIT)
    after = TopicConfig.of(DELETE | NO_LIMIT | {"retention.bytes": "1024"})
    assert what_altering_does(before, after) == (
        "the oldest segments above retention.bytes=1024 (1.0 KiB) will be deleted",
    )
    assert what_altering_does(after, before) == ()


def test_of_a_topic_whose_settings_cant_be_read_all_is_told_that_holds_then() -> None:
    assert what_altering_does(None, TopicConfig.of(DELETE | DAY)) == (NOT_COMPACTED, OLD_GO + TOO)
    assert what_altering_does(None, TopicConfig.of(COMPACT)) == (COMPACTED,)


def test_a_limit_that_is_only_this_machines_begins_when_the_topic_gets_it() -> None:
    """Retention leaves alone what an older keptlog has not stored with the topic."""
    unsettled = TopicConfig.of(DELETE, {}, {})
    assert what_altering_does(unsettled, unsettled) == ()
    assert what_altering_does(unsettled, TopicConfig.of(DELETE | DAY, {}, {})) == (OLD_GO,)


def test_what_a_topic_does_not_set_has_a_value_and_a_place_that_it_comes_from() -> None:
    broker = {"log.roll.hours": "1"}
    config = TopicConfig.of(DAY, broker, {"cleanup.policy": "delete"})
    assert in_force(config, ("cleanup.policy", "segment.ms", "retention.ms", "retention.bytes")) == {
        "cleanup.policy": ("delete", "stored with the topic"),
        "segment.ms": ("3600000", "of the broker setting log.roll.hours"),
        "retention.bytes": ("-1", "the default"),
    }
    assert fallen_back(("cleanup.policy", "segment.ms"), broker) == {
        "cleanup.policy": ("delete", "the default"),
        "segment.ms": ("3600000", "of the broker setting log.roll.hours"),
    }
