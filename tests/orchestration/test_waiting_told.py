"""What waits at a source for an open transaction to end is in its observation, and is news once it changes."""

from __future__ import annotations

from keptlog.dagster.assets.ingest_report import lag_told, source_observation
from keptlog.ingest.lag import LogLag
from keptlog.ingest.lag_news import ShownLag
from keptlog.log.source import SourceLog
from keptlog.log.topic_partition import TopicPartition
from tests.orchestration.shipped import KEYS

NAME = TopicPartition("users", 0)
WAITS = LogLag(None, 5, SourceLog(0, 0, 5, high_watermark=1006))


def test_an_observation_says_what_waits_beside_a_lag_of_none() -> None:
    numbers = {name: each.value for name, each in source_observation(KEYS, NAME, WAITS).metadata.items()}
    assert numbers == {
        "position": 5,
        "log_start_offset": 0,
        "last_stable_offset": 5,
        "high_watermark": 1006,
        "behind_open_transaction": 1001,
        "consumer_lag": 0,
    }


def test_a_new_process_takes_it_from_the_observation_that_was_told() -> None:
    assert lag_told(source_observation(KEYS, NAME, WAITS)) == ShownLag.of(WAITS)
    assert ShownLag.of(WAITS) != ShownLag.of(WAITS._replace(log=SourceLog(0, 0, 5)))
