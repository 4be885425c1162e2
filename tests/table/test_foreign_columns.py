"""A table whose columns or partitioning another program has changed is told, and nothing is written to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import SetCurrentSchemaUpdate, SetDefaultSpecUpdate
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, StringType

from keptlog.errors import Action, LogCorrupt
from keptlog.log.plan import make_plan
from keptlog.passes.observer import observe
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.changes.repair import Repair
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.stores import NOW_MS, TOPIC, append_each, create, store_at, values

Change = Callable[[Table], object]


def _schema(change: Callable[[object], object]) -> Change:
    def changed(table: Table) -> None:
        with table.update_schema(allow_incompatible_changes=True) as update:
            change(update)

    return changed


def _spec(change: Callable[[object], object]) -> Change:
    def changed(table: Table) -> None:
        with table.update_spec() as update:
            change(update)

    return changed


HEADER = ("headers", "element")
CHANGES = [
    pytest.param(_schema(lambda it: it.delete_column("value")), "the column value", id="dropped"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.rename_column("value", "v")), "the column value", id="renamed"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.update_column("partition", LongType())), "the column partition", id="widened"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.update_column("value", required=True)), "value, which may not", id="required"),  # type: ignore[attr-defined]
    pytest.param(
        _schema(lambda it: it.update_column((*HEADER, "value"), required=True)),  # type: ignore[attr-defined]
        "the column headers.element.value, which may not be null now",
        id="field required",
    ),
    pytest.param(_schema(lambda it: it.delete_column("headers")), "the column headers;", id="headers dropped"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.rename_column((*HEADER, "key"), "k")), "the column headers", id="field renamed"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.delete_column((*HEADER, "value"))), "the column headers", id="field dropped"),  # type: ignore[attr-defined]
    pytest.param(_spec(lambda it: it.add_identity("offset")), "by partition, offset now", id="partitioned by more"),  # type: ignore[attr-defined]
    pytest.param(_spec(lambda it: it.remove_field("partition")), "the partitioning", id="partitioned by nothing"),  # type: ignore[attr-defined]
]


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path, config={"cleanup.policy": "compact", "segment.ms": "1"})
    append_each(store, [("a", "1")], [("a", "2")])
    return store


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_it_is_told_and_nothing_is_written(store: LogStore, tmp_path: Path, change: Change, told: str) -> None:
    change(table_of(tmp_path))
    store = store_at(tmp_path)
    before, said = store.metadata_locations(), f"another program changed its table: .*{told}.*nothing is written to it"
    with pytest.raises(LogCorrupt, match=said) as refused:
        append_each(store, [("b", "1")])
    assert refused.value.action is Action.FIX_CONFIG
    with pytest.raises(LogCorrupt, match=said):
        Repair(TOPIC, is_adoption=False, files=store.files, live_files=LiveFiles(), broker_settings={}).plan(
            table_of(tmp_path)
        )
    seen = observe(store, now_ms=NOW_MS)
    assert told in str(seen.unreadable[TOPIC])
    assert make_plan(seen.assessments, NOW_MS).steps == ()
    assert store.metadata_locations() == before
    assert [offset for _, offset, _ in values(store)] == [0, 1]


OF_NO_MEANING = [
    pytest.param(_schema(lambda it: it.add_column("note", StringType())), id="a column beside ours"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.add_column((*HEADER, "note"), StringType())), id="a field beside ours"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.update_column("value", doc="of whom")), id="a column's comment"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.update_column((*HEADER, "key"), doc="of what")), id="a field's comment"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.move_first("value")), id="the order of columns"),  # type: ignore[attr-defined]
    pytest.param(_schema(lambda it: it.move_first((*HEADER, "value"))), id="the order of fields"),  # type: ignore[attr-defined]
]


@pytest.mark.parametrize("change", OF_NO_MEANING)
def test_what_changes_nothing_for_readers_disturbs_nobody(store: LogStore, tmp_path: Path, change: Change) -> None:
    change(table_of(tmp_path))
    store = store_at(tmp_path)
    append_each(store, [("b", "1")])
    assert len(values(store)) == 3


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_a_table_that_was_set_back_goes_on(store: LogStore, tmp_path: Path, change: Change, told: str) -> None:
    assert told
    change(table_of(tmp_path))
    table = table_of(tmp_path)
    schema = SetCurrentSchemaUpdate.model_validate({"schema-id": 0})
    spec = SetDefaultSpecUpdate.model_validate({"spec-id": 0})
    table.catalog.commit_table(table, (), (schema, spec))
    store = store_at(tmp_path)
    append_each(store, [("b", "1")])
    assert len(values(store)) == 3


def advised(home: Path) -> str:
    """The call of PyIceberg's that an append's refusal names."""
    with pytest.raises(LogCorrupt, match=r"in PyIceberg catalog\.commit_table") as refused:
        append_each(store_at(home), [("b", "1")])
    return str(refused.value).partition("in PyIceberg ")[2].partition(", with what pyiceberg.table.update has")[0]


def carry_out(call: str, home: Path) -> None:
    names = {"SetCurrentSchemaUpdate": SetCurrentSchemaUpdate, "SetDefaultSpecUpdate": SetDefaultSpecUpdate}
    eval(call, names | {"catalog": open_catalog(home)})  # noqa: S307  # as a person does who copies it


@pytest.mark.parametrize(("change", "told"), CHANGES)
def test_what_the_message_says_sets_it_back(store: LogStore, tmp_path: Path, change: Change, told: str) -> None:
    assert told
    change(table_of(tmp_path))
    carry_out(advised(tmp_path), tmp_path)
    append_each(store_at(tmp_path), [("b", "1")])
    assert [offset for _, offset, _ in values(store)] == [0, 1, 2]


def test_where_both_were_changed_the_message_sets_back_both(store: LogStore, tmp_path: Path) -> None:
    _schema(lambda it: it.delete_column("value"))(table_of(tmp_path))  # type: ignore[attr-defined]
    _spec(lambda it: it.add_identity("offset"))(table_of(tmp_path))  # type: ignore[attr-defined]
    carry_out(advised(tmp_path), tmp_path)
    append_each(store_at(tmp_path), [("b", "1")])
    assert len(values(store)) == 3


def test_a_column_beside_ours_stays_where_only_the_partitioning_is_set_back(store: LogStore, tmp_path: Path) -> None:
    _schema(lambda it: it.add_column("note", StringType()))(table_of(tmp_path))  # type: ignore[attr-defined]
    _spec(lambda it: it.add_identity("note"))(table_of(tmp_path))  # type: ignore[attr-defined]
    carry_out(advised(tmp_path), tmp_path)
    assert "note" in table_of(tmp_path).schema().column_names
    append_each(store_at(tmp_path), [("b", "1")])
    assert len(values(store)) == 3


@pytest.mark.parametrize("is_sorted", [False, True], ids=["alone", "sorted by it"])
def test_a_column_beside_ours_stays_where_a_later_change_is_set_back(
    store: LogStore, tmp_path: Path, *, is_sorted: bool
) -> None:
    """Nor could a table be set back to before it that another engine writes in its order."""
    _schema(lambda it: it.add_column("note", StringType()))(table_of(tmp_path))  # type: ignore[attr-defined]
    if is_sorted:
        with table_of(tmp_path).update_sort_order() as update:
            update.asc("note", IdentityTransform())
    _schema(lambda it: it.delete_column("value"))(table_of(tmp_path))  # type: ignore[attr-defined]
    carry_out(advised(tmp_path), tmp_path)
    assert "note" in table_of(tmp_path).schema().column_names
    append_each(store_at(tmp_path), [("b", "1")])
    assert len(values(store)) == 3


def test_a_column_beside_ours_that_was_dropped_before_does_not_come_back(store: LogStore, tmp_path: Path) -> None:
    """A schema as it was made first has its old number again, so the highest is not the last that was in force."""
    _schema(lambda it: it.add_column("note", StringType()))(table_of(tmp_path))  # type: ignore[attr-defined]
    _schema(lambda it: it.delete_column("note"))(table_of(tmp_path))  # type: ignore[attr-defined]
    _schema(lambda it: it.delete_column("value"))(table_of(tmp_path))  # type: ignore[attr-defined]
    carry_out(advised(tmp_path), tmp_path)
    assert "note" not in table_of(tmp_path).schema().column_names
    append_each(store_at(tmp_path), [("b", "1")])


def without_schemas(home: Path, *numbers: int) -> None:
    """As Spark's expiry does with schemas that no snapshot has; the snapshots that had these are of another one."""

    def changed(stored: dict[str, Any]) -> None:
        stored["schemas"] = [each for each in stored["schemas"] if each["schema-id"] not in numbers]
        for snapshot in stored["snapshots"]:
            snapshot["schema-id"] = stored["current-schema-id"]

    rewrite_metadata(home, changed)


