"""Where keptlog differs from Kafka on purpose: what Kafka 4.3.1 does, and what keptlog does with the same log.

``replay.py`` takes these differences out of the comparison; here each is shown. Random scripts compare all the rest.
"""

from __future__ import annotations

from dataclasses import replace

from keptlog.log.assessment import Trigger, assess
from keptlog.log.clean import clean
from keptlog.log.config import TopicConfig
from keptlog.log.offset_map import MapCapacity
from keptlog.log.plan import plan_step
from keptlog.log.record import Record
from keptlog.log.retention import retention_of
from keptlog.log.sections import sections_of
from keptlog.log.segment import Log, Segment
from keptlog.log.steps import Compact
from keptlog.log.topic_partition import TopicPartition
from tests.kafka.oracle import KafkaOracle, Operation

NOW_MS = 1_700_000_000_000
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}


def create(**settings: object) -> Operation:
    """A compacted topic; settings with ``_`` for Kafka's dots."""
    named = {name.replace("_", "."): str(value) for name, value in settings.items()}
    return {"op": "create", "config": COMPACT | named, "now_ms": NOW_MS}


def append(*records: tuple[str, str | None, int]) -> Operation:
    """One batch; each record is a key, a value and how many ms after the beginning it was made."""
    rows = [{"key": key, "value": value, "timestamp": NOW_MS + after_ms} for key, value, after_ms in records]
    return {"op": "append", "records": rows}


def clock(after_ms: int) -> Operation:
    return {"op": "clock", "now_ms": NOW_MS + after_ms}


ROLL: Operation = {"op": "roll"}
CLEAN: Operation = {"op": "clean", "observe": True}


def segment(base_offset: int, last_offset: int, *, first_ms: int = 0, until_ms: int = 0) -> Segment:
    return Segment(f"{base_offset}", base_offset, last_offset, NOW_MS + first_ms, NOW_MS + until_ms, 1, size_bytes=100)


def log_of(settings: Operation, *segments: Segment, start: int = 0, checkpoint: int | None = None) -> Log:
    config = TopicConfig.of(settings["config"])
    return Log(TopicPartition("t", 0), config, segments, start, segments[-1].last_offset + 1, checkpoint)


def test_an_idle_active_segment_is_closed_by_the_clock_only_here(oracle: KafkaOracle) -> None:
    """ADR 5."""
    topic = create(segment_ms=100)
    (kafka,) = oracle.states([topic, append(("a", "1", 0)), append(("a", "2", 0)), clock(10_000), CLEAN])
    assert not kafka["cleaned"]
    log = log_of(topic, segment(0, 0), segment(1, 1))
    assert assess(log, NOW_MS + 10_000).trigger is Trigger.DIRTY_RATIO


def test_a_tombstone_expires_without_new_data_only_here(oracle: KafkaOracle) -> None:
    """ADR 6."""
    topic = create(delete_retention_ms=100)
    script = [topic, append(("a", None, 0)), ROLL, CLEAN, clock(100), CLEAN]
    first, second = oracle.states(script)
    assert first["records"] == [[0, "a", None, NOW_MS, [], NOW_MS + 100]]
    assert not second["cleaned"]
    assert second["records"] == first["records"]
    stamped = replace(segment(0, 0), tombstone_count=1, stamped_count=1, earliest_delete_horizon_ms=NOW_MS + 100)
    log = log_of(topic, stamped, checkpoint=1)
    assert assess(log, NOW_MS + 100).trigger is Trigger.TOMBSTONE_EXPIRY


def test_a_lag_is_measured_from_the_smallest_timestamp_only_here(oracle: KafkaOracle) -> None:
    """ADR 9: never later than Kafka, which takes the largest of the first batch."""
    topic = create(max_compaction_lag_ms=1_000)
    observed = clock(1_200) | {"observe": True}
    (kafka,) = oracle.states([topic, append(("a", "1", 0), ("b", "1", 150)), ROLL, observed])
    assert kafka["max_compaction_delay_ms"] == 50
    log = log_of(topic, segment(0, 1, first_ms=0, until_ms=150))
    assert assess(log, NOW_MS + 1_200, active=()).max_compaction_delay_ms == 200


