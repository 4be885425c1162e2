"""More conditions than there may be series: alerts ask for each kind, so some of each kind must be among them."""

from __future__ import annotations

from keptlog.log.told.conditions import Condition, Level, Matter, Sighting
from keptlog.log.told.exposition import Look, exposition

LATE = tuple(Condition(Matter.DEADLINE, f"users-{number}", "", "users") for number in range(2000))


def shown(conditions: tuple[Condition, ...], most: int) -> list[tuple[str, ...]]:
    families = exposition(Look("home", Sighting(0, conditions), None), most)
    return [labels[:3] for family in families if family.name == "keptlog_condition" for labels, _ in family.rows]


def test_very_many_late_logs_hide_no_other_condition() -> None:
    others = [(Matter.SPARK, "Spark"), (Matter.UNREADABLE, "orders"), (Matter.ERASURE, "users")]
    told = shown(LATE + tuple(Condition(matter, subject, "") for matter, subject in others), 1000)
    assert len(told) == 1000
    for matter, subject in others:
        assert (matter.value, "broken", subject) in told


def test_what_is_near_has_a_series_beside_what_is_broken_and_gives_way_to_it_where_there_are_few() -> None:
    near = Condition(Matter.ERASURE, "users", "", "users", Level.NEAR)
    assert ("erasure deadline", "near", "users") in shown((*LATE, near), 1000)
    assert shown((near, *LATE), 1) == [("compaction deadline", "broken", "users-0")]
