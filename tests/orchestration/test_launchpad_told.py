"""What a run or a tick says of a choice can be put into the launchpad: the fields of a run, and the topic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.dagster.assets.ingest_report import in_configuration, warning_in_configuration
from keptlog.log.lost_deletions import TombstoneRetention, warning_of_deletions, why_deletions_may_lack
from keptlog.log.source import OffsetRange, SourceIdentity
from tests.orchestration.ingesting import IngestWorld, ingest_world
from tests.orchestration.shipped import health_sensor


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def test_a_run_and_a_tick_name_the_fields_of_a_run_s_configuration(here: IngestWorld) -> None:
    here.knows("users", 100)
    here.produce("users", ("a", "1"))
    choice = f"ingest it into another topic (topics: [users], bootstrap: {here.broker.bootstrap}, into: users-again)"
    assert choice in here.failure(here.ingest(topics=["users"]))
    assert choice in here.skips()


def test_whoever_does_as_is_told_gets_another_topic(here: IngestWorld) -> None:
    """Also where the topic has another name there, and the home no brokers but those that its topics remember."""
    here.knows("users", 100, there="shop.users")
    here.produce("shop.users", ("a", "1"))
    told = re.search(r"another topic \((topics: .*into: .*?)\)", here.failure(here.ingest(topics=["users"])))
    assert told
    config = dict(each.split(": ", 1) for each in told[1].split(", "))
    topics = [config.pop("topics").strip("[]")]
    assert here.ingest(topics=topics, **config).success
    assert sum(log.log_end_offset for log in here.logs("users-again")) == 1


def test_the_health_of_all_logs_tells_it_in_the_same_words(here: IngestWorld) -> None:
    here.knows("users", 100)
    here.produce("users", ("a", "1"))
    here.tick()
    told = here.world.tick(health_sensor).asset_events
    assert "(topics: [users], bootstrap: " in str(told)


def test_each_choice_names_its_topic() -> None:
    read = OffsetRange(0, 20, 20, 40, position_as_of_ms=0)
    why = why_deletions_may_lack("users", read, TombstoneRetention(1), 2)
    assert why
    assert in_configuration(why, "users", SourceIdentity("shop.users", None, None)).endswith(
        "delete here what is gone (topics: [users], reconcile: true), go on without (topics: [users], skip_lost: true),"
        " or ingest it into another topic (topics: [shop.users], into: users-again)"
    )


def test_the_page_of_a_source_says_it_in_the_same_words_and_does_so_once(here: IngestWorld) -> None:
    here.knows("users", 100)
    here.produce("users", ("a", "1"))
    first = here.tick().asset_events[0]
    assert f"(topics: [users], bootstrap: {here.broker.bootstrap}, into: users-again)" in str(first.metadata["stopped"])
    for _ in range(2):
        here.world.reopen()
        assert list(here.tick().asset_events) == []


def test_a_warning_names_the_field_of_a_run_that_finds_what_it_is_about() -> None:
    warning = warning_of_deletions("eu-users", OffsetRange(3, 20, 20, 40), TombstoneRetention(1), 2)
    assert warning
    assert warning_in_configuration(warning).endswith("(a run with topics: [eu-users], reconcile: true finds them)")


def test_of_a_topic_that_was_not_planned_nobody_says_where_it_is(here: IngestWorld) -> None:
    here.world.topic("users")
    here.world.append("users", ("a", "1"))
    here.produce("shop.users", ("a", "1"))
    config = {"topics": ["shop.users"], "bootstrap": here.broker.bootstrap, "into": "users"}
    assert "into another topic (into: users-ingested)" in here.failure(here.ingest(**config))
