"""Whatever was stored in a home of an older format is found in it, and judged as it was."""

from __future__ import annotations

import json

from tests.frozen_homes import telling
from tests.frozen_homes.conftest import Frozen


def test_what_was_stored_is_found(frozen: Frozen) -> None:
    assert telling.stored(frozen.home) == frozen.topics


def test_the_state_that_a_topic_tells_is_printed(frozen: Frozen) -> None:
    for topic, told in frozen.topics.items():
        latest = [log["latest"] for log in told["logs"]]
        if "unreadable" in latest:
            continue
        printed = [json.loads(line) for line in frozen.at(frozen.now_ms, "read", topic, "--latest").out.splitlines()]
        offsets = [[each["offset"] for each in printed if each["partition"] == n] for n in range(len(latest))]
        assert offsets == latest


def test_the_guarantees_are_found_kept_or_broken_as_they_were(frozen: Frozen) -> None:
    verified = telling.verdicts(frozen.home, frozen.now_ms)
    assert telling.as_told_then(verified, frozen.expected["verified"]) == frozen.expected["verified"]


def test_the_status_is_what_it_was_read_from_the_tables_and_again_from_the_cache(frozen: Frozen) -> None:
    for _ in range(2):
        told = telling.status(frozen.home, frozen.now_ms)
        for row, then in zip(told, frozen.expected["status"], strict=True):
            # A metric that is newer than the home was not told then.
            row["metrics"] = {name: row["metrics"][name] for name in then["metrics"]}
            # It was below 0 for a clean that ended after the time as of which the home is looked at.
            since_ms = then["metrics"]["time-since-last-run-ms"]
            then["metrics"]["time-since-last-run-ms"] = None if since_ms is None else max(since_ms, 0)
        assert told == frozen.expected["status"]


def test_every_log_is_explained_and_every_topic_described(frozen: Frozen) -> None:
    for topic, told in frozen.topics.items():
        assert frozen.at(frozen.now_ms, "topic", "describe", topic, "--json").json["partitions"] == len(told["logs"])
        for number in range(len(told["logs"])):
            explained = frozen.at(frozen.now_ms, "explain", topic, str(number), "--json")
            assert explained.json["topic_partition"] == f"{topic}-{number}"
            # What a clean would fail of is said before it is tried: the topic that was broken on purpose.
            is_broken = topic == "broken"
            assert (explained.code, bool(explained.json["obstacles"])) == (int(is_broken), is_broken)
