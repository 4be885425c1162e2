"""Topics: created, described, listed and altered, under the names that Kafka allows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.table import CommitTableResponse, Table

from keptlog.errors import InvalidConfig, StalePlan, UnknownTopic
from keptlog.home import open_home
from keptlog.storage.schema import SCHEMA
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.metadata.schema import PARTITION_SPEC, TABLE_SCHEMA
from tests.table.stores import COMPACTED, TOPIC, FaultyCatalog, append_each, create, store_at, store_over


def test_a_new_topic_has_its_partitions_its_configuration_and_nothing_else(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    created = store.create_topic(TOPIC, 3, {"cleanup.policy": "compact", "segment.ms": "5"})
    assert created == store.describe_topic(TOPIC)
    assert (created.name, created.partitions, created.snapshot_id) == (TOPIC, 3, None)
    assert created.raw_config == {"cleanup.policy": "compact", "segment.ms": "5"}
    assert created.config.segment_ms == 5
    assert [(log.segments, log.log_end_offset, log.checkpoint) for log in store.logs(TOPIC)] == [((), 0, None)] * 3


@pytest.mark.parametrize("name", ["server.schema.table", "a-b", "a_b", "__consumer_offsets", "a..b", "-", "x" * 249])
def test_a_name_with_dots_hyphens_and_underscores_stays_what_it_is(tmp_path: Path, name: str) -> None:
    store = store_at(tmp_path)
    store.create_topic(name, 1, COMPACTED)
    assert store.topics() == [name]
    assert store_at(tmp_path).describe_topic(name).name == name
    assert list(store.metadata_locations()) == [name]


def test_names_that_differ_in_a_separator_are_different_topics(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    for name in ("a-b", "a_b", "a.b"):
        store.create_topic(name, 1, {})
    assert store.topics() == ["a-b", "a.b", "a_b"]


@pytest.mark.parametrize(("there", "wanted"), [("users", "Users"), ("Shop.A-b_c", "shop.a-B_C")])
def test_a_topic_whose_name_differs_from_another_only_in_capitals_is_refused(
    tmp_path: Path, there: str, wanted: str
) -> None:
    store = store_at(tmp_path)
    store.create_topic(there, 1, COMPACTED)
    with pytest.raises(InvalidConfig, match=f"topic '{wanted}' differs from topic '{there}' only in capitals"):
        store.create_topic(wanted, 1, COMPACTED)
    assert store.topics() == [there]


@pytest.mark.parametrize(
    ("name", "partitions", "config", "said"),
    [
        ("no/slash", 1, {}, "not allowed"),
        ("..", 1, {}, "not allowed"),
        ("fine", 0, {}, "0 partitions"),
        ("fine", 1, {"cleanup.polcy": "compact"}, "did you mean cleanup.policy"),
        ("fine", 1, {"segment.ms": "0"}, "out of range"),
        ("fine", 1, {"compression.type": "lz4"}, "no meaning"),
        ("fine", 1, {"compaction.strategy.header": "\udcff"}, "header is text that UTF-8 can't hold"),
        ("\ud800", 1, {}, "name is text that UTF-8 can't hold"),
    ],
)
def test_a_topic_that_is_refused_is_not_created(
    tmp_path: Path, name: str, partitions: int, config: dict[str, str], said: str
) -> None:
    store = store_at(tmp_path / "home")
    with pytest.raises(InvalidConfig, match=said):
        store.create_topic(name, partitions, config)
    assert store.topics() == []
    assert not (tmp_path / "home").exists()


def test_a_topic_is_not_created_twice(tmp_path: Path) -> None:
    store = create(tmp_path)
    with pytest.raises(InvalidConfig, match="exists already"):
        store.create_topic(TOPIC, 7, {})
    assert store.describe_topic(TOPIC).partitions == 1


def test_an_alteration_sets_and_unsets_and_leaves_the_log_alone(tmp_path: Path) -> None:
    store = create(tmp_path, config={"segment.ms": "5", "max.compaction.lag.ms": "9"})
    append_each(store, [("k", "v")])
    before = store.logs(TOPIC)[0].segments
    altered = store.alter_topic(TOPIC, {"max.compaction.lag.ms": "10"}, ["segment.ms"])
    assert altered.raw_config == {"cleanup.policy": "compact", "max.compaction.lag.ms": "10"}
    assert store.logs(TOPIC)[0].segments == before


@pytest.mark.parametrize(
    ("to_set", "unset", "said"),
    [
        ({"segment.ms": "5", "segment.bytes": "many"}, [], "not a whole number"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, [], "is above"),
        ({"segment.ms": "5"}, ["retention.ms"], "does not set it"),
        ({"segment.ms": "5"}, ["segment.ms"], "both set and unset"),
        ({"log.partitions": "5"}, [], "no setting"),
        ({"compaction.strategy.header": "\udcff"}, [], "header is text that UTF-8 can't hold"),
    ],
)
def test_an_alteration_that_is_refused_changes_nothing(
    tmp_path: Path, to_set: dict[str, str], unset: list[str], said: str
) -> None:
    store = create(tmp_path)
    before, files = store.metadata_locations(), sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidConfig, match=said):
        store.alter_topic(TOPIC, to_set, unset)
    assert store.metadata_locations() == before
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("has_records", [False, True], ids=["a new topic", "a topic with records"])
@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (({"min.compaction.lag.ms": "10"}, []), ({"max.compaction.lag.ms": "5"}, []), "is above"),
        (
            ({"compaction.strategy": "header"}, []),
            ({}, ["compaction.strategy.header"]),
            "needs compaction.strategy.head",
        ),
        (({}, ["segment.ms"]), ({}, ["segment.ms"]), "does not set it"),
    ],
)
def test_of_two_alterations_that_do_not_fit_together_the_second_is_refused(
    tmp_path: Path,
    ours: tuple[dict[str, str], list[str]],
    theirs: tuple[dict[str, str], list[str]],
    said: str,
    *,
    has_records: bool,
) -> None:
    """Each is valid by itself, and the other one lands between its look and its commit."""
    store = create(tmp_path, config={"segment.ms": "5", "compaction.strategy.header": "v"})
    if has_records:
        append_each(store, [("k", "v")])
    catalog = FaultyCatalog(open_catalog(tmp_path))

    def after_theirs(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        store.alter_topic(TOPIC, *theirs)
        return commit()

    catalog.faults.append(after_theirs)
    with pytest.raises(InvalidConfig, match=said):
        store_over(catalog).alter_topic(TOPIC, *ours)
    landed = {"segment.ms": "5", "compaction.strategy.header": "v", "cleanup.policy": "compact"} | theirs[0]
    assert store.describe_topic(TOPIC).raw_config == {k: v for k, v in landed.items() if k not in theirs[1]}


def test_an_alteration_beside_another_lands_behind_it_and_both_are_in_force(tmp_path: Path) -> None:
    store = create(tmp_path)
    catalog = FaultyCatalog(open_catalog(tmp_path))

    def after_another(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        store.alter_topic(TOPIC, {"segment.ms": "5"})
        return commit()

    catalog.faults.append(after_another)
    assert store_over(catalog).alter_topic(TOPIC, {"segment.bytes": "2000000"}).raw_config == {
        "cleanup.policy": "compact",
        "segment.bytes": "2000000",
        "segment.ms": "5",
    }


def test_a_setting_that_the_topic_leaves_open_is_the_brokers(tmp_path: Path) -> None:
    create(tmp_path)
    assert store_at(tmp_path, {"log.segment.bytes": "2000000"}).describe_topic(TOPIC).config.segment_bytes == 2_000_000


@pytest.mark.parametrize("name", ["shop", "\ud800"], ids=["shop", "half a character"])
def test_a_topic_that_does_not_exist_is_unknown_to_every_call(tmp_path: Path, name: str) -> None:
    store = create(tmp_path)
    for call in (
        lambda: store.describe_topic(name),
        lambda: store.logs(name),
        lambda: store.alter_topic(name, {"segment.ms": "5"}),
        lambda: store.append(name, [], "run", 0),
        lambda: store.read(name),
        lambda: store.purge(name, 0),
        lambda: open_home(tmp_path, {}).repair(name),
        lambda: store.delete_topic(name, 0),
    ):
        with pytest.raises(UnknownTopic) as unknown:
            call()
        assert f"there is no topic {name!r}" in str(unknown.value)


def test_metadata_locations_change_with_every_commit_and_only_then(tmp_path: Path) -> None:
    store = create(tmp_path)
    first = store.metadata_locations()
    assert store.metadata_locations() == first
    append_each(store, [("k", "v")])
    second = store.metadata_locations()
    assert second != first
    store.alter_topic(TOPIC, {"segment.ms": "5"})
    assert store.metadata_locations() != second


def test_the_table_has_the_field_ids_of_the_segment_files(tmp_path: Path) -> None:
    create(tmp_path)
    table = open_catalog(tmp_path).load_table(("keptlog", TOPIC))
    assert table.schema() == TABLE_SCHEMA
    assert table.spec() == PARTITION_SPEC
    assert [field.source_id for field in table.sort_order().fields] == [2]
    ids = {name: int(SCHEMA.field(name).metadata[b"PARQUET:field_id"]) for name in SCHEMA.names}
    assert {field.name: field.field_id for field in table.schema().fields} == ids


def test_a_topic_that_a_catalog_refuses_as_one_that_exists_and_that_is_not_there_is_to_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalog behind REST answers each conflict with the same status, also one of the namespace."""
    store = store_at(tmp_path)

    def conflicting(*_arguments: object, **_more: object) -> NoReturn:
        raise TableAlreadyExistsError("CommitFailedException: the namespace has changed meanwhile")

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "create_table", conflicting)
        with pytest.raises(StalePlan, match=r"has no such topic .*the namespace has changed meanwhile.*; try again"):
            store.create_topic(TOPIC, 1, {})
    assert store.create_topic(TOPIC, 1, {}).name == TOPIC


@pytest.mark.parametrize("lost", [False, True], ids=["whole", "its metadata lost"])
def test_a_topic_that_somebody_else_makes_at_the_same_time_exists_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lost: bool
) -> None:
    store, really = store_at(tmp_path), SqlCatalog.create_table

    def others_first(*arguments: Any, **more: Any) -> Table:
        made = really(*arguments, **more)
        if lost:
            Path(made.metadata_location.removeprefix("file://")).unlink()
        return really(*arguments, **more)

    monkeypatch.setattr(SqlCatalog, "create_table", others_first)
    with pytest.raises(InvalidConfig, match=f"topic '{TOPIC}' exists already"):
        store.create_topic(TOPIC, 1, {})