def test_where_the_first_schema_was_removed_another_one_that_has_ours_will_do(tmp_path: Path) -> None:
    create(tmp_path)
    _schema(lambda it: it.update_column("value", doc="of whom"))(table_of(tmp_path))  # type: ignore[attr-defined]
    _schema(lambda it: it.delete_column("value"))(table_of(tmp_path))  # type: ignore[attr-defined]
    without_schemas(tmp_path, 0)
    call = advised(tmp_path)
    assert "schema_id=1" in call
    carry_out(call, tmp_path)
    append_each(store_at(tmp_path), [("b", "1")])
    assert values(store_at(tmp_path)) == [(0, 0, b"1")]


def test_where_no_schema_has_ours_the_topic_is_to_be_made_anew(store: LogStore, tmp_path: Path) -> None:
    _schema(lambda it: it.delete_column("value"))(table_of(tmp_path))  # type: ignore[attr-defined]
    without_schemas(tmp_path, 0)
    with pytest.raises(LogCorrupt, match=rf"keptlog restore {TOPIC} --to jsonl FILE\), then delete the topic "):
        append_each(store_at(tmp_path), [("b", "1")])
    assert [offset for _, offset, _ in values(store_at(tmp_path))] == [0, 1]


def remove_first_spec(home: Path) -> None:
    """As Spark's ``expire_snapshots(clean_expired_metadata => true)`` does with a spec that no manifest has."""

    def changed(stored: dict[str, Any]) -> None:
        stored["partition-specs"] = [each for each in stored["partition-specs"] if each["spec-id"] != 0]

    rewrite_metadata(home, changed)