def test_a_lag_counts_where_the_first_batch_has_no_timestamp_only_here(oracle: KafkaOracle) -> None:
    """ADR 9: Kafka leaves such a segment out, and what lies in it may wait for ever."""
    topic = create(max_compaction_lag_ms=1_000)
    observed = clock(1_200) | {"observe": True}
    (kafka,) = oracle.states([topic, append(("a", "1", -NOW_MS - 1)), append(("b", "1", 0)), ROLL, observed])
    assert kafka["max_compaction_delay_ms"] == 0
    log = log_of(topic, segment(0, 1, first_ms=-NOW_MS - 1, until_ms=0))
    assert assess(log, NOW_MS + 1_200, active=()).max_compaction_delay_ms == 200


def test_a_segment_without_timestamps_is_closed_by_its_age_only_in_kafka(oracle: KafkaOracle) -> None:
    """ADR 17: a file tells no age; here the clock closes what has no timestamp at once (ADR 5)."""
    topic = create(segment_ms=100)
    untimed = [append(("a", "1", -NOW_MS - 1)), clock(100), append(("a", "2", -NOW_MS - 1)) | {"observe": True}]
    *_, young, old = oracle.states([topic, *untimed, clock(101), append(("a", "3", -NOW_MS - 1)) | {"observe": True}])
    assert [young["active_base_offset"], old["active_base_offset"]] == [0, 2]
    files = [segment(offset, offset, first_ms=-NOW_MS - 1, until_ms=-NOW_MS - 1) for offset in range(2)]
    assert assess(log_of(topic, *files), NOW_MS).sections.active == ()


def test_a_tombstone_behind_the_end_of_a_pass_is_stamped_only_by_kafka(oracle: KafkaOracle) -> None:
    """Kafka visits the rest of the segment in which its map was full. A tombstone there begins to expire, and a reader
    of the log has less time to see it, while the older record of its key is still there.
    """
    topic = create(delete_retention_ms=100)
    script = [
        topic,
        append(("x", "1", 0)),
        append(("a", "1", 0)),
        append(("x", None, 0)),
        ROLL,
        CLEAN | {"max_keys": 1},
    ]
    (kafka,) = oracle.states(script)
    assert kafka["checkpoint"] == 1
    assert [row[0] for row in kafka["records"]] == [0, 1, 2]
    assert kafka["records"][2][-1] == NOW_MS + 100, "stamped, although the record at 0 is not superseded yet"

    step = plan_step(assess(log_of(topic, segment(0, 2)), NOW_MS, active=()))
    assert isinstance(step, Compact)
    records = [Record(0, b"x", b"1", NOW_MS), Record(1, b"a", b"1", NOW_MS), Record(2, b"x", None, NOW_MS)]
    cleaned = clean(replace(step, map_capacity=MapCapacity(1)), [records])
    assert cleaned.step.end_offset == 1
    assert cleaned.records == tuple(records)


def replicated(base_offset: int, last_offset: int, *records: tuple[int, str | None, str | None]) -> Operation:
    """One batch as a follower gets it; each record is an offset, a key and a value."""
    rows = [{"offset": offset, "key": key, "value": value, "timestamp": NOW_MS} for offset, key, value in records]
    return {"op": "append", "records": rows, "base_offset": base_offset, "last_offset": last_offset}


def ended(records: list[Record], last_offset: int, max_keys: int) -> tuple[int, list[int]]:
    """Where keptlog ends a pass whose map has room for so many keys, and which offsets are left."""
    step = plan_step(assess(log_of(create(), segment(0, last_offset)), NOW_MS, active=()))
    assert isinstance(step, Compact)
    cleaned = clean(replace(step, map_capacity=MapCapacity(max_keys)), [records])
    return cleaned.step.end_offset, [record.offset for record in cleaned.records]


def test_a_record_without_a_key_before_the_end_of_a_full_map_goes_with_its_batch_only_in_kafka(
    oracle: KafkaOracle,
) -> None:
    """ADR 12: five of the sixteen cases that were unsettled, such as fuzz_gaps_7000727 and fuzz_batch_7000640.

    Kafka's end moves with each key that it maps and with each batch that it has mapped whole. keptlog has no batches:
    the end moves with each record. So the record without a key, which no clean keeps, goes a pass earlier here.
    """
    script = [create(), replicated(0, 2, (0, "a", "1"), (1, None, "?"), (2, "b", "1")), ROLL, CLEAN | {"max_keys": 1}]
    (kafka,) = oracle.states(script)
    assert (kafka["checkpoint"], [row[0] for row in kafka["records"]]) == (1, [0, 1, 2])
    records = [Record(0, b"a", b"1", NOW_MS), Record(1, None, b"?", NOW_MS), Record(2, b"b", b"1", NOW_MS)]
    assert ended(records, 2, max_keys=1) == (2, [0, 2])

    apart = [create(), *(replicated(*each) for each in ((0, 0, (0, "a", "1")), (1, 1, (1, None, "?"))))]
    (kafka,) = oracle.states([*apart, append(("b", "1", 0)), ROLL, CLEAN | {"max_keys": 1}])
    assert (kafka["checkpoint"], [row[0] for row in kafka["records"]]) == (2, [0, 2])


