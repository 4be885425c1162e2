"""``roll``: when an append closes the active segment, against ``keptlog.log.roll``."""

from __future__ import annotations

from dataclasses import dataclass

from keptlog.log.config import TopicConfig
from keptlog.log.roll import active_segments
from keptlog.log.segment import Segment
from tests.building import is_rolled_before
from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields, settings_of, understood
from tests.conformance.transactions import NO_TIMESTAMP_MS

_ROLL_JITTER = "_active_roll_jitter_ms"
"""What a case draws of the jitter that its topic allows."""

_NO_INDEXES = Difference(19, "there are no indexes, and offsets have 64 bits: neither is ever full")
_INDEX_SETTINGS = {"segment.index.bytes": 10 * 1024 * 1024, "index.interval.bytes": 4096}
"""Kafka's, and their defaults."""
_OFFSET_ENTRY_BYTES, _TIME_ENTRY_BYTES = 8, 12
_MOST_RELATIVE = 2**31 - 1
"""An index has offsets relative to its segment's base, in four bytes."""


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, {"start"}, {"config", "events"})
    refused: list[AssertionError] = []
    for policy in _policies(fields["config"]):
        try:
            return _run(fields, {"cleanup.policy": policy})
        except AssertionError as error:
            refused.append(error)
    raise refused[0]


def _policies(config: Fields) -> list[str]:
    """What ``cleanup.policy`` may be where a case does not tell it: Kafka's default, or what its maximum lag is for."""
    return ["delete", "compact"] if config.get("max.compaction.lag.ms") is not None else ["compact"]


def _run(fields: Fields, policy: dict[str, str]) -> list[Difference]:
    settings = {name: value for name, value in fields["config"].items() if name != _ROLL_JITTER}
    has_jitter = any(fields["config"].get(name) for name in ("segment.jitter.ms", _ROLL_JITTER))
    jitter = Difference(17, "there is no jitter") if has_jitter else None
    config = TopicConfig.of(policy | settings_of(settings))
    indexes = Indexes.of(settings)
    kafkas = KafkasActive(config, fields["config"].get(_ROLL_JITTER) or 0, fields.get("start"))
    is_random = bool(fields["config"].get("segment.jitter.ms")) and _ROLL_JITTER not in fields["config"]
    differences = [jitter] if jitter else []
    run_of_files: list[Segment] = []
    expected_before = 1
    for number, event in enumerate(fields["events"]):
        assert event["segments"] - expected_before in (0, 1), f"{expected_before} segments, then {event['segments']}"
        rolls = event["segments"] > expected_before
        expected_before = event["segments"]
        if event["op"] == "wait":
            understood(event, "wait", set(), {"op", "now", "segments"})
            assert not rolls
            if run_of_files and not active_segments(run_of_files, config, event["now"]):
                differences.append(Difference(5, "the clock closes the idle active segment"))
        elif event["op"] == "append":
            understood(event, "append", {"size", "ts", "offset"}, {"op", "now", "segments"})
            file = _file(number, event)
            offset = event.get("offset") if file.size_bytes else None
            assert rolls or not indexes.is_surely_far(offset), "in Kafka an index has four bytes for an offset"
            overflow = _NO_INDEXES if rolls and indexes.overflow(file.size_bytes, offset) else None
            kafkas.check(file, event["now"], rolls=rolls, may_be_either=is_random or overflow is not None)
            differences += _append(run_of_files, file, config, rolls=rolls, excuse=jitter or overflow)
            indexes.append(file.size_bytes, offset, rolls=rolls)
        else:
            raise NotUnderstoodError(f"there is no event {event['op']!r}")
    return list(dict.fromkeys(differences))


