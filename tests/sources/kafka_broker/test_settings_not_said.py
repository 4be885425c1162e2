"""A broker that does not say how long it keeps tombstones, or whether it compacts, ends no ingest.

Not every broker that speaks Kafka's protocol has all of its topics' settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from keptlog.kafka_client.settings import ClientSettings
from keptlog.sources.kafka_broker import topics
from keptlog.sources.kafka_broker.topics import tombstones_kept_ms

SETTINGS = ClientSettings.load({"bootstrap.servers": "unasked:9092"}, {})


@dataclass(frozen=True)
class Entry:
    """What a broker says of one setting, as far as it matters here."""

    value: str | None


@pytest.mark.parametrize(
    ("said", "kept_ms"),
    [
        ({"cleanup.policy": "compact", "delete.retention.ms": "5000"}, {0: 5000, 3: 5000}),
        ({"cleanup.policy": "delete", "delete.retention.ms": "5000"}, {}),
        ({"cleanup.policy": "delete"}, {}),
        ({"cleanup.policy": "compact"}, {0: None, 3: None}),
        ({"cleanup.policy": "delete,compact", "delete.retention.ms": None}, {0: None, 3: None}),
        ({"cleanup.policy": None, "delete.retention.ms": "5000"}, {0: 5000, 3: 5000}),
        ({}, {0: None, 3: None}),
    ],
)
def test_what_is_not_said_is_not_known(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str | None], kept_ms: dict[int, int | None]
) -> None:
    entries = {name: Entry(value) for name, value in said.items()}
    monkeypatch.setattr(topics, "_all_settings", lambda *_: ({"orders": entries}, {}))
    assert tombstones_kept_ms(SETTINGS, "orders", {0: False, 3: False}) == kept_ms


def test_what_was_compacted_still_has_the_time_that_its_tombstones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"cleanup.policy": Entry("delete"), "delete.retention.ms": Entry("5000")}
    monkeypatch.setattr(topics, "_all_settings", lambda *_: ({"orders": entries}, {}))
    assert tombstones_kept_ms(SETTINGS, "orders", {0: False, 3: True}) == {3: 5000}
