"""A page shows the last observation of a source, of whichever log it is: each tells how the whole topic stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.dagster.assets.ingest_report import source_observation, source_outlook
from keptlog.ingest.lag import TopicLag
from keptlog.log.source import IngestPlan, SourceIdentity, SourceLog, SourceTopic, StoredSource, plan_ingest
from keptlog.log.topic_partition import TopicPartition
from tests.orchestration.ingesting import IngestWorld, ingest_world
from tests.orchestration.shipped import KEYS
from tests.orchestration.test_ingest_sensor import observed

MINUTE_MS = 60_000


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def shown(here: IngestWorld) -> dict[str, object]:
    """What the page shows after a tick that has told something."""
    return list(observed(here.tick()).values())[-1]


def test_a_page_says_what_is_stopped_though_the_last_log_told_is_another(here: IngestWorld) -> None:
    """It said a lag of 0, and nothing else, of a topic whose first log was stopped for good."""
    here.produce("users", ("a", "1"))
    here.knows("users", 7, 0)

    page = shown(here)

    assert page["log"] == "users-3"
    assert page["consumer_lag"] == page["topic_consumer_lag"] == 0
    assert str(page["topic_stopped"]).startswith("users-0: it ends at offset 7 here and at 1 at its source")
    assert "stopped" not in page, "that is of the log"
    here.produce("users", ("b", "1"), partition=2)
    here.world.now_ms += 5 * MINUTE_MS

    page = shown(here)

    assert page["log"] == "users-2"
    assert "users-0: it ends at" in str(page["topic_stopped"])


def test_a_page_says_how_far_all_logs_are_behind_together(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"), ("b", "1"), ("c", "1"))
    here.produce("users", ("a", "1"), partition=1)
    here.knows("users", 1, 0, 0, 0)

    page = shown(here)

    assert (page["log"], page["consumer_lag"], page["topic_consumer_lag"]) == ("users-3", 0, 3)
    assert "topic_stopped" not in page


def test_a_sum_without_a_log_whose_leader_is_away_is_not_told(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 0, 0, 0)
    here.broker.lose_leader("users", 1)

    page = shown(here)

    assert page["log"] == "users-3"
    assert "topic_consumer_lag" not in page


def test_what_waits_for_open_transactions_is_told_beside_a_lag_of_none() -> None:
    logs = {0: SourceLog(0, 0, 5, high_watermark=1006), 1: SourceLog(1, 0, 7, high_watermark=9), 2: SourceLog(2, 0, 0)}
    plan = IngestPlan("users", SourceIdentity("users", None, "broker:9092"), 3, ())
    topic = TopicLag("users", "", (5, 7, 0), plan, logs, 0)

    assert source_outlook(topic) == {"topic_consumer_lag": 0, "topic_behind_open_transaction": 1003}


def test_the_lag_of_a_topic_is_of_what_may_be_read_as_in_the_health_report() -> None:
    """A topic that was created again was said to be behind by the distance to the end of the other one."""
    here, there = (SourceIdentity("users", each, "broker:9092") for each in ("old", "new"))
    logs = {0: SourceLog(0, 0, 1000)}
    plan = plan_ingest("users", StoredSource(here, (7,)), SourceTopic(there, tuple(logs.values())))
    told = source_outlook(topic := TopicLag("users", "", (7,), plan, logs, 0))

    assert "topic_stopped" in told
    assert told["topic_consumer_lag"] == topic.lag == 0
    page = source_observation(KEYS, name := TopicPartition("users", 0), topic.lag_of(name), told).metadata
    assert page["last_stable_offset"].value == 1000
    assert "consumer_lag" not in page, "993 stood beside the 0 of its topic"