@dataclass
class Indexes:
    """The indexes of Kafka's active segment, and the offset that its relative ones count from.

    A case tells one offset of a batch, which may be its first or its last, so the base offset lies between two.
    """

    max_bytes: int
    interval_bytes: int
    entries: int = 0
    bytes_since_entry: int = 0
    lowest_base: int = 0
    highest_base: int | None = None
    """Null until a case tells an offset."""

    @classmethod
    def of(cls, settings: Fields) -> Indexes:
        given = {name: int(settings[name]) for name in _INDEX_SETTINGS if settings.get(name) is not None}
        return cls(*(_INDEX_SETTINGS | given).values())

    def overflow(self, size_bytes: int, offset: int | None) -> bool:
        """Whether Kafka may roll before a batch at this offset, whatever its time and size."""
        is_full = self.entries >= min(self.max_bytes // _OFFSET_ENTRY_BYTES, self.max_bytes // _TIME_ENTRY_BYTES - 1)
        # A batch has fewer records than bytes.
        return is_full or (offset is not None and offset + size_bytes - self.lowest_base > _MOST_RELATIVE)

    def is_surely_far(self, offset: int | None) -> bool:
        """Whether Kafka must roll before a batch at this offset."""
        return offset is not None and self.highest_base is not None and offset - self.highest_base > _MOST_RELATIVE

    def append(self, size_bytes: int, offset: int | None, *, rolls: bool) -> None:
        """Take a batch; ``rolls`` if it begins a new segment."""
        if rolls:
            self.entries, self.bytes_since_entry, self.highest_base = 0, 0, None
            self.lowest_base = self.lowest_base if offset is None else max(self.lowest_base, offset - size_bytes)
        if self.bytes_since_entry > self.interval_bytes:
            self.entries, self.bytes_since_entry = self.entries + 1, 0
        self.bytes_since_entry += size_bytes
        self.highest_base = offset if self.highest_base is None else self.highest_base


@dataclass
class KafkasActive:
    """Kafka's active segment: what ``LogSegment.shouldRoll`` asks of it. A file of keptlog's does not tell its age."""

    config: TopicConfig
    jitter_ms: int
    created_ms: int | None
    """Null where a case does not tell when the first segment was made."""
    size_bytes: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP_MS

    def check(self, appended: Segment, now_ms: int, *, rolls: bool, may_be_either: bool) -> None:
        """Whether Kafka rolls before this append, as the case says; then go on as the case says."""
        if not appended.size_bytes:
            return
        kafkas = self._is_rolled(appended, now_ms)
        assert may_be_either or kafkas in (None, rolls), f"Kafka rolls: {kafkas}, in the case: {rolls}"
        if rolls or not self.size_bytes:
            self.first_timestamp_ms = appended.largest_timestamp_ms
        if rolls:
            self.created_ms, self.size_bytes = now_ms, 0
        self.size_bytes += appended.size_bytes

    def _is_rolled(self, appended: Segment, now_ms: int) -> bool | None:
        """Null if that can't be told."""
        if not self.size_bytes:
            return False  # an empty segment is replaced
        if self.size_bytes > self.config.segment_bytes - appended.size_bytes:
            return True
        since_ms, until_ms = self.first_timestamp_ms, appended.largest_timestamp_ms
        if since_ms < 0:
            if self.created_ms is None:
                return None
            since_ms, until_ms = self.created_ms, now_ms
        return until_ms - since_ms > self.config.max_segment_ms - self.jitter_ms


def _append(
    run_of_files: list[Segment], file: Segment, config: TopicConfig, *, rolls: bool, excuse: Difference | None
) -> list[Difference]:
    """Compare whether the append rolls first; then follow Kafka, so that each append is judged from the same state.

    ``excuse`` is why Kafka may answer otherwise.
    """
    differences = []
    if file.size_bytes == 0:
        assert not rolls
        return []
    found = bool(run_of_files) and is_rolled_before(run_of_files, file, config)
    if found is not rolls:
        times = [each.first_timestamp_ms for each in (*run_of_files[:1], file)]
        assert excuse or min(times) < 0, f"rolls: {found}, in Kafka: {rolls}"
        if excuse:
            differences.append(excuse)
        elif min(times) < 0:
            differences.append(Difference(17, "a file does not tell when it was made, so only timestamps count"))
    if rolls:
        run_of_files.clear()
    run_of_files.append(file)
    return differences


def _file(number: int, event: Fields) -> Segment:
    time_ms, size_bytes = event.get("ts", NO_TIMESTAMP_MS), event.get("size", 1)
    return Segment(f"{number}.parquet", number, number, time_ms, time_ms, 1, size_bytes)
