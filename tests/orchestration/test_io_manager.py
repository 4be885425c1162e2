"""Assets downstream load a topic by the type of their parameter: its state, of one snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from keptlog.dagster import DagsterKeptlogTranslator, Section, build_defs
from keptlog.storage.schema import SCHEMA
from tests.orchestration.conftest import World

CLEAN = ["users", "clean"]
STATE = {(0, 1, b"a", b"2"), (1, 1, b"d", b"4")}
"""Partition, offset, key and value of what the topic of ``people`` tells."""
COLUMNS = ["partition", "offset", "key", "value"]


@pytest.fixture
def people(world: World) -> World:
    """A superseded record, a deleted key, and two topic-partitions; nothing is cleaned yet."""
    world.topic("users", 2)
    world.append("users", ("a", "1"), ("a", "2"), ("b", "1"), ("b", None))
    world.append("users", ("c", None), ("d", "4"), partition=1)
    return world


class Downstream:
    """Runs an asset that loads a topic, beside a project's own resources."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.loaded: list[Any] = []

    def run(
        self,
        kind: object,
        use: Callable[[Any], object] = lambda loaded: loaded,
        *,
        ours: dg.Definitions | None = None,
        tags: Mapping[str, str] | None = None,
        partitions_def: dg.PartitionsDefinition[str] | None = None,
        **asset_in: Any,
    ) -> dg.ExecuteInProcessResult:
        def downstream(users: Any) -> None:
            self.loaded.append(use(users))

        downstream.__annotations__ = {"return": None} | ({} if kind is None else {"users": kind})
        made = dg.asset(
            ins={"users": dg.AssetIn(**({"key": CLEAN} | asset_in))},
            partitions_def=partitions_def,
            backfill_policy=dg.BackfillPolicy.single_run() if partitions_def else None,
        )(downstream)
        defs = dg.Definitions.merge(ours or self.world.defs, dg.Definitions([made]))
        job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={dg.AssetKey("downstream")})
        return job.execute_in_process(instance=self.world.instance, raise_on_error=False, tags=tags)

    def refused(self, kind: object, **asset_in: Any) -> str:
        """The last line of why it could not be loaded."""
        (failure,) = self.run(kind, **asset_in).filter_events(lambda event: event.is_step_failure)
        error = failure.step_failure_data.error
        assert error
        assert error.cause
        assert error.cause.message.count("\n") == 1
        return error.cause.message.strip()


@pytest.fixture
def downstream(people: World) -> Downstream:
    return Downstream(people)


def rows(table: pa.Table) -> set[tuple[int, int, bytes, bytes]]:
    return {tuple(row.values()) for row in table.select(COLUMNS).to_pylist()}


def twice(relation: duckdb.DuckDBPyRelation) -> set[tuple[int, int, bytes, bytes]]:
    """Who joins a relation with itself reads it twice."""
    joined = duckdb.sql('SELECT a.partition, a."offset", a.key, b.value FROM relation a JOIN relation b USING (key)')
    assert joined
    return {*joined.fetchall()}


HOW: dict[object, Callable[[Any], set[tuple[int, int, bytes, bytes]]]] = {
    pa.Table: rows,
    pa.RecordBatchReader: lambda reader: rows(reader.read_all()),
    pl.DataFrame: lambda frame: set(frame.select(COLUMNS).rows()),
    pl.LazyFrame: lambda frame: set(frame.select(COLUMNS).collect().rows()),
    duckdb.DuckDBPyRelation: twice,
}


@pytest.mark.parametrize("kind", HOW, ids=lambda kind: f"{kind.__module__.partition('.')[0]}-{kind.__name__}")
def test_the_state_is_loaded_as_the_type_of_the_parameter(downstream: Downstream, kind: object) -> None:
    assert downstream.run(kind, HOW[kind]).success
    assert downstream.loaded == [STATE]


def test_a_frame_of_spark_is_read_by_its_workers(downstream: Downstream, spark: SparkSession) -> None:
    def read(frame: DataFrame) -> tuple[set[Any], list[str], dict[str, str]]:
        return {tuple(row) for row in frame.select(COLUMNS).collect()}, frame.columns, dict(frame.dtypes)

    assert downstream.run(DataFrame, read).success

    ((found, columns, types),) = downstream.loaded
    assert {(partition, offset, bytes(key), bytes(value)) for partition, offset, key, value in found} == STATE
    assert columns == SCHEMA.names
    assert (types["timestamp"], types["headers"]) == ("timestamp", "array<struct<key:string,value:binary>>")


def test_the_same_is_loaded_before_and_after_a_clean(downstream: Downstream, spark: SparkSession) -> None:
    assert downstream.run(pa.Table, rows).success
    assert downstream.world.clean(requested=True).success
    assert downstream.run(pa.Table, rows).success
    assert downstream.loaded == [STATE, STATE]