def test_the_end_of_a_pass_lies_elsewhere_in_a_gap_where_no_record_is(oracle: KafkaOracle) -> None:
    """ADR 12: nine of the sixteen, such as fuzz_gaps_7000887 and fuzz_gaps_7000862. They were wrong translations.

    Kafka ends behind a batch, whose last offset may lie beyond its last record, or at the base of a segment, which may
    lie before its first one; keptlog ends at records. Nothing lies between the two, so the log that is left is one.
    """
    behind = [create(), replicated(0, 5, (0, "a", "1")), replicated(7, 7, (7, "b", "1"))]
    (kafka,) = oracle.states([*behind, ROLL, CLEAN | {"max_keys": 1}])
    assert (kafka["checkpoint"], [row[0] for row in kafka["records"]]) == (6, [0, 7])
    assert ended([Record(0, b"a", b"1", NOW_MS), Record(7, b"b", b"1", NOW_MS)], 7, max_keys=1) == (1, [0, 7])


def test_a_tombstone_that_kafka_stamped_behind_the_end_of_a_pass_has_an_earlier_horizon_there(
    oracle: KafkaOracle,
) -> None:
    """ADR 12: fuzz_gaps_7000617 and fuzz_batch_7000830. The next pass covers it: it stamps it here, not there."""
    topic = create(delete_retention_ms=100)
    script = [topic, append(("a", "1", 0)), append(("x", None, 0)), ROLL]
    *_, kafka = oracle.states([*script, CLEAN | {"max_keys": 1}, clock(50), CLEAN])
    assert kafka["records"][1][-1] == NOW_MS + 100

    dirty = log_of(topic, segment(0, 1), checkpoint=1)
    step = plan_step(assess(dirty, NOW_MS + 50, active=()))
    assert isinstance(step, Compact)
    cleaned = clean(step, [[Record(0, b"a", b"1", NOW_MS), Record(1, b"x", None, NOW_MS)]])
    assert cleaned.records[1].delete_horizon_ms == NOW_MS + 150


def test_an_emptied_batch_counts_as_young_only_in_kafka(oracle: KafkaOracle) -> None:
    """Kafka keeps an emptied last batch with its timestamp, which holds back what follows for the minimum lag when the
    checkpoint is lost. On the lake a file tells of the records that it has.
    """
    topic = create(delete_retention_ms=0)
    emptied = [
        topic,
        append(("a", "1", 0)),
        append(("a", None, 5_000)),
        ROLL,
        CLEAN,
        CLEAN | {"range": [0, 2]},
    ]
    lost = [
        {"op": "checkpoint", "offset": 0},
        {"op": "alter", "config": {"min.compaction.lag.ms": "1000"}, "observe": True},
    ]
    *_, kafka = oracle.states(emptied + lost)
    assert kafka["records"] == []
    assert kafka["segments"][0][2] == NOW_MS + 5_000
    assert kafka["first_uncleanable_offset"] == 0

    lagging = create(min_compaction_lag_ms=1_000)
    log = Log(TopicPartition("t", 0), TopicConfig.of(lagging["config"]), (), 0, 2, 0)
    assert sections_of(log, NOW_MS).first_uncleanable_offset == 2


def test_what_was_deleted_up_to_the_log_end_goes_at_the_next_retention_only_here(oracle: KafkaOracle) -> None:
    """Kafka keeps the active segment when all of it lies below the log start offset: deleted records stay on disk."""
    topic = create()
    deletion = [{"op": "delete_records", "offset": 2}, {"op": "retain", "observe": True}]
    (kafka,) = oracle.states([topic, append(("a", "1", 0), ("b", "1", 0)), *deletion])
    assert kafka["deleted"] == 0
    assert [row[0] for row in kafka["records"]] == [0, 1]
    retention = retention_of(log_of(topic, segment(0, 1), start=2), NOW_MS)
    assert [old.segment.base_offset for old in retention.old] == [0]