def rewrite_metadata(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Bring in a metadata file of another program's, which PyIceberg can't write."""
    catalog, table = open_catalog(home), table_of(home)
    stored = json.loads(table.metadata.model_dump_json())
    change(stored)
    stored["metadata-log"].append({"metadata-file": table.metadata_location, "timestamp-ms": stored["last-updated-ms"]})
    path = Path(table.metadata_location.removeprefix("file://")).with_name("00002-of-spark.metadata.json")
    path.write_text(json.dumps(stored))
    catalog.drop_table(table.name())
    catalog.register_table(table.name(), f"file://{path}")


@pytest.mark.parametrize("is_back", [False, True])
def test_a_topic_whose_first_partition_spec_was_removed_is_told_and_can_be_made_anew(
    tmp_path: Path, *, is_back: bool
) -> None:
    create(tmp_path)
    _spec(lambda it: it.add_identity("timestamp_type"))(table_of(tmp_path))  # type: ignore[attr-defined]
    remove_first_spec(tmp_path)
    if is_back:
        _spec(lambda it: it.remove_field("timestamp_type"))(table_of(tmp_path))  # type: ignore[attr-defined]
    with pytest.raises(LogCorrupt, match=rf"\(id 0\), which was removed .*: delete the topic .*{TOPIC}") as refused:
        append_each(store_at(tmp_path), [("a", "1")])
    assert refused.value.action is Action.FIX_CONFIG
    store_at(tmp_path).delete_topic(TOPIC, NOW_MS)
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    assert values(store) == [(0, 0, b"1")]
