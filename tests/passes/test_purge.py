"""Purge over several topics: each gets its turn, and one that fails costs only itself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable, UnknownTopic
from keptlog.passes.clean import Cleaner
from keptlog.passes.purge import Purger
from keptlog.table.purging.purge_receipt import PurgeReceipt
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.logs import carry_out
from tests.passes.conftest import DAY_MS, NOW_MS

AFTER_THE_DELAY_MS = time.time_ns() // 1_000_000 + DAY_MS


@pytest.fixture
def cleaned(store: LogStore) -> LogStore:
    """Every log was cleaned, so that each topic has a segment to delete."""
    cleaner = Cleaner(store, in_process_engine(store.files))
    assert len(carry_out(cleaner, cleaner.plan(now_ms=NOW_MS)).committed) == 3
    return store


def replaced(store: LogStore, topic: str) -> list[Path]:
    """The files of a topic that are not live."""
    live = {segment.path for log in store.logs(topic) for segment in log.segments}
    files = store.files.list(store.data_location(topic))
    return [Path(file.path.removeprefix("file://")) for file in files if file.path not in live]


def test_every_topic_is_purged_if_none_is_named(cleaned: LogStore) -> None:
    result = Purger(cleaned).purge(now_ms=AFTER_THE_DELAY_MS)
    assert {topic: len(receipt.deleted_files) for topic, receipt in result.receipts.items()} == {"a": 1, "b": 1, "c": 1}
    assert result.failed == {}
    assert [replaced(cleaned, topic) for topic in "abc"] == [[], [], []]


def test_only_the_named_topics_are_purged(cleaned: LogStore) -> None:
    assert list(Purger(cleaned).purge(["c", "a", "c"], now_ms=AFTER_THE_DELAY_MS).receipts) == ["c", "a"]
    assert replaced(cleaned, "b")


def test_a_topic_whose_purge_fails_is_named_and_all_others_are_purged(
    cleaned: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = LogStore.purge

    def unreachable_for_b(store: LogStore, topic: str, now_ms: int, orphan_grace_ms: int) -> PurgeReceipt:
        if topic == "b":
            raise StorageUnavailable("its bucket does not answer")
        return really(store, topic, now_ms, orphan_grace_ms)

    monkeypatch.setattr(LogStore, "purge", unreachable_for_b)
    result = Purger(cleaned).purge(now_ms=AFTER_THE_DELAY_MS)
    assert list(result.receipts) == ["a", "c"]
    assert str(result.failed["b"]) == "its bucket does not answer"
    assert [len(replaced(cleaned, topic)) for topic in "abc"] == [0, 1, 0]


@pytest.mark.parametrize("what", ["metadata", "manifest list", "manifest"])
@pytest.mark.parametrize("content", [b"", b"{", bytes(500)])
def test_a_topic_whose_files_are_damaged_stops_no_purge_behind_it(
    cleaned: LogStore, caplog: pytest.LogCaptureFixture, what: str, content: bytes
) -> None:
    table = cleaned.load_table("b")
    snapshot = table.current_snapshot()
    assert snapshot
    paths = {
        "metadata": table.metadata_location,
        "manifest list": snapshot.manifest_list,
        "manifest": snapshot.manifests(table.io)[0].manifest_path,
    }
    damaged = Path(paths[what].removeprefix("file://"))
    damaged.write_bytes(content)
    result = Purger(cleaned).purge(now_ms=AFTER_THE_DELAY_MS)
    assert list(result.receipts) == ["a", "c"]
    assert list(result.failed) == ["b"]
    assert [len(replaced(cleaned, topic)) for topic in "ac"] == [0, 0]
    reason = str(result.failed["b"])
    assert "topic b" in reason
    assert what == "metadata" or damaged.name in reason
    told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert not [text for text in told if "topic b" in text], "who called is told, and tells it"


@pytest.mark.parametrize("error", [KeyError("x"), OSError("a disk"), AssertionError(), RecursionError("deep")])
def test_an_error_that_nobody_has_thought_of_costs_only_its_topic(
    cleaned: LogStore, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    really = LogStore.purge

    def odd_for_b(store: LogStore, topic: str, now_ms: int, orphan_grace_ms: int) -> PurgeReceipt:
        if topic == "b":
            raise error
        return really(store, topic, now_ms, orphan_grace_ms)

    monkeypatch.setattr(LogStore, "purge", odd_for_b)
    result = Purger(cleaned).purge(now_ms=AFTER_THE_DELAY_MS)
    assert list(result.receipts) == ["a", "c"]
    assert str(result.failed["b"]).startswith("topic b: its purge stopped at " + type(error).__name__)


def test_a_name_that_means_nothing_is_refused_before_anything_is_deleted(cleaned: LogStore) -> None:
    with pytest.raises(UnknownTopic, match="'nobody'"):
        Purger(cleaned).purge(["a", "nobody"], now_ms=AFTER_THE_DELAY_MS)
    assert replaced(cleaned, "a")


def test_a_topic_that_is_deleted_while_all_are_purged_is_simply_not_there(
    cleaned: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = cleaned.topics()
    cleaned.delete_topic("b", NOW_MS)
    monkeypatch.setattr(LogStore, "topics", lambda _: topics)
    result = Purger(cleaned).purge(now_ms=AFTER_THE_DELAY_MS)
    assert list(result.receipts) == ["a", "c"]
    assert result.failed == {}
