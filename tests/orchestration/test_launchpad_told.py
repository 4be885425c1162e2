"""What a run or a tick says of a choice can be put into the launchpad: the fields of a run, and the topic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.dagster.assets.ingest_report import in_configuration
from keptlog.log.lost_deletions import TombstoneRetention, why_deletions_may_lack
from keptlog.log.source import OffsetRange
from tests.orchestration.ingesting import IngestWorld, ingest_world


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def test_a_run_and_a_tick_name_the_fields_of_a_run_s_configuration(here: IngestWorld) -> None:
    here.knows("users", 100)
    here.produce("users", ("a", "1"))
    choice = "ingest it into another topic (topics: [users], into: users-again)"
    assert choice in here.failure(here.ingest(topics=["users"]))
    assert choice in here.skips()


def test_each_choice_names_its_topic() -> None:
    read = OffsetRange(0, 20, 20, 40, position_as_of_ms=0)
    why = why_deletions_may_lack("users", read, TombstoneRetention(1), 2)
    assert why
    assert in_configuration(why, "users").endswith(
        "delete here what is gone (topics: [users], reconcile: true), go on without (topics: [users], skip_lost: true),"
        " or ingest it into another topic (topics: [users], into: users-again)"
    )
