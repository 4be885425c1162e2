"""Ingest as job and as asset: what is new lands, is told in numbers, and what did not come in fails the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from keptlog.dagster.assets.outage import FAILED_TAG, OUTAGE_TAG
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.ingest.ingest_pass import Ingest
from keptlog.ingest.result import IngestResult
from keptlog.sources.kafka_broker import topics as broker_topics
from keptlog.table.store import LogStore
from tests.orchestration.ingesting import IngestWorld, InProcessSpark, ingest_world

SECRET = "correct-horse-battery"  # noqa: S105  # nobody's


@pytest.fixture
def here(tmp_path: Path) -> Iterator[IngestWorld]:
    with ingest_world(tmp_path / "home") as made:
        yield made


def test_the_launchpad_brings_in_a_new_topic_under_a_name_and_with_settings_of_its_own(here: IngestWorld) -> None:
    here.produce("db.users", ("a", "1"), ("b", None))

    result = here.ingest(
        topics=["db.users"], bootstrap=here.broker.bootstrap, into="users", config={"segment.ms": "12345"}
    )

    assert result.success
    assert here.world.records("users") == [(0, b"a", b"1"), (1, b"b", None)]
    config = here.world.store.describe_topic("users").config
    assert (config.segment_ms, config.cleanup_policy) == (12345, ("compact",))


def test_every_topic_partition_is_materialized_with_its_numbers_and_the_lag_that_is_left(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"), ("b", None), partition=1)
    here.knows("users", 0, 0)

    numbers = here.materialized(here.ingest())

    assert list(numbers) == ["users-1", "users-2", "users-3"]
    shown = {name: value for name, value in numbers["users-1"].items() if name != "bytes_written"}
    assert shown == {
        "records_ingested": 2,
        "tombstones_ingested": 1,
        "keys_reconciled": 0,
        "files_new": 1,
        "from_offset": 0,
        "log_end_offset": 2,
        "consumer_lag": 0,
    }


def test_what_stopped_nothing_and_should_be_known_is_a_warning_of_the_run(here: IngestWorld) -> None:
    here.broker.producer.produce("users", value="without a key", partition=0)
    here.broker.producer.flush()
    here.knows("users", 0)

    result = here.ingest()

    told = [message for level, message in here.world.told(result) if level == "WARNING"]
    assert len([each for each in told if each.startswith("users-0: 1 of 1 record without a key")]) == 1


def test_a_topic_with_a_broker_has_its_source_before_its_dirty_section(here: IngestWorld) -> None:
    here.world.topic("appended")
    here.knows("users", 0, there="db.users")

    specs = {spec.key.to_user_string(): spec for spec in here.world.defs.resolve_all_asset_specs()}

    of_topics = specs.keys() - {"erasures", "keptlog/health"}
    assert of_topics == {"appended/dirty", "appended/clean", "users/source", "users/dirty", "users/clean"}
    assert f"Topic db.users at {here.broker.bootstrap}" in (specs["users/source"].description or "")
    assert [dep.asset_key.path for dep in specs["users/dirty"].deps] == [["users", "source"]]
    graph = here.world.defs.resolve_asset_graph()
    assert graph.materializable_asset_keys - {dg.AssetKey(["erasures"])} == {
        dg.AssetKey(["appended", "clean"]),
        dg.AssetKey(["users", "clean"]),
        dg.AssetKey(["users", "dirty"]),
    }


def test_materializing_some_partitions_ingests_those_and_all_of_them_the_new_ones_too(here: IngestWorld) -> None:
    for partition in range(4):
        here.produce("db.users", ("a", "1"), partition=partition)
    here.knows("users", 0, 0, there="db.users")

    assert set(here.materialized(here.materialize("users", 1, 1))) == {"users-1"}
    assert [log.log_end_offset for log in here.logs("users")] == [0, 1, 0, 0]
    here.knows("orders", 0, 0, there="db.users")

    result = here.materialize("orders", 0, 1)

    assert result.success
    assert set(here.materialized(result)) == {"orders-0", "orders-1", "orders-2", "orders-3"}


class SparkWithoutJava(InProcessSpark):
    """Can't be started as this machine is set up."""

    @property
    def spark_session(self) -> SparkSession:
        raise InvalidConfig("there is no Java")


@pytest.mark.parametrize(
    "begin", [lambda here: here.materialize("users", 0, 0), lambda here: here.ingest(topics=["users"])]
)
def test_a_machine_that_is_set_up_wrong_is_what_a_run_says_and_nothing_that_is_held_against_its_topics(
    here: IngestWorld, begin: Callable[[IngestWorld], dg.ExecuteInProcessResult]
) -> None:
    here.knows("users", 0)
    here.produce("users", ("a", "1"))
    here.world.more_resources["spark"] = SparkWithoutJava(spark_config={})
    result = begin(here)
    assert here.failure(result) == "nothing could be done: there is no Java"
    run = here.world.instance.get_run_by_id(result.run_id)
    assert run
    assert "there is no Java" in run.tags[OUTAGE_TAG]


