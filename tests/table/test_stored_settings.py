"""What decides over deletion is stored when a topic is made, and is the same on every machine (ADR 30)."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.config import DECIDING
from keptlog.passes.names import named_logs
from keptlog.passes.retain import Retainer, RetentionResult
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.metadata.prefixes import CONFIG_PREFIX, DEFAULT_PREFIX
from keptlog.table.store import LogStore
from tests.table.stores import NOW_MS, TOPIC, append_each, new_id, store_at, values

COMPACTING = {"log.cleanup.policy": "compact", "log.retention.hours": "8760"}
"""The broker settings of the machine on which the topic is made; another one has none, as if they were lost."""
YEARS_LATER_MS = NOW_MS + 10 * 365 * 24 * 3_600_000


def made(home: Path, config: dict[str, str] | None = None) -> LogStore:
    """The store of the machine that makes the topic, with some records."""
    store = store_at(home, COMPACTING)
    store.create_topic(TOPIC, 1, config or {})
    append_each(store, [("a", "1")], [("a", "2")], [("b", "1")])
    return store


def of_an_older_keptlog(home: Path, *stored: str) -> None:
    """Take from the topic what an older keptlog would not have stored."""
    names = [CONFIG_PREFIX + name for name in DECIDING if name not in stored]
    names += [DEFAULT_PREFIX + name for name in DECIDING]
    with open_catalog(home).load_table(("keptlog", TOPIC)).transaction() as transaction:
        present = transaction.table_metadata.properties
        transaction.remove_properties(*(name for name in names if name in present))


def retain(store: LogStore) -> RetentionResult:
    return Retainer(store).retain(named_logs(store), new_id(), now_ms=YEARS_LATER_MS)


def test_retention_on_another_machine_takes_nothing_from_a_compacted_topic(tmp_path: Path) -> None:
    made(tmp_path)
    other = store_at(tmp_path)
    result = retain(other)
    assert (result.committed, result.failed) == ((), {})
    assert len(values(other)) == 3
    assert other.logs(TOPIC)[0].config.cleanup_policy == ("compact",)


def test_retention_on_another_machine_goes_by_the_time_of_the_machine_that_made_the_topic(tmp_path: Path) -> None:
    made(tmp_path, {"cleanup.policy": "delete"})
    assert store_at(tmp_path).describe_topic(TOPIC).config.retention_ms == 8760 * 3_600_000
    assert store_at(tmp_path, {"log.retention.ms": "1"}).describe_topic(TOPIC).config.retention_ms == 8760 * 3_600_000


def test_what_is_stored_is_not_what_the_topic_sets_itself(tmp_path: Path) -> None:
    store = made(tmp_path, {"retention.ms": "5", "segment.ms": "7"})
    assert store.describe_topic(TOPIC).raw_config == {"retention.ms": "5", "segment.ms": "7"}
    assert store.describe_topic(TOPIC).config.unsettled == ()
    origins = {each.setting.name: each.origin.value for each in store.describe_topic(TOPIC).config.resolved}
    assert origins == {
        **dict.fromkeys(origins, "default"),
        **dict.fromkeys(DECIDING, "stored"),
        "retention.ms": "topic",
        "segment.ms": "topic",
    }


def test_a_setting_that_is_unset_is_stored_again_and_leaves_nothing_open(tmp_path: Path) -> None:
    made(tmp_path, {"cleanup.policy": "delete", "retention.ms": "5"})
    store_at(tmp_path, COMPACTING).alter_topic(TOPIC, {}, ["cleanup.policy", "retention.ms"])
    there = store_at(tmp_path, {"log.retention.ms": "1"}).describe_topic(TOPIC)
    assert (there.raw_config, there.config.unsettled) == ({}, ())
    assert (there.config.cleanup_policy, there.config.retention_ms) == (("compact",), 8760 * 3_600_000)
    with pytest.raises(InvalidConfig, match="does not set it"):
        store_at(tmp_path).alter_topic(TOPIC, {}, ["retention.ms"])


def test_a_setting_that_was_stored_can_be_set(tmp_path: Path) -> None:
    store = made(tmp_path)
    for value in ("compact", "delete"):  # the first is what was stored
        store.alter_topic(TOPIC, {"cleanup.policy": value})
        assert store.describe_topic(TOPIC).raw_config == {"cleanup.policy": value}
    assert store.describe_topic(TOPIC).config.unsettled == ()


def test_a_strategy_by_header_keeps_the_name_of_its_header(tmp_path: Path) -> None:
    broker = {"log.cleaner.compaction.strategy": "header", "log.cleaner.compaction.strategy.header": "v"}
    store_at(tmp_path, broker).create_topic(TOPIC, 1, {})
    assert str(store_at(tmp_path).describe_topic(TOPIC).config.strategy) == "header:v"
    store_at(tmp_path, broker).alter_topic(TOPIC, {"compaction.strategy": "header", "compaction.strategy.header": "w"})
    store_at(tmp_path, broker).alter_topic(TOPIC, {}, ["compaction.strategy.header"])
    assert str(store_at(tmp_path).describe_topic(TOPIC).config.strategy) == "header:v"
    store_at(tmp_path).alter_topic(TOPIC, {"compaction.strategy": "offset"})
    store_at(tmp_path, broker).alter_topic(TOPIC, {"compaction.strategy": "header"})
    assert str(store_at(tmp_path).describe_topic(TOPIC).config.strategy) == "header:v"


def test_an_older_topic_without_a_policy_is_not_retained_and_the_reason_says_what_to_do(tmp_path: Path) -> None:
    made(tmp_path)
    of_an_older_keptlog(tmp_path)
    other = store_at(tmp_path)
    result = retain(other)
    assert (result.committed, result.failed, len(values(other))) == ((), {}, 3)
    assert result.plan.left_alone[f"{TOPIC}-0"] == (
        "segments that are old by this machine's cleanup.policy and retention.bytes and retention.ms stay, because "
        f"another machine may have others and the topic has none; if these are right: keptlog topic alter {TOPIC} "
        "--config cleanup.policy=delete --config retention.bytes=-1 --config retention.ms=604800000"
    )
    other.alter_topic(TOPIC, {"cleanup.policy": "delete", "retention.ms": "604800000"})
    assert len(retain(other).committed) == 1


@pytest.mark.parametrize(("stored", "goes"), [(["cleanup.policy"], False), (["cleanup.policy", "retention.ms"], True)])
def test_a_rule_of_retention_runs_on_an_older_topic_if_it_sets_all_that_the_rule_asks(
    tmp_path: Path, stored: list[str], goes: bool
) -> None:
    made(tmp_path, {"cleanup.policy": "delete"})
    of_an_older_keptlog(tmp_path, *stored)
    assert bool(retain(store_at(tmp_path)).committed) is goes


def test_deleted_records_of_an_older_topic_go(tmp_path: Path) -> None:
    store = made(tmp_path)
    of_an_older_keptlog(tmp_path)
    log = store.logs(TOPIC)[0]
    store.delete_records(log.topic_partition, 1, new_id())
    assert len(values(store)) == 2
