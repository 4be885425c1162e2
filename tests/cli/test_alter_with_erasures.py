"""``topic alter`` tells of open erasures where there are some, and asks nothing more once it has altered."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.table.changes.alteration import Alteration
from keptlog.table.store import LogStore
from tests.cli.conftest import Run

SETTING = "max.compaction.lag.ms"
BY_TIMESTAMP = ("topic", "alter", "users", "--config", "compaction.strategy=timestamp")


@pytest.fixture
def users(keptlog: Run) -> str:
    """A topic with a setting of its own."""
    configs = ("--config", "cleanup.policy=compact", "--config", f"{SETTING}=86400000")
    assert keptlog("topic", "create", "users", *configs).code == 0
    return "users"


def test_another_strategy_sends_to_open_erasures_only_where_there_are_some(keptlog: Run, users: str) -> None:
    assert "keptlog erasure list" not in keptlog(*BY_TIMESTAMP).err
    keptlog("topic", "alter", "users", "--config", "compaction.strategy=offset")
    assert keptlog("erase", "users", "--key", "a", "--by", "1d", "--yes").code == 0
    assert "keptlog erasure list" in keptlog(*BY_TIMESTAMP).err


def test_what_has_landed_is_told_as_that_though_the_catalog_is_away_from_then_on(
    keptlog: Run, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was told that it failed was refused at the next try: what is not set any more can't be unset."""
    commit = Alteration.commit

    def is_away(*_: object) -> NoReturn:
        raise StorageUnavailable("the catalog does not answer")

    def landed_at_last(alteration: Alteration, *args: Any) -> Any:
        landed = commit(alteration, *args)
        monkeypatch.setattr(LogStore, "load_table", is_away)
        return landed

    monkeypatch.setattr(Alteration, "commit", landed_at_last)
    altered = keptlog("topic", "alter", "users", "--delete-config", SETTING, "--json")
    assert altered.code == 0
    assert altered.json["config"] == {"cleanup.policy": "compact"}
