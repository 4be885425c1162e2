"""Of a table with Iceberg's ``gc.enabled=false`` nothing is deleted: who sets that says that others need its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.table.foreign import set_properties
from tests.table.stores import files_below

SAID = "may hold files that other tables need, for its table has gc.enabled=false, and "
NEXT = "set gc.enabled back to true if no other table needs them"


@pytest.fixture
def shared(keptlog: Run, lines: Callable[..., str], home: Path) -> Path:
    """A home with a topic of which a purge would expire snapshots."""
    config = ("--config", "cleanup.policy=compact", "--config", "file.delete.delay.ms=0")
    assert keptlog("topic", "create", "users", *config).code == 0
    for value in ("1", "2"):
        assert keptlog("append", "users", "--file", lines({"key": "a", "value": value})).code == 0
    set_properties(home, {"gc.enabled": "False"}, "users")
    return home


@pytest.mark.parametrize("command", [("purge", "users", "--yes"), ("topic", "delete", "users", "--yes")])
def test_nothing_is_deleted_and_the_property_is_named(keptlog: Run, shared: Path, command: tuple[str, ...]) -> None:
    before = files_below(shared)
    told = keptlog(*command)
    assert (told.code, SAID in told.err, NEXT in told.err) == (1, True, True)
    assert files_below(shared) >= before


def test_doctor_tells_of_it(keptlog: Run, shared: Path) -> None:
    told = keptlog("doctor", "--no-probes")
    assert (told.code, SAID in told.out, NEXT in told.out) == (1, True, True)


def test_records_come_and_are_read_as_ever_and_a_purge_goes_on_once_it_is_set_back(
    keptlog: Run, shared: Path, lines: Callable[..., str]
) -> None:
    assert keptlog("append", "users", "--file", lines({"key": "b", "value": "1"})).code == 0
    assert len(keptlog("read", "users").json_lines) == 3
    set_properties(shared, {"gc.enabled": "true"}, "users")
    purged = keptlog("purge", "users", "--yes", "--json")
    assert purged.code == 0
    assert purged.json["topics"]["users"]["expired_snapshots"] > 0
