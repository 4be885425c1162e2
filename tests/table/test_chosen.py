"""Who is to look after some topics of a home knows no others: nothing lists, reads or changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import UnknownTopic
from keptlog.home import Home, open_home, wall_clock_ms
from keptlog.log.holder import HolderKind
from keptlog.log.record import NewRecord
from keptlog.passes.observer import observe
from keptlog.table.purging.purge_memory import PurgeMemory

NOW_MS = wall_clock_ms()
CONFIG = {"cleanup.policy": "compact", "segment.ms": "1"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Topics of two teams, each with something to clean."""
    home = open_home(tmp_path / "home")
    for topic in ("crm.users", "crm.orders", "sales.users"):
        home.create_topic(topic, 1, CONFIG)
        home.append(topic, [NewRecord(b"a", b"1", NOW_MS, 0), NewRecord(b"a", b"2", NOW_MS, 0)])
    return home


def test_all_that_lists_topics_lists_the_chosen_ones(home: Home) -> None:
    crm = home.only(["crm.*"])

    assert crm.topics() == ["crm.orders", "crm.users"]
    assert set(crm.store.metadata_locations()) == {"crm.orders", "crm.users"}
    assert {log.topic_partition.topic for log in observe(crm.store, now_ms=NOW_MS).logs} == {"crm.orders", "crm.users"}
    assert [str(step.topic_partition) for step in crm.plan(now_ms=NOW_MS + 10).steps] == ["crm.orders-0", "crm.users-0"]
    assert set(crm.purger.purge(now_ms=NOW_MS).receipts) == {"crm.orders", "crm.users"}
    assert home.only(["crm.users", "sales.*"]).topics() == ["crm.users", "sales.users"]


CALLS: dict[str, Callable[[Home], object]] = {
    "describe": lambda home: home.describe_topic("sales.users"),
    "read": lambda home: list(home.read("sales.users")),
    "append": lambda home: home.append("sales.users", [NewRecord(b"a", b"1", NOW_MS, 0)]),
    "alter": lambda home: home.alter_topic("sales.users", {"segment.ms": "2"}),
    "delete": lambda home: home.delete_topic("sales.users"),
    "create": lambda home: home.create_topic("sales.orders", 1, CONFIG),
    "observe": lambda home: home.store.observe("sales.users"),
    "purge": lambda home: home.purger.purge(["sales.users"], now_ms=NOW_MS),
}


@pytest.mark.parametrize("call", CALLS)
def test_another_topic_is_unknown_and_stays_as_it_is(home: Home, call: str) -> None:
    before = home.store.metadata_locations()

    with pytest.raises(UnknownTopic, match=r"sales\.(users|orders)'"):
        CALLS[call](home.only(["crm.*"]))

    assert home.store.metadata_locations() == before


def test_a_change_that_was_made_elsewhere_is_refused_where_it_commits(home: Home) -> None:
    crm = home.only(["crm.*"]).store

    with pytest.raises(UnknownTopic, match="none of those that are looked after here"):
        crm.mark_uncleanable("sales.users", (), NOW_MS, None)  # type: ignore[arg-type]


def test_topics_that_nobody_looks_after_here_are_not_taken_for_leftovers(home: Home) -> None:
    observe(home.store, now_ms=NOW_MS)

    held = home.only(["crm.*"]).holdings_here.held
    assert not [each for each in held if each.kind is HolderKind.CACHE]


def test_a_purge_of_the_chosen_topics_forgets_nothing_of_the_others(home: Home) -> None:
    observe(home.store, now_ms=NOW_MS)
    memory = PurgeMemory(home.path, {})

    replace(home.only(["crm.*"]).purger, memory=memory).purge(now_ms=NOW_MS)

    assert {path.stem for path in (home.path / "cache").glob("*.json")} >= {"sales.users", "crm.users"}
