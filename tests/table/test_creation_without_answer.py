"""A topic whose creation got no answer is looked for: "can't be created" was said of one that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException, ForbiddenError

from keptlog.errors import CommitStateUnknown, InvalidConfig, StorageUnavailable
from keptlog.table.metadata.partitions import PARTITIONS
from keptlog.table.store import LogStore


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("keptlog", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))


@pytest.fixture
def store(catalog: SqlCatalog) -> LogStore:
    LogStore(catalog, {}, lambda _: None, lambda: "an-id").create_topic("other", 1, {})
    return LogStore(catalog, {}, lambda _: None, lambda: "an-id")


def _lose_the_answer(
    monkeypatch: pytest.MonkeyPatch,
    catalog: SqlCatalog,
    *,
    lands: bool,
    error: type[Exception] = CommitStateUnknownException,
) -> None:
    really = catalog.create_table

    def create(*args: Any, **kwargs: Any) -> None:
        if lands:
            really(*args, **kwargs)
        raise error("the answer was lost")

    monkeypatch.setattr(catalog, "create_table", create)


@pytest.mark.parametrize("error", [CommitStateUnknownException, ForbiddenError])
def test_it_is_there_so_it_was_created(
    catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """A proxy may also say no to what it has passed on."""
    _lose_the_answer(monkeypatch, catalog, lands=True, error=error)
    assert store.create_topic("users", 2, {"cleanup.policy": "compact"}).partitions == 2
    assert store.topics() == ["other", "users"]


def test_a_catalog_that_keeps_a_property_of_icebergs_elsewhere_has_created_it_too(
    catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = catalog.create_table

    def create(identifier: Any, *args: Any, **kwargs: Any) -> None:
        properties = {key: value for key, value in kwargs["properties"].items() if key != "format-version"}
        really(identifier, *args, **kwargs | {"properties": properties})
        raise CommitStateUnknownException("the answer was lost")

    monkeypatch.setattr(catalog, "create_table", create)
    store.create_topic("users", 1, {})
    assert store.topics() == ["other", "users"]


def test_it_is_not_there_so_it_was_not(catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    _lose_the_answer(monkeypatch, catalog, lands=False)
    with pytest.raises(StorageUnavailable, match="topic users can't be created"):
        store.create_topic("users", 1, {})


def test_nobody_can_say(catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionResetError("reset")

    _lose_the_answer(monkeypatch, catalog, lands=True)
    monkeypatch.setattr(catalog, "load_table", refuse)
    with pytest.raises(CommitStateUnknown, match=r"did not say whether it was created .*keptlog topic list shows"):
        store.create_topic("users", 1, {})


def test_another_one_that_came_first_is_none_of_ours(
    catalog: SqlCatalog, store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = catalog.create_table

    def create(identifier: Any, *args: Any, **kwargs: Any) -> None:
        really(identifier, *args, **kwargs | {"properties": kwargs["properties"] | {PARTITIONS: "7"}})
        raise CommitStateUnknownException("the answer was lost")

    monkeypatch.setattr(catalog, "create_table", create)
    with pytest.raises(InvalidConfig, match="exists"):
        store.create_topic("users", 1, {})