def test_columns_and_all_records_are_asked_for_in_the_metadata(downstream: Downstream) -> None:
    assert downstream.run(pa.Table, metadata={"columns": ["value", "key"], "other/tool": 1}).success
    assert downstream.run(pa.Table, metadata={"latest": False}).success

    some, every = downstream.loaded
    assert some.column_names == ["value", "key"]
    assert sorted(some["key"].to_pylist()) == [b"a", b"d"]
    assert every.schema.equals(SCHEMA)
    assert every["value"].to_pylist() == [b"1", b"2", b"1", None, None, b"4"]


def test_a_lazy_frame_reads_what_the_query_needs(downstream: Downstream) -> None:
    def ask(frame: pl.LazyFrame) -> list[Any]:
        return [
            frame.select(pl.len()).collect().item(),
            frame.filter(pl.col("partition") == 1).select("key").collect()["key"].to_list(),
            frame.head(1).collect().height,
        ]

    assert downstream.run(pl.LazyFrame, ask).success
    assert downstream.loaded == [[2, [b"d"], 1]]


def test_a_reader_and_a_lazy_frame_stay_with_their_snapshot(downstream: Downstream) -> None:
    def meanwhile(reader: pa.RecordBatchReader) -> set[Any]:
        downstream.world.append("users", ("e", "5"))
        return rows(reader.read_all())

    assert downstream.run(pa.RecordBatchReader, meanwhile).success
    assert downstream.run(pl.LazyFrame, HOW[pl.LazyFrame]).success
    assert downstream.loaded == [STATE, STATE | {(0, 4, b"e", b"5")}]


def test_a_reader_holds_a_row_group_and_not_the_topic(world: World) -> None:
    world.topic("users", max_message_bytes=str(2**22))
    value = "v" * 2**21
    for number in range(12):
        world.append("users", (f"k{number}", value))
    downstream = Downstream(world)

    def highest(reader: pa.RecordBatchReader) -> tuple[int, int]:
        before, peak, read = pa.total_allocated_bytes(), 0, 0
        for batch in reader:
            read += batch.num_rows
            peak = max(peak, pa.total_allocated_bytes() - before)
        return read, peak

    assert downstream.run(pa.RecordBatchReader, highest).success
    ((read, peak),) = downstream.loaded
    assert read == 12
    assert peak < 4 * len(value)


def test_the_snapshot_is_named_in_the_log_and_in_the_metadata_of_the_input(downstream: Downstream) -> None:
    table = downstream.world.store.load_table("users")
    result = downstream.run(pa.Table)

    (event,) = result.filter_events(lambda event: event.is_loaded_input)
    snapshot = table.current_snapshot()
    assert snapshot
    loaded: Any = event.event_specific_data
    metadata = {name: value.value for name, value in loaded.metadata.items()}
    assert metadata["keptlog/snapshot_id"] == str(snapshot.snapshot_id)
    assert (metadata["keptlog/topic"], metadata["keptlog/topic_partitions"]) == ("users", 2)
    observed = downstream.world.instance.fetch_observations(dg.AssetKey(CLEAN), limit=1)
    assert not observed.records


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"dagster/partition": "users-1"}, {(1, 1, b"d", b"4")}),
        ({"dagster/asset_partition_range_start": "users-0", "dagster/asset_partition_range_end": "users-1"}, STATE),
    ],
)
def test_partitions_downstream_load_their_own(downstream: Downstream, tags: dict[str, str], expected: set[Any]) -> None:
    same = dg.StaticPartitionsDefinition(["users-0", "users-1"])
    assert downstream.run(pa.Table, rows, tags=tags, partitions_def=same).success
    assert downstream.loaded == [expected]


def test_all_partitions_are_those_that_are_there_now(downstream: Downstream) -> None:
    """The asset graph knows of a new one after a reload only."""
    world = downstream.world
    loaded_before = world.defs
    world.store.delete_topic("users", world.now_ms)
    world.topic("users", 3)
    world.append("users", ("f", "6"), partition=2)

    assert downstream.run(pa.Table, rows, ours=loaded_before).success
    assert downstream.loaded == [{(2, 0, b"f", b"6")}]


def grown(world: World) -> dg.Definitions:
    """What was loaded while the topic had one partition; now it has two."""
    world.store.delete_topic("users", world.now_ms)
    world.topic("users", 1)
    loaded_before = world.defs
    world.store.delete_topic("users", world.now_ms)
    world.topic("users", 2)
    world.append("users", ("e", "5"))
    world.append("users", ("f", "6"), partition=1)
    return loaded_before


def test_the_only_partition_that_dagster_knows_is_loaded_without_those_that_came_since(downstream: Downstream) -> None:
    ours = grown(downstream.world)
    one = dg.StaticPartitionsDefinition(["users-0"])
    first_only = dg.SpecificPartitionsPartitionMapping(["users-0"])

    assert downstream.run(pa.Table, rows, ours=ours, tags={"dagster/partition": "users-0"}, partitions_def=one).success
    assert downstream.run(pa.Table, rows, ours=ours, partition_mapping=first_only).success

    assert downstream.loaded == [{(0, 0, b"e", b"5")}] * 2


