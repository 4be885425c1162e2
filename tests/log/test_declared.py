"""What lies between a topic as it is and as it is declared."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.declared import About, DeclaredTopic, Difference, change_to, valid_owner
from keptlog.log.source import SourceIdentity

THERE = DeclaredTopic("users", 2, {"segment.ms": "3600000", "retention.ms": "5"}, About("Users.", ("team:crm",)))
OWNERS = ("ada@example.com", "a.b+c%d@sub.example.museum", "team:crm", "team:data-platform.eu", "team:ümläut")
FED = DeclaredTopic("users", 3, source=SourceIdentity("users", "4QDcFYv2", "broker:9092"))


def told(before: DeclaredTopic | None, declared: DeclaredTopic) -> list[tuple[str, str | None, str | None]]:
    differences = change_to(before, declared, (None, None)).differences
    return [(each.what, each.before, each.after) for each in differences]


def test_a_topic_as_it_is_has_no_differences() -> None:
    change = change_to(THERE, THERE, (7, None))
    assert (change.differences, change.to_set, change.unset) == ((), {}, ())


def test_a_new_topic_differs_in_everything_that_is_declared() -> None:
    assert told(
        None, DeclaredTopic("users", config={"segment.ms": "1"}, about=About(owners=("a@b.org", "team:x")))
    ) == [
        ("owners", None, "a@b.org, team:x"),
        ("partitions", None, "1"),
        ("segment.ms", None, "1"),
    ]


def test_what_is_left_out_goes_but_for_the_partitions() -> None:
    change = change_to(THERE, DeclaredTopic("users", config={"segment.ms": "60000"}), ())
    assert told(THERE, DeclaredTopic("users", config={"segment.ms": "60000"})) == [
        ("description", "Users.", None),
        ("owners", "team:crm", None),
        ("segment.ms", "3600000", "60000"),
        ("retention.ms", "5", None),
    ]
    assert (change.to_set, change.unset, change.after.partitions) == ({"segment.ms": "60000"}, ("retention.ms",), 2)


def test_a_value_that_means_the_same_is_no_difference_and_keeps_its_text() -> None:
    there = DeclaredTopic("t", 1, {"min.cleanable.dirty.ratio": "0.50", "cleanup.policy": "compact, delete"})
    declared = DeclaredTopic("t", 1, {"min.cleanable.dirty.ratio": "0.5", "cleanup.policy": "compact,delete"})
    assert told(there, declared) == []


def test_partitions_become_more_and_never_fewer() -> None:
    assert told(THERE, DeclaredTopic("users", 4, THERE.config, THERE.about)) == [("partitions", "2", "4")]
    with pytest.raises(InvalidConfig, match=r"it has 2 partitions, and can't have fewer \(1\)"):
        change_to(THERE, DeclaredTopic("users", 1), ())


def test_a_topic_without_records_gets_a_source_and_one_with_records_does_not() -> None:
    declared = DeclaredTopic("users", source=SourceIdentity("there", None, "broker:9092"))
    assert ("source", None, "topic there at broker:9092") in told(THERE, declared)
    with pytest.raises(InvalidConfig, match="it has records of its own, whose offsets are not those of topic there"):
        change_to(THERE, declared, (None, 4))


def test_of_a_source_only_the_address_changes() -> None:
    elsewhere = DeclaredTopic("users", source=SourceIdentity("users", None, "other:9092"))
    change = change_to(FED, elsewhere, (5, 5, 5))
    assert change.after.source == SourceIdentity("users", "4QDcFYv2", "other:9092")
    assert told(FED, DeclaredTopic("users", source=SourceIdentity("users"))) == []
    assert told(FED, DeclaredTopic("users")) == []
    with pytest.raises(InvalidConfig, match="its records come from topic users at broker:9092"):
        change_to(FED, DeclaredTopic("users", source=SourceIdentity("orders")), ())


def test_partitions_of_a_topic_with_a_source_are_those_of_the_source() -> None:
    assert change_to(FED, DeclaredTopic("users", 3), ()).differences == ()
    with pytest.raises(InvalidConfig, match="leave partitions out"):
        change_to(FED, DeclaredTopic("users", 4), ())


def test_a_setting_that_only_somebody_else_knows_goes_when_it_is_not_declared() -> None:
    there = DeclaredTopic("users", 1, {"no.such": "1"})
    assert change_to(there, DeclaredTopic("users"), ()).differences == (Difference("no.such", "1", None),)


@pytest.mark.parametrize("owner", OWNERS)
def test_an_owner_is_a_person_or_a_team(owner: str) -> None:
    assert valid_owner(owner) == owner


@pytest.mark.parametrize("owner", ["", "ada", "team:", "team:a b", "team:a,b", "ada@example", "a@b.org, c@d.org"])
def test_no_other_owner_is_accepted(owner: str) -> None:
    with pytest.raises(InvalidConfig, match="write an email address, or team:NAME"):
        valid_owner(owner)


def test_an_empty_setting_is_a_setting_and_differs_from_none() -> None:
    """With an empty ``cleanup.policy`` nothing goes; without one, Kafka's default deletes what is a week old."""
    without, empty = DeclaredTopic("t", 1), DeclaredTopic("t", 1, {"cleanup.policy": ""})
    assert told(without, empty) == [("cleanup.policy", None, "")]
    assert told(empty, without) == [("cleanup.policy", "", None)]
    assert told(empty, empty) == []
