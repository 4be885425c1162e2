"""A client that nobody has called fit for several threads gets one call at a time, whoever asks."""

from __future__ import annotations

from pathlib import Path

from keptlog.home import monotonic_ms
from keptlog.passes.names import named_logs
from keptlog.passes.observer import Observer
from keptlog.table.store import LogStore
from tests.catalogs.conftest import Configure
from tests.catalogs.one_connection import OneConnection
from tests.table.stores import COMPACTED, NOW_MS, new_id


def test_its_calls_wait_for_each_other(tmp_path: Path, configure: Configure) -> None:
    place = {"uri": f"sqlite:///{tmp_path}/rows.db", "warehouse": f"file://{tmp_path}/lake"}
    maker = LogStore(configure(type="sql", **place)(), {}, lambda _: None, new_id)
    for number in range(8):
        maker.create_topic(f"topic-{number}", 1, COMPACTED)
    configure(type="")
    catalog = configure(**{"py-catalog-impl": "tests.catalogs.one_connection.OneConnection"})()
    assert isinstance(catalog, OneConnection)
    store = LogStore(catalog, {}, lambda _: None, new_id)
    assert len(named_logs(store).logs) == 8
    assert len(Observer(store, monotonic_ms).look(NOW_MS).assessments) == 8
    assert OneConnection.most_at_once == 1
