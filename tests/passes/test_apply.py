"""Topics as code, over a real catalog: what is planned is done, once, and what can't be done costs only itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt, StalePlan, UnknownTopic, UnsupportedFormat
from keptlog.log.declared import About
from keptlog.log.record import NewRecord
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.log.topic_partition import TopicPartition
from keptlog.passes.observer import Observer, observe
from keptlog.table.metadata.format import FORMAT_VERSION
from keptlog.table.metadata.state import COMMENT, OWNERS
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.store import LogStore
from keptlog.topics_file.reading import read_topics
from keptlog.topics_file.writing import as_yaml
from tests.logs import open_store
from tests.passes.applying import applied, applier, file
from tests.passes.conftest import NOW_MS

A = "  a: {config: {cleanup.policy: compact}}\n"


def refused(store: LogStore, *lines: str, delete: tuple[str, ...] = ()) -> list[str]:
    """What is said; and nothing is done."""
    before = {name: store.load_table(name).metadata_location for name in store.topics()}
    plan = applier(store).plan(file(*lines), delete)
    with pytest.raises(InvalidConfig, match=r"nothing was changed: topics\.yaml:"):
        applier(store).carry_out(plan, NOW_MS)
    assert {name: store.load_table(name).metadata_location for name in store.topics()} == before
    return plan.refused_lines()


def test_a_topic_is_created_with_all_that_is_declared(store: LogStore) -> None:
    lines = (
        "  new:\n",
        "    description: New.\n",
        "    owners: [team:crm, ada@example.com]\n",
        "    partitions: 3\n",
        "    config: {cleanup.policy: compact, segment.ms: 5}\n",
    )
    done = applied(store, *lines)
    topic = store.describe_topic("new")
    assert (done.done, done.failed, done.plan.undeclared) == (("new",), {}, ("a", "b", "c"))
    assert (topic.partitions, topic.raw_config) == (3, {"cleanup.policy": "compact", "segment.ms": "5"})
    assert topic.about == About("New.", ("team:crm", "ada@example.com"))
    assert not applier(store).plan(file(*lines)).has_differences


def test_a_topic_is_altered_in_one_commit_and_keeps_its_records(store: LogStore) -> None:
    before = store.load_table("a")
    lines = (
        "  a:\n",
        "    partitions: 2\n",
        "    owners: team:x\n",
        "    config: {cleanup.policy: 'compact,delete'}\n",
    )
    applied(store, *lines)
    table = store.load_table("a")
    assert len(table.metadata.snapshots) == len(before.metadata.snapshots) + 1
    assert (table.properties[OWNERS], COMMENT in table.properties) == ("team:x", False)
    assert [(log.log_start_offset, log.log_end_offset) for log in store.logs("a")] == [(0, 2), (0, 0)]
    assert [record.value for _, record in store.read("a")] == [b"1", b"2"]
    store.append("a", [NewRecord(b"k", b"3", NOW_MS, 1)], None, NOW_MS)
    applied(store, "  a: {}\n")
    topic = store.describe_topic("a")
    assert (topic.partitions, topic.raw_config, topic.about) == (2, {}, About())
    assert [record.value for _, record in store.read("a", 1)] == [b"3"]


def test_applying_again_commits_nothing(store: LogStore) -> None:
    applied(store, A)
    before = store.load_table("a").metadata_location
    done = applied(store, A)
    assert (done.done, done.plan.changes, done.plan.unchanged) == ((), (), ("a",))
    assert store.load_table("a").metadata_location == before


def test_what_goes_back_to_its_default_is_told_with_the_value_that_is_in_force_then(store: LogStore) -> None:
    store.alter_topic("a", {"retention.ms": "5", "segment.ms": "7"})
    [planned] = applier(store).plan(file(A)).changes
    assert planned.defaults == {"retention.ms": "604800000, the default", "segment.ms": "604800000, the default"}
    applied(store, A)
    assert store.describe_topic("a").config.retention_ms == 604_800_000


def test_a_file_that_forgets_the_policy_tells_that_the_latest_records_will_go(store: LogStore) -> None:
    """A new topic of that policy was noted, and one that was full of the latest records of its keys was not."""
    [planned] = applier(store).plan(file("  a: {owners: [team:crm]}\n")).changes
    assert planned.notes == (
        "cleanup.policy is delete from now on: it is not compacted any more",
        "segments with nothing younger than retention.ms=604800000 (7 d) will be deleted, "
        "the latest records of their keys too",
    )
    applied(store, "  a: {owners: [team:crm]}\n")
    [planned] = applier(store).plan(file(A)).changes
    assert planned.notes == (
        "cleanup.policy is compact from now on: of each key only the latest record stays, "
        "and records without a key are deleted",
    )
    assert planned.defaults_before == {"cleanup.policy": "delete, stored with the topic"}


def test_a_topic_whose_setting_another_program_has_broken_is_mended_by_the_file(store: LogStore) -> None:
    store.load_table("a").transaction().set_properties({"kafka.segment.ms": "soon"}).commit_transaction()
    with pytest.raises(InvalidConfig):
        store.describe_topic("a")
    assert applied(store, A).done == ("a",)
    assert store.describe_topic("a").config.is_compacted


def test_only_what_is_named_is_deleted(store: LogStore) -> None:
    done = applied(store, A, delete=("b", "nowhere"))
    assert (store.topics(), list(done.deletions), done.plan.gone) == (["a", "c"], ["b"], ("nowhere",))
    again = applied(store, A, delete=("b",))
    assert (again.plan.gone, again.failed) == (("b",), {})


def test_a_topic_is_not_both_declared_and_deleted(store: LogStore) -> None:
    said = "topics.yaml:2: topic a is declared here and to be deleted (--delete a): choose one"
    assert refused(store, A, delete=("a",)) == [said]
    assert "a" in store.topics()


def test_with_one_entry_that_is_refused_nothing_is_done_for_the_others(
    store: LogStore, make_unreadable: Callable[[str], None]
) -> None:
    make_unreadable("c")
    assert refused(store, "  new: {}\n", "  c: {}\n", "  A: {}\n") == [
        "topics.yaml:4: topic A: it differs from topic a only in capitals: choose another name"
    ]


def test_topics_that_cant_be_read_stop_no_other(store: LogStore, make_unreadable: Callable[[str], None]) -> None:
    make_unreadable("c")
    damaged, newer = store.load_table("a"), store.load_table("b")
    damaged.transaction().set_properties({"log.partitions": "some"}).commit_transaction()
    newer.transaction().set_properties({FORMAT_VERSION: "2.0"}).commit_transaction()
    lines = ("  new: {}\n", "  a: {}\n", "  b: {}\n", "  c: {partitions: 2}\n")
    wanted = {"a": LogCorrupt, "b": UnsupportedFormat, "c": LogCorrupt}
    plan = applier(store).plan(file(*lines))
    assert (plan.refused, {name: type(error) for name, error in plan.failed.items()}) == ((), wanted)
    done = applier(store).carry_out(plan, NOW_MS)
    assert (done.done, done.failed, done.not_tried) == (("new",), plan.failed, ())
    again = applied(store, *lines)
    assert (again.done, again.failed.keys()) == ((), wanted.keys())


def test_a_topic_that_cant_be_read_costs_nothing_where_it_is_not_declared(
    store: LogStore, make_unreadable: Callable[[str], None]
) -> None:
    make_unreadable("c")
    assert applied(store, "  a: {}\n", "  new: {}\n").done == ("a", "new")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  a: {partitions: 1, source: {bootstrap: x}}\n", "leave partitions out"),
        ("  a: {source: {bootstrap: x}}\n", "it has records of its own"),
        ("  A: {}\n", "it differs from topic a only in capitals: choose another name"),
        ("  t: {config: {min.compaction.lag.ms: 9, max.compaction.lag.ms: 5}}\n", "a record could not meet both"),
        ("  a: {config: {min.compaction.lag.ms: 9, max.compaction.lag.ms: 5}}\n", "a record could not meet both"),
        ("  t: {config: {compaction.strategy: header}}\n", "needs compaction.strategy.header"),
    ],
)
def test_what_the_home_does_not_allow_is_refused_before_anything_is_done(store: LogStore, line: str, said: str) -> None:
    [text] = refused(store, "  new: {}\n", line)
    assert text.startswith("topics.yaml:3: topic ")
    assert said in text


def test_fewer_partitions_are_refused(store: LogStore) -> None:
    store.create_topic("wide", 3, {})
    assert refused(store, "  wide: {partitions: 2}\n") == [
        "topics.yaml:2: topic wide: it has 3 partitions, and can't have fewer (2): their records would be lost; leave "
        "partitions as they are, or make another topic"
    ]


def test_a_topic_that_somebody_else_has_moved_is_not_altered_and_stops_no_other(store: LogStore) -> None:
    table = store.load_table("a")
    table.manage_snapshots().create_branch(table.metadata.current_snapshot_id or 0, "b").commit()
    store.append("a", [NewRecord(b"k", b"3", NOW_MS, 0)], None, NOW_MS)
    store.load_table("a").manage_snapshots().rollback_to_snapshot(table.metadata.current_snapshot_id or 0).commit()
    done = applied(store, "  a: {}\n", "  b: {}\n")
    assert "keptlog repair a" in str(done.failed["a"])
    assert done.done == ("b",)
    assert applied(store, A).plan.unchanged == ("a",)


def test_a_topic_that_was_altered_since_is_told_and_stops_no_other(store: LogStore) -> None:
    plan = applier(store).plan(file("  a: {}\n", "  b: {}\n", "  new: {}\n"))
    store.alter_topic("a", {"segment.ms": "5"})
    store.append("b", [NewRecord(b"k", b"3", NOW_MS, 0)], None, NOW_MS)
    store.create_topic("new", 1, {"segment.ms": "5"})
    done = applier(store).carry_out(plan, NOW_MS)
    assert done.done == ("b",)
    assert {name: type(error) for name, error in done.failed.items()} == {"a": StalePlan, "new": StalePlan}
    assert "created since it was compared, and not as it is declared" in str(done.failed["new"])
    assert store.describe_topic("a").raw_config == {"cleanup.policy": "compact", "segment.ms": "5"}
    assert applied(store, "  a: {}\n", "  b: {}\n", "  new: {}\n").done == ("a", "new")


def test_who_was_faster_to_create_a_topic_as_it_is_declared_has_done_it(store: LogStore) -> None:
    lines = ("  new: {partitions: 2, config: {segment.ms: 5}, owners: team:x}\n",)
    plan = applier(store).plan(file(*lines))
    applied(store, *lines)
    before = store.load_table("new").metadata_location
    done = applier(store).carry_out(plan, NOW_MS)
    assert (done.done, done.failed) == (("new",), {})
    assert store.load_table("new").metadata_location == before


def test_a_topic_that_was_made_anew_since_is_another_one(store: LogStore) -> None:
    plan = applier(store).plan(file("  a: {}\n"))
    store.delete_topic("a", NOW_MS)
    store.create_topic("a", 1, {"cleanup.policy": "compact"})
    assert isinstance(applier(store).carry_out(plan, NOW_MS).failed["a"], StalePlan)


def test_a_source_can_be_declared_before_anything_was_ingested(store: LogStore) -> None:
    applied(store, "  fed: {source: {topic: there, bootstrap: 'broker:9092'}}\n")
    assert store.source_of("fed").source == SourceIdentity("there", None, "broker:9092")
    with pytest.raises(InvalidConfig, match="ingested"):
        store.append("fed", [NewRecord(b"k", b"3", NOW_MS, 0)], None, NOW_MS)
    found = SourceIdentity("there", "4QDcFYv2", "broker:9092")
    store.ingest("fed", [Arrival(OffsetRange(1, None, 40, 55), ())], found, 3, "run")
    assert not applier(store).plan(file("  fed: {source: {topic: there, bootstrap: 'broker:9092'}}\n")).has_differences
    applied(store, "  fed: {source: {topic: there, bootstrap: 'other:9092'}}\n")
    assert store.source_of("fed").source == replace(found, bootstrap="other:9092")
    assert store.source_of("fed").positions == (None, 55, None)


def test_a_topic_that_has_got_records_of_its_own_since_gets_no_source(store: LogStore) -> None:
    store.create_topic("orders", 1, {})
    lines = "  orders: {source: {bootstrap: 'broker:9092'}}\n"
    plan = applier(store).plan(file(lines))
    store.append("orders", [NewRecord(b"k", b"1", NOW_MS, 0)], None, NOW_MS)
    done = applier(store).carry_out(plan, NOW_MS)
    assert (done.done, list(done.failed)) == ((), ["orders"])
    assert isinstance(done.failed["orders"], InvalidConfig)
    assert "has records of its own" in str(done.failed["orders"])
    assert store.source_of("orders").source is None
    store.append("orders", [NewRecord(b"k", b"2", NOW_MS, 0)], None, NOW_MS)
    assert [record.value for _, record in store.read("orders")] == [b"1", b"2"]


def test_what_is_exported_is_no_difference_here_and_the_same_elsewhere(
    store: LogStore, tmp_path: Path, make_unreadable: Callable[[str], None]
) -> None:
    applied(
        store,
        "  a: {description: 'Of: all.', owners: [team:x], partitions: 3, config: {segment.ms: 7}}\n",
        "  fed: {source: {bootstrap: 'broker:9092'}, config: {cleanup.policy: 'compact,delete'}}\n",
    )
    topics, unreadable = applier(store).export()
    assert unreadable == {}
    exported = read_topics(as_yaml(topics).encode(), "exported.yaml")
    assert not applier(store).plan(exported).has_differences
    elsewhere = open_store(tmp_path / "elsewhere")
    there = applier(elsewhere)
    there.carry_out(there.plan(exported), NOW_MS)
    assert there.export() == (topics, {})
    store.load_table("b").transaction().set_properties({"log.partitions": "some"}).commit_transaction()
    some, unreadable = applier(store).export(["a", "b"])
    assert ([topic.name for topic in some], [type(error) for error in unreadable.values()]) == (["a"], [LogCorrupt])
    with pytest.raises(UnknownTopic):
        applier(store).export(["nowhere"])


def test_who_looks_at_a_topic_is_told_what_it_is(store: LogStore) -> None:
    applied(store, "  a: {description: All of it., owners: [team:x]}\n")
    about = About("All of it.", ("team:x",))
    for overview in (observe(store, now_ms=NOW_MS), Observer(store, lambda: 0).look(NOW_MS)):
        assert overview.about == {"a": about, "b": About(), "c": About()}


def test_new_partitions_are_cleaned_and_read_as_any_other(store: LogStore) -> None:
    applied(store, "  a: {partitions: 3, config: {cleanup.policy: compact}}\n")
    names = [log.topic_partition for log in store.logs("a")]
    assert names == [TopicPartition("a", number) for number in range(3)]
    old_ms = NOW_MS - 8 * 24 * 3_600_000
    store.append("a", [NewRecord(b"k", value, old_ms, 2) for value in (b"1", b"2")], None, NOW_MS)
    overview = observe(store, ["a"], now_ms=NOW_MS)
    assert [str(each.log.topic_partition) for each in overview.assessments if each.trigger] == ["a-0", "a-2"]


def test_a_topic_that_is_being_deleted_fails_alone_and_its_deletion_can_be_finished(store: LogStore) -> None:
    catalog = store.committer.catalog
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, "c"), (DELETING, "c"))
    [text] = refused(store, "  C: {}\n")
    assert "differs from topic c only" in text
    others = applied(store, "  a: {config: {cleanup.policy: compact, segment.ms: 5}}\n", "  c: {}\n", "  new: {}\n")
    assert (others.done, list(others.failed)) == (("a", "new"), ["c"])
    assert str(others.failed["c"]).startswith("c: its deletion was begun and is not finished")
    done = applied(store, A, delete=("c",))
    assert (list(done.deletions), done.plan.gone, store.being_deleted()) == (["c"], (), [])
