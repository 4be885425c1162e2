"""``keptlog verify`` of all names what still has bytes and is no topic any more: it is neither fine nor broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.passes.check import Outcome
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import DELETING, NAMESPACE
from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000


@pytest.fixture
def two(home: Path) -> Path:
    """A home with the topics users and orders, each with a record."""
    store = open_home().store
    for topic in ("users", "orders"):
        store.create_topic(topic, 1, {"cleanup.policy": "compact"})
        store.append(topic, [NewRecord(b"a", b"1", NOW_MS)], f"append-{topic}", NOW_MS)
    return home


def leave_half_deleted(home: Path) -> None:
    catalog = open_catalog(home)
    catalog.create_namespace((DELETING,))
    catalog.rename_table((NAMESPACE, "users"), (DELETING, "users"))


def test_a_deletion_that_was_interrupted_is_named_and_not_told_as_fine(keptlog: Run, two: Path) -> None:
    leave_half_deleted(two)
    verified = keptlog("verify")
    assert (verified.code, verified.out) == (1, "1 log: 7 checks, all ok\n")
    assert verified.err == (
        "keptlog: users: its deletion was begun and is not finished; "
        "if nobody is at it, keptlog topic delete users finishes it\n"
    )
    assert keptlog("topic", "delete", "users", "--yes").code == 0
    assert keptlog("verify").code == 0


@pytest.mark.parametrize(
    "line",
    [
        "verify users",
        "verify users-0",
        "status users",
        "plan users",
        "retain users",
        "read users",
        "explain users 0",
        "topic describe users",
    ],
)
def test_whoever_names_it_is_told_that_its_deletion_is_not_finished(keptlog: Run, two: Path, line: str) -> None:
    leave_half_deleted(two)
    told = keptlog(*line.split())
    assert (told.code, told.out) == (2, "")
    assert "its deletion was begun and is not finished" in told.err
    assert "keptlog topic delete users" in told.err


def test_each_check_of_it_is_not_looked_at_in_json(keptlog: Run, two: Path) -> None:
    leave_half_deleted(two)
    told = keptlog("verify", "--json").json
    assert [each["subject"] for each in told["errors"]] == ["users"]
    assert {each["result"] for each in told["checks"] if each["topic_partition"] == "users"} == {"not looked at"}


def test_the_library_names_it_too(two: Path) -> None:
    leave_half_deleted(two)
    found = open_home().verify()
    assert {each.outcome for each in found["users"]} == {Outcome.NOT_LOOKED_AT}
    assert {each.outcome for each in found["orders-0"]} == {Outcome.OK}


def test_who_names_topics_hears_of_these_alone(keptlog: Run, two: Path) -> None:
    leave_half_deleted(two)
    verified = keptlog("verify", "orders")
    assert (verified.code, verified.err) == (0, "")


def test_a_topic_whose_table_another_program_dropped_is_named_with_what_puts_it_back(keptlog: Run, two: Path) -> None:
    open_catalog(two).drop_table((NAMESPACE, "users"))
    folder = f"file://{two}/warehouse/keptlog/users"
    for command in (["verify"], ["doctor", "--quiet", "--no-probes"]):
        told = keptlog(*command)
        assert told.code == 1
        assert f"{folder}: no topic lies in this folder any more, and 5 files (" in told.out + told.err
    [metadata] = re.findall(r"topic register NAME --metadata (file:[^ ]*);", told.out)
    open_catalog(two).register_table((NAMESPACE, "users"), metadata)
    assert keptlog("verify").code == 0
    assert '"value": "1"' in keptlog("read", "users").out
    open_catalog(two).drop_table((NAMESPACE, "users"))
    open_catalog(two).register_table((NAMESPACE, "again"), metadata)
    assert keptlog("topic", "delete", "again", "--yes").code == 0
    assert (keptlog("verify").code, list((two / "warehouse").rglob("*users*/data/**/*.parquet"))) == (0, [])


def test_files_of_a_topic_that_was_renamed_into_another_namespace_are_that_tables(
    keptlog: Run, lines: Callable[..., str], home: Path
) -> None:
    assert keptlog("topic", "create", "users").code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"})).code == 0
    catalog = open_catalog(home)
    catalog.create_namespace("other")
    catalog.rename_table(("keptlog", "users"), ("other", "users"))
    for command in (("verify",), ("doctor", "--no-probes")):
        done = keptlog(*command)
        told = done.out + done.err
        assert (done.code, "the table other.users lies in this folder" in told) == (1, True)
        assert "catalog.rename_table('other.users', ('keptlog', 'users'))" in told
        assert "topic register" not in told
    catalog.rename_table("other.users", ("keptlog", "users"))
    assert keptlog("doctor", "--no-probes").code == 0