def test_a_partition_that_takes_all_of_a_topic_gets_those_that_came_since(downstream: Downstream) -> None:
    ours, mapping = grown(downstream.world), dg.AllPartitionMapping()
    days, tags = dg.StaticPartitionsDefinition(["monday"]), {"dagster/partition": "monday"}

    result = downstream.run(pa.Table, rows, ours=ours, tags=tags, partitions_def=days, partition_mapping=mapping)

    assert result.success
    assert downstream.loaded == [{(0, 0, b"e", b"5"), (1, 0, b"f", b"6")}]


def test_a_partition_that_is_gone_is_named_and_is_no_table_without_a_row(downstream: Downstream) -> None:
    world, loaded_before = downstream.world, downstream.world.defs
    world.store.delete_topic("users", world.now_ms)
    world.topic("users", 1)
    same = dg.StaticPartitionsDefinition(["users-0", "users-1"])

    result = downstream.run(pa.Table, ours=loaded_before, tags={"dagster/partition": "users-1"}, partitions_def=same)

    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    assert "there is no topic-partition 'users-1': users has only users-0" in str(failure.step_failure_data.error)
    assert downstream.loaded == []


def test_in_no_run_the_partitions_that_are_named_are_loaded_and_all_where_none_is(people: World) -> None:
    """As a notebook does it, or a project's test."""
    with people.defs.get_asset_value_loader(people.instance) as loader:

        def load(**which: Any) -> set[Any]:
            return rows(loader.load_asset_value(CLEAN, python_type=pa.Table, **which))

        assert load(partition_key="users-1") == {(1, 1, b"d", b"4")}
        assert load(partition_key_range=dg.PartitionKeyRange("users-0", "users-1")) == STATE
        assert load() == STATE


def test_a_topic_without_a_record_is_a_table_without_a_row(world: World) -> None:
    world.topic("users", 2)
    downstream = Downstream(world)
    for kind in (pa.Table, pl.LazyFrame):
        assert downstream.run(kind).success
    table, lazy = downstream.loaded
    assert table.schema.equals(SCHEMA)
    assert (table.num_rows, lazy.collect().height, lazy.collect_schema().names()) == (0, 0, SCHEMA.names)


class Turned(DagsterKeptlogTranslator):
    def get_asset_key(self, topic: str, section: Section) -> dg.AssetKey:
        return dg.AssetKey([section.value, topic.upper()])


def test_two_homes_a_translator_and_a_projects_own_manager_are_in_nobodys_way(
    downstream: Downstream, tmp_path: Any
) -> None:
    sales = World(tmp_path / "sales", downstream.world.instance)
    sales.topic("users")
    sales.append("users", ("z", "9"))
    ours = dg.Definitions.merge(
        build_defs(downstream.world.log_store, name_prefix="crm", key_prefix="crm"),
        build_defs(sales.log_store, name_prefix="sales", key_prefix="sales", translator=Turned()),
        dg.Definitions(resources={"io_manager": dg.mem_io_manager}),
    )

    assert downstream.run(pa.Table, rows, ours=ours, key=["sales", "clean", "USERS"]).success
    assert downstream.run(pa.Table, rows, ours=ours, key=["crm", *CLEAN]).success

    assert downstream.loaded == [{(0, 0, b"z", b"9")}, STATE]


WRONG: dict[str, tuple[object, dict[str, Any], str]] = {
    "no annotation": (None, {}, "pyspark.DataFrame; it has none"),
    "another type": (pd.DataFrame, {}, "it has pandas.core.frame.DataFrame"),
    "the dirty section": (pa.Table, {"key": ["users", "dirty"]}, "load the topic's clean section"),
    "an unknown column": (pa.Table, {"metadata": {"columns": ["keys"]}}, "give some of partition, offset"),
    "no column": (pa.Table, {"metadata": {"columns": []}}, "give some of partition, offset"),
    "a text": (pa.Table, {"metadata": {"latest": "no"}}, "neither True nor False"),
    "an unknown option": (pa.Table, {"metadata": {"column": ["key"]}}, "it may have columns and latest"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_can_t_be_loaded_is_one_line_that_says_what_to_do(downstream: Downstream, what: str) -> None:
    kind, asset_in, told = WRONG[what]
    assert told in downstream.refused(kind, **asset_in)
    assert downstream.loaded == []


def test_a_topic_that_is_gone_is_named(downstream: Downstream) -> None:
    loaded_before = downstream.world.defs
    downstream.world.store.delete_topic("users", downstream.world.now_ms)
    result = downstream.run(pa.Table, ours=loaded_before)
    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    assert re.search("there is no topic 'users'", str(failure.step_failure_data.error))
