"""``roll``: when an append closes the active segment, against ``keptlog.log.roll``."""

from __future__ import annotations

from keptlog.log.config import TopicConfig
from keptlog.log.roll import active_segments
from keptlog.log.segment import Segment
from tests.building import is_rolled_before
from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields, settings_of, understood

_ROLL_JITTER = "_active_roll_jitter_ms"
"""What a case draws of the jitter that its topic allows."""

_NO_TIMESTAMP_MS = -1
"""What Kafka's tests give to a record without one."""


def run(case: Fields) -> list[Difference]:
    fields = case_fields(case, {"start"}, {"config", "events"})
    settings = {name: value for name, value in fields["config"].items() if name != _ROLL_JITTER}
    has_jitter = any(fields["config"].get(name) for name in ("segment.jitter.ms", _ROLL_JITTER))
    config = TopicConfig.of({"cleanup.policy": "compact"} | settings_of(settings))
    differences = [Difference(17, "there is no jitter")] if has_jitter else []
    run_of_files: list[Segment] = []
    expected_before = 1
    for number, event in enumerate(fields["events"]):
        rolls = event["segments"] > expected_before
        expected_before = event["segments"]
        if event["op"] == "wait":
            understood(event, "wait", set(), {"op", "now", "segments"})
            assert not rolls
            if run_of_files and not active_segments(run_of_files, config, event["now"]):
                differences.append(Difference(5, "the clock closes the idle active segment"))
        elif event["op"] == "append":
            understood(event, "append", {"size", "ts"}, {"op", "now", "segments"})
            differences += _append(run_of_files, _file(number, event), config, rolls=rolls, has_jitter=has_jitter)
        else:
            raise NotUnderstoodError(f"there is no event {event['op']!r}")
    return list(dict.fromkeys(differences))


def _append(
    run_of_files: list[Segment], file: Segment, config: TopicConfig, *, rolls: bool, has_jitter: bool
) -> list[Difference]:
    """Compare whether the append rolls first; then follow Kafka, so that each append is judged from the same state."""
    differences = []
    if file.size_bytes == 0:
        assert not rolls
        return []
    found = bool(run_of_files) and is_rolled_before(run_of_files, file, config)
    if found is not rolls:
        times = [each.first_timestamp_ms for each in (*run_of_files[:1], file)]
        assert has_jitter or min(times) < 0, f"rolls: {found}, in Kafka: {rolls}"
        if min(times) < 0:
            differences.append(Difference(17, "a file does not tell when it was made, so only timestamps count"))
    if rolls:
        run_of_files.clear()
    run_of_files.append(file)
    return differences


def _file(number: int, event: Fields) -> Segment:
    time_ms, size_bytes = event.get("ts", _NO_TIMESTAMP_MS), event.get("size", 1)
    return Segment(f"{number}.parquet", number, number, time_ms, time_ms, 1, size_bytes)
