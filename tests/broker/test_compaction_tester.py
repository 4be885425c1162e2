"""Kafka's own tester of compaction finds the state that it produced, after keptlog has cleaned and restored it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from keptlog.home import wall_clock_ms
from keptlog.passes.clean import Cleaner
from tests.broker.broker import DEADLINE_SECONDS, Broker
from tests.broker.compaction_tester import run_tester
from tests.broker.ingesting import Ingesting
from tests.broker.restoring import restore_of
from tests.in_process import in_process_engine
from tests.logs import carry_out

DAY_MS = 86_400_000
MESSAGES = 3_000


def test_kafkas_own_tester_is_content_with_what_keptlog_leaves(broker: Broker, tmp_path: Path) -> None:
    left = Counter[str]()

    def through_keptlog(topics: list[str]) -> None:
        for topic in topics:
            ingesting = Ingesting(broker, tmp_path, topic)
            ingesting.bring_all()
            store = ingesting.store
            cleaner = Cleaner(store, in_process_engine(store.files))
            for days in (8, 10):  # its segment is closed, and then its tombstones have expired
                now_ms = wall_clock_ms() + days * DAY_MS
                assert not carry_out(cleaner, cleaner.plan([topic], now_ms=now_ms, requested=True)).failed
            admin = broker.admin
            admin.delete_topics([topic])[topic].result(DEADLINE_SECONDS)
            restored = restore_of(store, broker.bootstrap).to_broker(topic, topic)
            left["records"] += restored.records
            left["tombstones"] += sum(record.value is None for record in ingesting.records()[0])

    said = run_tester(broker.bootstrap, ["--messages", str(MESSAGES), "--percent-deletes", "20"], through_keptlog)
    assert "Data verification is completed" in said, said
    assert f"{MESSAGES} rows of data produced, {left['records']} rows of data consumed" in said, said
    assert 0 < left["records"] < MESSAGES
    assert left["tombstones"] == 0