def test_a_stopped_topic_partition_fails_the_run_after_all_else_has_landed(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 100)

    result = here.materialize("users", 0, 1)

    assert "users-1: it ends at offset 100 here and at 0 at its source" in here.failure(result)
    assert "ingest it into another topic" in here.failure(result)
    assert here.materialized(result)["users-0"]["records_ingested"] == 1
    assert here.world.records("users") == [(0, b"a", b"1")]


def test_what_has_landed_is_told_although_the_catalog_is_away_since(
    here: IngestWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0, 100)
    really = Ingest.carry_out

    def away(*_: object, **__: object) -> None:
        raise StorageUnavailable("the catalog is away")

    def carried_out(*given: Any) -> IngestResult:
        result = really(*given)
        monkeypatch.setattr(LogStore, "topics", away)
        monkeypatch.setattr(LogStore, "source_of", away)
        monkeypatch.setattr(Ingest, "plan", away)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Ingest, "carry_out", carried_out)
        result = here.ingest()
    monkeypatch.undo()

    assert here.failure(result).startswith("1 not ingested, 3 ingested: users-1: it ends at offset 100 here")
    numbers = here.materialized(result)["users-0"]
    assert numbers["records_ingested"] == 1
    assert "consumer_lag" not in numbers, "nobody could tell"
    run = here.world.instance.get_run_by_id(result.run_id)
    assert run
    assert OUTAGE_TAG not in run.tags
    assert run.tags[FAILED_TAG] == "users-1"


def test_what_fails_for_the_same_reason_is_told_once(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 9, 9, 9)

    failure = here.failure(here.ingest())

    assert failure.startswith("3 not ingested, 0 ingested: users-1, users-2, users-3: it ends at offset 9 here")
    assert failure.count("it ends at") == 1


def test_a_topic_that_is_not_there_any_more_fails_the_run_and_holds_up_no_other(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0)
    here.knows("orders", 0, there="gone")

    result = here.ingest()

    assert f"orders: {here.broker.bootstrap} has no topic 'gone'" in here.failure(result)
    assert here.world.records("users") == [(0, b"a", b"1")]


def test_nothing_new_is_no_failure_and_no_materialization(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 1, 0, 0, 0)

    result = here.ingest()

    assert result.success
    assert here.materialized(result) == {}


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({}, "no topic here remembers a broker yet"),
        ({"topics": ["a", "b"], "into": "c"}, "takes one topic"),
        ({"topics": ["a"], "topic_partitions": ["a-0"]}, "give one of the two"),
        ({"topics": ["a"], "config": {"cleanup.policy": "shrink"}}, "cleanup.policy"),
        ({"topics": ["a"]}, "no broker is named: give it as bootstrap (--bootstrap HOST:PORT)"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_the_reason(
    here: IngestWorld, config: dict[str, object], why: str
) -> None:
    assert why in here.failure(here.ingest(**config))
    assert here.world.store.topics() == []


def test_no_secret_is_left_in_a_run_whatever_becomes_of_it(here: IngestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_KAFKA_SASL_PASSWORD", SECRET)
    here.produce("users", ("a", "1"))
    here.knows("users", 0)
    here.knows("orders", 0, there="no-such-topic")

    result = here.ingest()

    assert "orders: " in here.failure(result)
    assert here.materialized(result)
    assert SECRET not in "\n".join(map(dg.serialize_value, here.world.instance.all_logs(result.run_id)))
    assert SECRET not in str(here.world.defs.get_repository_def().get_top_level_resources())


def test_loading_the_definitions_asks_no_broker(here: IngestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    here.knows("users", 0, bootstrap="127.0.0.1:1")
    monkeypatch.delattr(broker_topics, "AdminClient")

    dg.Definitions.validate_loadable(here.world.defs)


def test_the_schedule_ingests_every_topic_that_has_a_broker(here: IngestWorld) -> None:
    here.produce("users", ("a", "1"))
    here.knows("users", 0)
    ingest_schedule = here.world.defs.get_schedule_def("ingest_schedule")
    with dg.build_schedule_context(instance=here.world.instance) as context:
        (request,) = ingest_schedule.evaluate_tick(context).run_requests or []

    assert ingest_schedule.default_status is dg.DefaultScheduleStatus.STOPPED
    assert here.run(request).success
    assert here.world.records("users") == [(0, b"a", b"1")]
